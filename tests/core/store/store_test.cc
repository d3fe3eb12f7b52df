// The store: names, searches, etags, damage, and deletion.
#include <google/protobuf/text_format.h>

#include <atomic>
#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/features/words.h"
#include "core/journal/memory_journal.h"
#include "core/store/model_history.h"
#include "gtest/gtest.h"
#include "tests/core/store/store_fixture.h"
#include "tests/support/caller.h"
#include "tests/support/learners.h"
#include "tests/support/recording_journal.h"

namespace perceptrond {
namespace {

using testing::Columns;
using testing::DenseSettings;
using testing::ReasonOf;
using testing::Send;
using testing::StateBytes;
using testing::StoreTest;
namespace v1 = ::perceptron::v1;

TEST_F(StoreTest, CreatesOnceUnlessTheSameRequestComesAgain) {
  const auto first = store_->Create(DenseSettings("a", 2), "request-1", false);
  ASSERT_OK(first.status());
  EXPECT_EQ(first->learner().perceptron().step_size(), 1);
  EXPECT_EQ(first->state(), v1::MODEL_STATE_ACTIVE);
  const auto again = store_->Create(DenseSettings("a", 2), "request-1", false);
  ASSERT_OK(again.status());
  EXPECT_EQ(again->uid(), first->uid());
  for (const char* request : {"", "request-2"}) {
    const absl::Status status = store_->Create(DenseSettings("a", 2), request, false).status();
    EXPECT_TRUE(absl::IsAlreadyExists(status));
    EXPECT_EQ(ReasonOf(status), "MODEL_EXISTS");
  }
  EXPECT_EQ(store_->catalogue().Count().value(), 1U);
}

TEST_F(StoreTest, ARequestIdBelongsToItsPrincipal) {
  const testing::TestCaller alice("alice");
  const testing::TestCaller bob("bob");
  const testing::TestCaller renamed("carol", "alice");
  const auto create = [&] {
    return store_->Create(DenseSettings("models/a", 2), "r", false).status();
  };
  const auto copy = [&] {
    return ModelHistory(*store_).Copy("models/a", "models/b", "r").status();
  };
  int changes = 0;
  const auto change = [&] {
    const auto describe = [&](v1::Model& model) {
      model.set_description(absl::StrCat(++changes));
      return absl::OkStatus();
    };
    return store_->Change("models/a", {.request_id = "r"}, describe).status();
  };
  const std::function<absl::Status()> requests[] = {create, copy, change};
  for (const auto& request : requests) {
    EXPECT_OK(As(alice, request));
    EXPECT_EQ(ReasonOf(As(bob, request)), "PERMISSION_DENIED");
    EXPECT_OK(As(alice, request));
    EXPECT_OK(As(renamed, request));
    // Whoever may do everything may repeat everything.
    EXPECT_OK(request());
  }
  EXPECT_EQ(changes, 1);
  // Of another request it says nothing.
  EXPECT_OK(As(bob, [&] {
    return store_
        ->Change("models/a", {.request_id = "s"}, [](v1::Model&) { return absl::OkStatus(); })
        .status();
  }));
}

TEST_F(StoreTest, OutputOnlyFieldsOfASentModelAreIgnored) {
  Create("part");
  v1::Model plain;
  plain.set_name("plain");
  plain.mutable_feature_space()->mutable_composition()->add_inputs()->set_model("part");
  v1::Model filled;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    name: "filled" uid: "any" etag: "any" state: MODEL_STATE_FROZEN revision: 7 epoch: 7
    weights {} learning_curve { revision: 7 } stale_since { seconds: 7 }
    create_time { seconds: 7 } update_time { seconds: 7 } expire_time { seconds: 7 }
    members { mistakes: 7 } report { examples: 7 }
    feature_space { composition { inputs { model: "part" } example_space { dense { dimension: 0 } } } }
    stored_examples { updates: 7 sample: 7 memory_bytes: 7 complete: true })",
                                                            &filled));
  v1::Model expected = store_->Create(plain, "", false).value();
  v1::Model got = store_->Create(filled, "", false).value();
  EXPECT_NE(got.uid(), "any");
  EXPECT_NE(got.etag(), "any");
  EXPECT_GT(got.create_time().seconds(), 7);
  for (v1::Model* each : {&expected, &got}) {
    each->clear_name();
    each->clear_uid();
    each->clear_etag();
    each->clear_create_time();
    each->clear_update_time();
  }
  EXPECT_EQ(got.DebugString(), expected.DebugString());
}

TEST_F(StoreTest, AListLeavesOutStartingWeights) {
  v1::Model settings = DenseSettings("a", 2);
  testing::StartingVector(*settings.mutable_learner()).set_bias(3);
  ASSERT_OK(store_->Create(settings, "", false).status());
  EXPECT_FALSE(store_->List("", 10)->models.at(0).settings.learner().has_starting_weights());
  EXPECT_EQ(store_->Get("a")->settings.learner().starting_weights().vectors_size(), 1);
}

// Damages the counters and the committed state of one model, and lets no model be deleted.
class DamagedJournal final : public testing::JournalDecorator {
 public:
  using JournalDecorator::JournalDecorator;
  absl::StatusOr<storage::Counters> LoadCounters(uint64_t model_id) override {
    if (model_id == damaged_id) return absl::DataLossError("block checksum mismatch");
    return JournalDecorator::LoadCounters(model_id);
  }
  absl::StatusOr<CommittedState> LoadCommittedState(uint64_t model_id) override {
    if (model_id == damaged_id) return absl::DataLossError("block checksum mismatch");
    return JournalDecorator::LoadCommittedState(model_id);
  }
  std::atomic<uint64_t> damaged_id = 0;

 private:
  absl::Status DeleteModel(absl::string_view /*name*/, const ModelGuard& /*guard*/) override {
    return absl::UnavailableError("injected");
  }
};

TEST_F(StoreTest, AListNamesADamagedModelAmongTheOthers) {
  for (const char* name : {"a", "b", "c", "d"}) Create(name);
  auto damaged = std::make_unique<DamagedJournal>(journal_);
  damaged->damaged_id = journal_->Find("b")->id();
  store_ = std::make_unique<Store>(std::move(damaged), Store::Options());
  const Store::Found first = store_->List("", 3).value();
  ASSERT_EQ(first.models.size(), 2U);
  EXPECT_EQ(first.models[0].settings.name(), "a");
  EXPECT_EQ(first.models[1].settings.name(), "c");
  EXPECT_EQ(first.unreachable, std::vector<std::string>({"b"}));
  EXPECT_EQ(first.next, "c");
  const Store::Found rest = store_->List(first.next, 3).value();
  ASSERT_EQ(rest.models.size(), 1U);
  EXPECT_EQ(rest.models[0].settings.name(), "d");
  EXPECT_EQ(rest.next, "");
}

TEST_F(StoreTest, ADamagedModelIsNamedInTheErrorAndReportedOnceUntilItCanBeLoaded) {
  Create("a");
  Create("b");
  std::vector<std::string> reports;
  Store::Options options;
  options.on_damage = [&reports](const std::string& name, const absl::Status& why) {
    reports.push_back(absl::StrCat(name, ": ", why.message()));
  };
  auto damaged = std::make_unique<DamagedJournal>(journal_);
  DamagedJournal& journal = *damaged;
  store_ = std::make_unique<Store>(std::move(damaged), options);
  journal.damaged_id = journal_->Find("a")->id();
  const std::string message = "model \"a\" is damaged: block checksum mismatch";
  for (int i = 0; i < 3; ++i) {
    const absl::Status status = store_->Acquire("a").status();
    EXPECT_TRUE(absl::IsDataLoss(status));
    EXPECT_EQ(ReasonOf(status), "JOURNAL_CORRUPT");
    EXPECT_EQ(status.message(), message);
  }
  EXPECT_OK(store_->Acquire("b").status());
  EXPECT_TRUE(absl::IsNotFound(store_->Acquire("c").status()));
  EXPECT_EQ(reports, std::vector<std::string>({"a: " + message}));
  journal.damaged_id = 0;
  EXPECT_OK(store_->Acquire("a").status());
  EXPECT_EQ(reports.size(), 1U);
}

TEST_F(StoreTest, OnlyValidatesWhenAsked) {
  EXPECT_OK(store_->Create(DenseSettings("a", 2), "", true).status());
  EXPECT_EQ(store_->catalogue().Count().value(), 0U);
  EXPECT_TRUE(absl::IsInvalidArgument(store_->Create(DenseSettings("a", 0), "", true).status()));
  Create("a");
  EXPECT_OK(store_->Delete("a", "", true));
  EXPECT_EQ(store_->catalogue().Count().value(), 1U);
}

TEST_F(StoreTest, AModelIsCreatedWithoutTwoLabelNamesThatAreOneNumber) {
  const auto created = [this](uint32_t classes, v1::Classes::NewClasses new_classes,
                              std::initializer_list<const char*> names) {
    v1::Model settings = DenseSettings("a", 2);
    if (classes > 0) settings.mutable_learner()->mutable_classes()->set_max_classes(classes);
    if (classes > 0) settings.mutable_learner()->mutable_classes()->set_new_classes(new_classes);
    for (const char* name : names) settings.add_label_names(name);
    return store_->Create(settings, "", true).status();
  };
  const auto none = v1::Classes::NEW_CLASSES_NONE;
  const auto named = v1::Classes::NEW_CLASSES_NAMED;
  for (const auto& [refused, named_in_it] :
       std::initializer_list<std::pair<absl::Status, const char*>>{
           {created(0, none, {"2", "2.0"}), R"("2" and "2.0")"},
           {created(3, none, {"1", "tea", "01"}), R"("1" and "01")"},
           {created(9, named, {"1.50", "007", "15e-1"}), R"("1.50" and "15e-1")"}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << named_in_it;
    EXPECT_TRUE(absl::StrContains(refused.message(), named_in_it)) << refused;
  }
  EXPECT_OK(created(0, none, {"2", "2.5"}));
  // A code is a name of its own where names are added.
  EXPECT_OK(created(9, named, {"7", "007", "07"}));
}

TEST_F(StoreTest, AnEtagGuardsChangesAndDeletion) {
  const v1::Model first = Create("a");
  const auto describe = [](v1::Model& model) {
    model.set_description("changed");
    return absl::OkStatus();
  };
  const auto changed = store_->Change("a", {first.etag(), {}, false}, describe);
  ASSERT_OK(changed.status());
  EXPECT_NE(changed->etag(), first.etag());
  EXPECT_EQ(ReasonOf(store_->Change("a", {first.etag(), {}, false}, describe).status()),
            "ETAG_MISMATCH");
  EXPECT_TRUE(absl::IsAborted(store_->Delete("a", first.etag(), false)));
  EXPECT_OK(store_->Delete("a", changed->etag(), false));
}

TEST_F(StoreTest, WhatIsNotThereIsNotFound) {
  const auto nothing = [](v1::Model&) { return absl::OkStatus(); };
  for (const absl::Status& status :
       {store_->Acquire("a").status(), store_->Get("a").status(), store_->Delete("a", "", false),
        store_->Change("a", {"", {}, false}, nothing).status()}) {
    EXPECT_TRUE(absl::IsNotFound(status));
    EXPECT_EQ(ReasonOf(status), "MODEL_NOT_FOUND");
  }
}

TEST_F(StoreTest, AFrozenModelStaysFrozenAfterARestart) {
  Create("a");
  ASSERT_OK(testing::FreezeIn(*store_, "a"));
  EXPECT_EQ(ReasonOf(Send(*store_, "a", "p", row_.batch()).status), "MODEL_FROZEN");
  Open(Store::Options());
  EXPECT_EQ(ReasonOf(Send(*store_, "a", "p", row_.batch()).status), "MODEL_FROZEN");
}

TEST_F(StoreTest, ADeletedModelIsClosedToThoseWhoHoldItAndItsSuccessorIsAnother) {
  const v1::Model first = Create("a");
  ASSERT_OK(Send(*store_, "a", "p", row_.batch(), 0).status);
  const std::shared_ptr<Model> held = store_->Acquire("a").value();
  ASSERT_OK(store_->Delete("a", "", false));
  EXPECT_EQ(ReasonOf(held->closed()), "MODEL_NOT_FOUND");
  EXPECT_EQ(ReasonOf(store_->committer().Commit(held)), "MODEL_NOT_FOUND");
  EXPECT_TRUE(absl::IsNotFound(store_->Acquire("a").status()));
  EXPECT_NE(Create("a").uid(), first.uid());
  const std::shared_ptr<Model> successor = store_->Acquire("a").value();
  EXPECT_NE(successor->id(), held->id());
  EXPECT_EQ(successor->revision(), 0U);
  const testing::Sent sent = Send(*store_, "a", "p", row_.batch(), 0);
  ASSERT_OK(sent.status);
  EXPECT_EQ(sent.outcome.duplicates, 0U);
}

TEST_F(StoreTest, AModelWhoseDeletionFailedIsThereAsItWas) {
  store_.reset();
  store_ = std::make_unique<Store>(std::make_unique<DamagedJournal>(journal_), Store::Options());
  Create("a");
  ASSERT_OK(Send(*store_, "a", "p", row_.batch(), 0).status);
  EXPECT_TRUE(absl::IsUnavailable(store_->Delete("a", "", false)));
  const testing::Sent again = Send(*store_, "a", "p", row_.batch(), 0);
  ASSERT_OK(again.status);
  EXPECT_EQ(again.outcome.duplicates, 1U);
  EXPECT_EQ(store_->catalogue().Count().value(), 1U);
}

TEST_F(StoreTest, ADeletedModelEndsItsStreams) {
  const v1::Model model = Create("a");
  std::vector<absl::Status> ended;
  const auto listen = [&](const absl::Status& why) { ended.push_back(why); };
  const auto ticket = store_->streams().Open(model.uid(), "", listen);
  EXPECT_TRUE(absl::IsAborted(store_->Delete("a", "another etag", false)));
  ASSERT_OK(store_->Delete("a", "", true));
  EXPECT_TRUE(ended.empty());
  ASSERT_OK(store_->Delete("a", "", false));
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ReasonOf(ended[0]), "MODEL_NOT_FOUND");
}

TEST_F(StoreTest, ASnapshotShortensTheJournalAndIsReported) {
  auto recording = std::make_shared<testing::RecordingJournal>(journal_);
  Store::Options options;
  options.snapshot_bytes = 1;
  store_ = std::make_unique<Store>(std::make_unique<testing::JournalDecorator>(recording), options);
  Create("a");
  for (int i = 0; i < 200; ++i) {
    const Columns mistake = Columns().AddDense({1, 2}, i % 2 == 0 ? 1 : -1);
    ASSERT_OK(Send(*store_, "a", "p", mistake.batch()).status);
  }
  recording->AwaitSnapshots(1);
  const std::string state = StateBytes(*store_->Acquire("a").value());
  store_.reset();  // finishes the snapshot it is at
  Open(Store::Options());
  const ModelSummary summary = store_->Get("a").value();
  EXPECT_NE(summary.journal->snapshot_time, absl::InfinitePast());
  EXPECT_EQ(StateBytes(*store_->Acquire("a").value()), state);
  uint64_t all = 0;
  for (const storage::UpdateRecord& record : recording->records()) all += record.ByteSizeLong();
  EXPECT_LT(summary.journal->bytes, all);
}

TEST(StoreCreation, SaysThatAModelWasCreatedWithAnotherVersionOfIcu) {
  auto owned = std::make_unique<MemoryJournal>();
  MemoryJournal& journal = *owned;
  std::vector<std::string> reports;
  Store::Options options;
  options.on_other_icu = [&reports](const std::string& model, const std::string& version) {
    reports.push_back(model + " " + version);
  };
  Store store(std::move(owned), options);
  for (const char* name : {"models/same", "models/other"}) {
    v1::Model settings;
    settings.set_name(name);
    settings.mutable_feature_space()->mutable_text()->set_bits(4);
    const auto created = store.Create(settings, "", false);
    ASSERT_OK(created.status());
    EXPECT_EQ(created->feature_space().text().icu_version(), IcuVersion());
  }
  auto header = journal.Find("models/other");
  ASSERT_OK(header.status());
  const storage::ModelHeader before = *header;
  header->mutable_model()->mutable_feature_space()->mutable_text()->set_icu_version("1.0");
  ASSERT_OK(journal.Replace(*header, before));
  ASSERT_OK(store.Acquire("models/same").status());
  ASSERT_OK(store.Acquire("models/other").status());
  EXPECT_EQ(reports, std::vector<std::string>{"models/other 1.0"});
}

TEST(StoreReports, MemberVotesAreOfTheModelsWithMembersAloneAndNotTakenFromRequests) {
  Store store(std::make_unique<MemoryJournal>(), {});
  for (const std::string learner : {"auto", "arow"}) {
    v1::Model settings = testing::DenseSettings(learner, 2);
    testing::SetLearner(*settings.mutable_learner(), learner);
    settings.add_members()->set_mistakes(7);
    ASSERT_OK(store.Create(settings, "", false).status());
    const testing::Columns rows =
        testing::Columns().AddDense({1, 0}, 1).AddDense({0, 1}, -1).AddDense({1, 0.5}, 1);
    ASSERT_OK(testing::Send(store, learner, "", rows.batch()).status);
    const ModelSummary summary = store.Get(settings.name()).value();
    const bool votes = learner == "auto";
    ASSERT_EQ(summary.settings.members_size(), votes ? 8 : 0);
    if (!votes) continue;
    double all = 0;
    for (const v1::Member& member : summary.settings.members()) {
      EXPECT_FALSE(member.retired());
      EXPECT_LE(member.mistakes(), 3U);
      all += member.vote();
    }
    EXPECT_NEAR(all, 1, 1e-9);
  }
}

TEST_F(StoreTest, ListsAndReportsLeaveOutWhatMayBeAsLargeAsTheModel) {
  v1::Model settings = DenseSettings("a", 1);
  settings.add_label_names("ham");
  settings.add_label_names("spam");
  v1::WeightVector& start = *settings.mutable_learner()->mutable_starting_weights()->add_vectors();
  start.add_indices(0);
  start.add_values(1);
  ASSERT_OK(store_->Create(settings, "", false).status());
  const auto has = [](const absl::StatusOr<ModelSummary>& summary) {
    EXPECT_OK(summary.status());
    const bool starts = summary->settings.learner().has_starting_weights();
    EXPECT_EQ(summary->settings.label_names_size(), starts ? 2 : 0);
    return starts;
  };
  // Not in memory, then in memory.
  EXPECT_FALSE(has(store_->GetSummary("a")));
  EXPECT_TRUE(has(store_->Get("a")));
  EXPECT_FALSE(has(store_->GetSummary("a")));
  EXPECT_FALSE(has(store_->GetReport("a")));
}

bool All(const v1::Model&) { return true; }
bool Even(const v1::Model& model) { return (model.name().back() - '0') % 2 == 0; }

class SearchTest : public StoreTest {
 protected:
  static constexpr int kModels = 700;

  SearchTest() {
    for (int i = 0; i < kModels; ++i) Create(Name(i), 1);
  }
  static std::string Name(int i) { return absl::StrFormat("models/m%03d", i); }

  // The names of all pages.
  std::vector<std::string> Names(size_t limit, size_t most_read,
                                 const std::function<bool(const v1::Model&)>& wanted) {
    std::vector<std::string> names;
    std::string after;
    do {
      const absl::StatusOr<Store::Found> found = store_->Search(after, limit, most_read, wanted);
      if (!found.ok() || found->models.size() > limit ||
          (!after.empty() && found->next <= after && !found->next.empty())) {
        ADD_FAILURE() << found.status();
        break;
      }
      for (const ModelSummary& model : found->models) names.push_back(model.settings.name());
      after = found->next;
    } while (!after.empty());
    return names;
  }
};

TEST_F(SearchTest, FindsEveryModelOnceInTheOrderOfNamesWhateverThePagesAndTheReading) {
  std::vector<std::string> all;
  std::vector<std::string> even;
  for (int i = 0; i < kModels; ++i) {
    all.push_back(Name(i));
    if (i % 2 == 0) even.push_back(Name(i));
  }
  for (const size_t limit : {1, 7, 256, 350, 700, 1000}) {
    for (const size_t most_read : {1, 10, 256, 257, 700, 10'000}) {
      if (limit * 100 < kModels && most_read > 1000) continue;
      EXPECT_EQ(Names(limit, most_read, All), all) << limit << " " << most_read;
      EXPECT_EQ(Names(limit, most_read, Even), even) << limit << " " << most_read;
    }
  }
}

TEST_F(SearchTest, LooksAtNoMoreThanItMay) {
  int looked_at = 0;
  const auto none = [&](const v1::Model&) {
    ++looked_at;
    return false;
  };
  const absl::StatusOr<Store::Found> found = store_->Search("", 10, 300, none);
  ASSERT_OK(found.status());
  EXPECT_EQ(looked_at, 300);
  EXPECT_TRUE(found->models.empty());
  EXPECT_EQ(found->next, Name(299));
  // There is nothing after the last.
  EXPECT_EQ(store_->Search(Name(399), 10, 300, none)->next, "");
  EXPECT_EQ(store_->Search(Name(kModels - 1), 10, 300, none)->next, "");
}

}  // namespace
}  // namespace perceptrond
