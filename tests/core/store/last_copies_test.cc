// Copies that predict while a fleet's journal is out of reach.
#include "core/store/last_copies.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "core/fleet/fleet.h"
#include "core/journal/memory_journal.h"
#include "core/store/store.h"
#include "tests/core/store/store_fixture.h"
#include "tests/support/faulty_journal.h"
#include "tests/support/wait_until.h"

namespace perceptrond::testing {
namespace {

class LastCopiesTest : public StoreTest {
 protected:
  LastCopiesTest() {
    budget_.OnNoRoom([] {});
  }

  std::shared_ptr<const Model> ModelOf(const std::string& name) {
    Create(name);
    return store_->Acquire(name).value();
  }
  // Attempts to load `name` come to this.
  void Decide(const std::string& name, absl::Status status) {
    MutexLock lock(&mutex_);
    outcomes_[name] = std::move(status);
  }
  std::unique_ptr<LastCopies> MakeCopies() {
    return std::make_unique<LastCopies>(budget_, [this](const std::string& name) {
      MutexLock lock(&mutex_);
      return outcomes_[name];
    });
  }
  static void Keep(LastCopies& copies, const std::shared_ptr<const Model>& model,
                   const absl::Status& why = absl::OkStatus()) {
    copies.Keep(model, why);
    copies.OnLeft(*model);
  }
  size_t counted() const { return budget_.reserved(MemoryUse::kModels); }

  const absl::Status away_ = absl::UnavailableError("it does not answer");
  MemoryBudget budget_{1 << 30, 1 << 20};
  Mutex mutex_;
  std::map<std::string, absl::Status> outcomes_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(LastCopiesTest, ACopyIsFoundAndCountedUntilItsModelIsLoaded) {
  const auto model = ModelOf("models/m");
  Decide("models/m", away_);
  const auto copies = MakeCopies();
  const size_t before = counted();
  Keep(*copies, model);
  EXPECT_EQ(copies->Find("models/m"), model);
  EXPECT_EQ(copies->Find("models/other"), nullptr);
  EXPECT_GT(counted(), before);
  Decide("models/m", absl::OkStatus());
  WaitUntil([&] { return copies->Find("models/m") == nullptr; });
  WaitUntil([&] { return counted() == before; });
}

TEST_F(LastCopiesTest, AModelIsNotLoadedBeforeItHasLeftMemory) {
  const auto model = ModelOf("models/m");
  const auto other = ModelOf("models/other");
  std::atomic<bool> loaded = false;
  LastCopies copies(budget_, [&](const std::string& name) {
    loaded = loaded || name == "models/m";
    return absl::OkStatus();
  });
  copies.Keep(model, absl::OkStatus());
  Keep(copies, other);
  WaitUntil([&] { return copies.Find("models/other") == nullptr; });
  EXPECT_FALSE(loaded);
  copies.OnLeft(*model);
  WaitUntil([&] { return copies.Find("models/m") == nullptr; });
  EXPECT_TRUE(loaded);
}

TEST_F(LastCopiesTest, AModelWhoseJournalIsAwayIsUnavailableToLearners) {
  const auto model = ModelOf("models/m");
  Decide("models/m", away_);
  const auto copies = MakeCopies();
  Keep(*copies, model, away_);
  EXPECT_EQ(copies->CheckReadable("models/m").code(), absl::StatusCode::kUnavailable);
  EXPECT_OK(copies->CheckReadable("models/other"));
  Decide("models/m", absl::OkStatus());
  WaitUntil([&] { return copies->CheckReadable("models/m").ok(); });
}

TEST_F(LastCopiesTest, AModelThatCannotBeLoadedForAnotherReasonSaysItItselfAndKeepsNoOtherFromIt) {
  const auto model = ModelOf("models/m");
  const auto other = ModelOf("models/other");
  Decide("models/m", absl::DataLossError("corrupt"));
  const auto copies = MakeCopies();
  Keep(*copies, model, away_);
  Keep(*copies, other);
  WaitUntil([&] { return copies->CheckReadable("models/m").ok(); });
  WaitUntil([&] { return copies->Find("models/other") == nullptr; });
  EXPECT_EQ(copies->Find("models/m"), model);
}

TEST_F(LastCopiesTest, ADeletedModelHasNoCopy) {
  Decide("models/here", away_);
  Decide("models/elsewhere", absl::NotFoundError("deleted"));
  const auto here = ModelOf("models/here");
  const auto elsewhere = ModelOf("models/elsewhere");
  const auto copies = MakeCopies();
  Keep(*copies, here);
  Keep(*copies, elsewhere);
  copies->Remove("models/here");
  EXPECT_EQ(copies->Find("models/here"), nullptr);
  WaitUntil([&] { return copies->Find("models/elsewhere") == nullptr; });
}

TEST_F(LastCopiesTest, AfterTheEndNothingIsKept) {
  const auto model = ModelOf("models/m");
  const auto copies = MakeCopies();
  copies->Stop();
  Keep(*copies, model);
  EXPECT_EQ(copies->Find("models/m"), nullptr);
}

// A store of a fleet whose journal comes and goes.
class JournalAwayTest : public StoreTest {
 protected:
  JournalAwayTest() {
    using Fate = FaultyJournal::Fate;
    const auto plan = [this](FaultyJournal::Call, uint64_t) {
      return away_ ? Fate::kFails : Fate::kWorks;
    };
    Store::Options options;
    FleetOptions fleet;
    fleet.address = "server";
    fleet.now = [this] { return now_.load(); };
    options.fleet = std::make_shared<FleetOptions>(fleet);
    store_ =
        std::make_unique<Store>(std::make_unique<FaultyJournal>(fleet_journal_, plan), options);
    // Nobody else writes the partition.
    now_ = now_.load() + absl::ToChronoNanoseconds(fleet.writer_timeout);
    WaitUntil([this] { return store_->fleet()->stats().front().writes; });
  }
  ~JournalAwayTest() override {
    away_ = false;
    store_.reset();
  }

  v1::Model Composed(const std::string& name, const std::string& component) {
    v1::Model settings;
    settings.set_name(name);
    settings.mutable_feature_space()->mutable_composition()->add_inputs()->set_model(component);
    return store_->Create(settings, "", false).value();
  }
  absl::Status Learn(const std::string& name, int32_t label, int64_t offset) {
    return Send(*store_, name, "p", Columns().AddDense({1, 2}, label).batch(), offset, 0).status;
  }
  absl::Status Predict(const std::string& name, PredictOutcome& outcome) {
    ModelHandle handle(*store_);
    const auto model = handle.AcquireToPredict(name, 0);
    return model.ok() ? (*model)->Predict(row_.batch(), {}, 0, outcome) : model.status();
  }

  std::atomic<bool> away_ = false;
  std::atomic<Members::Clock::time_point> now_ = Members::Clock::time_point(std::chrono::hours(1));
  const std::shared_ptr<Journal> fleet_journal_ =
      std::make_shared<MemoryJournal>(MemoryJournal::Options{.tail_bytes = 1 << 20});
};

TEST_F(JournalAwayTest, AModelAndWhatIsComposedOfItGoOnPredicting) {
  Create("models/part");
  Composed("models/whole", "models/part");
  ASSERT_OK(Learn("models/part", 1, 0));
  ASSERT_OK(Learn("models/whole", 1, 0));
  PredictOutcome before;
  ASSERT_OK(Predict("models/whole", before));
  away_ = true;
  // A mistake, which cannot be written.
  EXPECT_FALSE(Learn("models/part", -1, 1).ok());
  EXPECT_EQ(store_->Acquire("models/part").status().code(), absl::StatusCode::kUnavailable);
  PredictOutcome outcome;
  EXPECT_OK(Predict("models/part", outcome));
  EXPECT_OK(Predict("models/whole", outcome));
  EXPECT_FALSE(Learn("models/whole", -1, 1).ok());
  away_ = false;
  WaitUntil([&] { return Learn("models/part", 1, 1).ok(); });
  ASSERT_OK(Predict("models/whole", outcome));
  EXPECT_EQ(outcome.fingerprint, before.fingerprint);
}

}  // namespace
}  // namespace perceptrond::testing
