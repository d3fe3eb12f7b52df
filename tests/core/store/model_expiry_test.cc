#include "core/store/model_expiry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/support/status.h"

namespace perceptrond::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kId = 7;
constexpr absl::Duration kTime = absl::Seconds(1000);
const absl::Duration kTenth = kTime / 10;

// One server, or with another one at the same journal a fleet of two.
class ModelExpiryTest : public ::testing::Test {
 protected:
  // The servers of a fleet have one catalogue.
  struct Catalogue {
    std::map<std::string, storage::ModelHeader> headers;
    int notes = 0;
    bool fails = false;
    // The catalogue can be read, but not written; and the number of attempts.
    bool is_read_only = false;
    int writes = 0;
  };

  ModelExpiryTest() { Start(); }

  std::unique_ptr<ModelExpiry> MakeServer(bool writes = true) {
    ModelExpiry::Hooks hooks;
    hooks.list = [this](absl::string_view after,
                        size_t limit) -> absl::StatusOr<std::vector<storage::ModelHeader>> {
      if (all_.fails) return absl::UnavailableError("out of reach");
      std::vector<storage::ModelHeader> page;
      for (auto it = all_.headers.upper_bound(std::string(after));
           it != all_.headers.end() && page.size() < limit; ++it)
        page.push_back(it->second);
      return page;
    };
    hooks.writes = [writes](uint64_t /*id*/) { return writes; };
    hooks.has_streams = [this](const std::string& uid) { return streams_.contains(uid); };
    hooks.save_use = [this](const storage::ModelHeader& header, absl::Time last_use) {
      ++all_.writes;
      if (all_.fails || all_.is_read_only) return absl::UnavailableError("out of reach");
      ++all_.notes;
      SetNote(header.model().name(), last_use);
      return absl::OkStatus();
    };
    hooks.remove = [this](const storage::ModelHeader& header, const std::atomic<bool>& used) {
      ++all_.writes;
      if (during_removal_ != nullptr) during_removal_();
      if (used.load()) return absl::AbortedError("used");
      if (in_use_) return absl::FailedPreconditionError("an alias names it");
      if (all_.fails) return absl::UnavailableError("out of reach");
      all_.headers.erase(header.model().name());
      return absl::OkStatus();
    };
    ModelExpiry::Clocks clocks;
    clocks.wall = [this] { return wall_; };
    clocks.steady = [this] { return steady_; };
    return std::make_unique<ModelExpiry>(std::move(hooks), std::move(clocks));
  }
  // The server starts, or is started again after it was killed.
  void Start() { expiry_ = MakeServer(); }
  void Add(const std::string& name = "models/m", uint64_t id = kId,
           absl::Duration expire_after = kTime) {
    storage::ModelHeader& header = all_.headers[name];
    header.set_id(id);
    header.mutable_model()->set_name(name);
    header.mutable_model()->set_uid(absl::StrCat("uid", id));
    header.mutable_model()->mutable_expire_after()->set_seconds(absl::ToInt64Seconds(expire_after));
    SetNote(name, wall_);
  }
  void SetNote(const std::string& name, absl::Time time) {
    const int64_t nanos = absl::ToUnixNanos(time);
    google::protobuf::Timestamp& note = *all_.headers[name].mutable_last_use_time();
    note.set_seconds(nanos / 1'000'000'000);
    note.set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  }
  // Time passes, and the server sweeps as often as it asks for.
  void Pass(absl::Duration time) {
    const absl::Duration end = steady_ + time;
    while (true) {
      const absl::Duration wait = expiry_->Sweep();
      if (other_ != nullptr) {
        other_->Sweep();
        expiry_->OnUsedElsewhere(other_->UsedHere());
      }
      const absl::Duration step = std::min(wait, end - steady_);
      steady_ += step;
      wall_ += step;
      if (step < wait) return;
    }
  }
  void Use() { expiry_->MarkOf(kId)->store(true); }
  bool Exists(const std::string& name = "models/m") const { return all_.headers.contains(name); }
  // How long it takes from now until the model is deleted.
  absl::Duration TimeUntilDeletion() {
    const absl::Duration begun = steady_;
    while (Exists() && steady_ - begun < 10 * kTime) Pass(kTime / 100);
    return steady_ - begun;
  }

  absl::Time wall_ = absl::FromUnixSeconds(1'700'000'000);
  absl::Duration steady_ = absl::Seconds(5);
  Catalogue all_;
  // Uids.
  std::set<std::string> streams_;
  bool in_use_ = false;
  std::function<void()> during_removal_;
  std::unique_ptr<ModelExpiry> expiry_;
  // One that does not write the models.
  std::unique_ptr<ModelExpiry> other_;
};

TEST_F(ModelExpiryTest, AModelThatIsNotUsedIsDeletedOnceAfterItsTimeAndAThird) {
  Add();
  Add("models/kept", 8);
  all_.headers["models/kept"].mutable_model()->clear_expire_after();
  Pass(kTime);
  EXPECT_TRUE(Exists());
  Pass(kTime * 0.35);
  EXPECT_FALSE(Exists());
  EXPECT_TRUE(Exists("models/kept"));
  Pass(3 * kTime);
  EXPECT_EQ(expiry_->expired(), 1U);
  EXPECT_EQ(all_.notes, 0);
}

TEST_F(ModelExpiryTest, AModelLivesForItsTimeAfterItsLastUseWhateverHappens) {
  struct Course {
    const char* what;
    // Ends with the model in the catalogue.
    std::function<void()> run;
    // Until the model is deleted, in times of the model.
    double least;
    double most;
  };
  const auto set_clock = [this](absl::Duration jump) {
    Pass(kTime / 2);
    wall_ += jump;
    Pass(kTime / 4);
    EXPECT_TRUE(Exists());
    Start();
    Pass(kTenth);
  };
  const Course courses[] = {
      {"used again and again",
       [&] {
         for (int i = 0; i < 20; ++i) {
           Pass(kTime * 0.9);
           Use();
         }
       },
       1, 1.35},
      {"killed just before a use is noted again",
       [&] {
         Pass(kTenth);
         // The next start knows only of the note at this moment.
         Use();
         Pass(kTenth * 0.99);
         Use();
         Start();
       },
       1, 1.35},
      {"down for a quarter of the time",
       [&] {
         Pass(kTime / 2);
         wall_ += kTime / 4;
         Start();
       },
       0.25, 0.6},
      {"the wall clock is set forward", [&] { set_clock(100 * kTime); }, 0.125, 0.6},
      {"the wall clock is set back", [&] { set_clock(-100 * kTime); }, 0.125, 0.6},
      {"the wall clock was wrong for some time",
       [&] {
         wall_ += 100 * kTime;
         Use();
         Pass(kTime / 2);
         wall_ -= 100 * kTime;
         Pass(kTenth);
         Start();
       },
       0.4, 0.8},
      {"an open stream",
       [&] {
         streams_.insert(absl::StrCat("uid", kId));
         Pass(10 * kTime);
         streams_.clear();
       },
       1, 1.35},
      {"a new time, as UpdateModel gives it",
       [&] {
         Pass(kTime);
         Add("models/m", kId, 2 * kTime);
       },
       2, 2.7},
      {"used, and evicted from memory",
       [&] {
         Pass(kTime * 0.9);
         ModelExpiry::Mark mark = expiry_->MarkOf(kId);
         mark->store(true);
         mark = nullptr;
       },
       1, 1.35},
      {"used by another server of a fleet",
       [&] {
         other_ = MakeServer(/*writes=*/false);
         for (int i = 0; i < 500; ++i) {
           other_->MarkOf(kId)->store(true);
           Pass(kTime / 100);
         }
         EXPECT_LE(all_.notes, 50);
       },
       1, 1.5},
  };
  for (const Course& course : courses) {
    SCOPED_TRACE(course.what);
    all_ = Catalogue();
    Start();
    Add();
    course.run();
    EXPECT_TRUE(Exists());
    const absl::Duration left = TimeUntilDeletion();
    EXPECT_GE(left, course.least * kTime);
    EXPECT_LE(left, course.most * kTime);
  }
  EXPECT_THAT(other_->UsedHere(), IsEmpty());
}

TEST_F(ModelExpiryTest, AModelThatIsAlwaysUsedIsNotedAtMostOnceInATenthOfItsTime) {
  Add();
  for (int i = 0; i < 1000; ++i) {
    Use();
    Pass(kTime / 100);
  }
  EXPECT_TRUE(Exists());
  EXPECT_LE(all_.notes, 100);
  EXPECT_GE(all_.notes, 60);
}

TEST_F(ModelExpiryTest, AfterALongPauseUsersHaveATenthOfTheTimeToUseTheModel) {
  Add();
  Add("models/unused", 8);
  wall_ += 100 * kTime;
  Start();
  Pass(kTenth * 0.9);
  EXPECT_TRUE(Exists());
  Use();
  Pass(kTime / 2);
  EXPECT_TRUE(Exists());
  EXPECT_FALSE(Exists("models/unused"));
}

TEST_F(ModelExpiryTest, AModelThatAnAliasNamesStaysAndHasItsWholeTimeAfterwards) {
  Add();
  in_use_ = true;
  Pass(10 * kTime);
  EXPECT_TRUE(Exists());
  EXPECT_LE(all_.notes, 10);
  in_use_ = false;
  EXPECT_FALSE((Pass(2.5 * kTime), Exists()));
  EXPECT_EQ(expiry_->expired(), 1U);
}

TEST_F(ModelExpiryTest, AUseWhileItIsBeingDeletedKeepsTheModel) {
  Add();
  during_removal_ = [this] { Use(); };
  Pass(kTime * 1.35);
  during_removal_ = nullptr;
  Pass(kTime);
  EXPECT_TRUE(Exists());
}

TEST_F(ModelExpiryTest, AJournalThatCannotBeWrittenIsTriedOncePerSweepAndUsesAreStillSeen) {
  constexpr uint64_t kModels = 10;
  for (uint64_t id = 1; id <= kModels; ++id) Add(absl::StrCat("models/", id), id);
  Pass(kTime / 2);
  all_.is_read_only = true;
  for (uint64_t id = 1; id <= kModels; ++id) expiry_->MarkOf(id)->store(true);
  expiry_->Sweep();
  EXPECT_EQ(all_.writes, 1);
  for (uint64_t id = 1; id <= kModels; ++id) EXPECT_FALSE(expiry_->MarkOf(id)->load()) << id;
  // Nor is anything deleted: what is not noted may have been used.
  steady_ += 10 * kTime;
  wall_ += 10 * kTime;
  expiry_->MarkOf(1)->store(true);
  expiry_->Sweep();
  EXPECT_EQ(all_.writes, 2);
  all_.is_read_only = false;
  expiry_->Sweep();
  EXPECT_TRUE(Exists("models/1"));
  EXPECT_FALSE(Exists("models/2"));
}

TEST_F(ModelExpiryTest, AJournalOutOfReachDelaysDeletionsAndLosesNoUse) {
  Add();
  Pass(kTime / 2);
  Use();
  expiry_->Sweep();
  all_.fails = true;
  Pass(kTime * 1.3);
  EXPECT_TRUE(Exists());
  all_.fails = false;
  Pass(absl::Minutes(1));
  EXPECT_FALSE(Exists());
  Add();
  expiry_->Sweep();
  Use();
  all_.fails = true;
  Pass(kTime / 2);
  all_.fails = false;
  EXPECT_GE(TimeUntilDeletion(), kTime);
}

TEST_F(ModelExpiryTest, TheTimeOfDeletionFollowsFromTheLastUse) {
  Add();
  const auto left = [&] { return *expiry_->ExpireTime(all_.headers["models/m"]) - wall_; };
  EXPECT_EQ(left(), kTime);
  Pass(kTime / 2);
  EXPECT_EQ(left(), kTime / 2);
  // Before it is noted.
  Use();
  EXPECT_EQ(left(), kTime);
  expiry_->Sweep();
  EXPECT_EQ(left(), kTime);
  all_.headers["models/m"].mutable_model()->clear_expire_after();
  EXPECT_FALSE(expiry_->ExpireTime(all_.headers["models/m"]).has_value());
}

TEST_F(ModelExpiryTest, OtherServersOfAFleetNoteAndDeleteNothing) {
  other_ = MakeServer(/*writes=*/false);
  expiry_ = MakeServer(/*writes=*/false);
  Add();
  Use();
  Pass(10 * kTime);
  EXPECT_TRUE(Exists());
  EXPECT_EQ(all_.notes, 0);
}

TEST_F(ModelExpiryTest, AUseIsAnnouncedToTheWriterFromWhenANoteIsDueUntilItIsNoted) {
  other_ = MakeServer(/*writes=*/false);
  Add();
  other_->Sweep();
  other_->MarkOf(kId)->store(true);
  other_->Sweep();
  EXPECT_THAT(other_->UsedHere(), IsEmpty());
  steady_ += kTenth;
  EXPECT_THAT(other_->UsedHere(), ElementsAre(kId));
  SetNote("models/m", wall_ + kTenth);
  other_->Sweep();
  EXPECT_THAT(other_->UsedHere(), IsEmpty());
}

}  // namespace
}  // namespace perceptrond::testing
