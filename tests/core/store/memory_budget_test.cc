// What fits the memory budget, what it evicts for, and what it refuses.
#include "core/store/memory_budget.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "core/error/error.h"
#include "gtest/gtest.h"
#include "tests/core/store/store_fixture.h"
#include "tests/support/stop_after.h"

namespace perceptrond {
namespace {

using testing::DenseSettings;
using testing::ReasonOf;
using testing::StoreTest;

constexpr MemoryUse kModels = MemoryUse::kModels;
constexpr MemoryUse kRequests = MemoryUse::kRequests;
constexpr MemoryUse kAnswers = MemoryUse::kAnswers;

TEST(MemoryBudget, DataInFlightHasItsShareWhateverTheModelsTake) {
  MemoryBudget budget(1000, 250);
  EXPECT_EQ(budget.model_room(), 750U);
  budget.ChangeModels(0, 900);
  EXPECT_TRUE(budget.TryReserve(kRequests, 250));
  EXPECT_FALSE(budget.TryReserve(kAnswers, 1));
  EXPECT_EQ(budget.reserved(kRequests), 250U);
  EXPECT_EQ(budget.reserved(kAnswers), 0U);
  EXPECT_EQ(budget.refusals(kAnswers), 1U);
  budget.Release(kRequests, 250);
  EXPECT_TRUE(budget.TryReserve(kAnswers, 1));
}

TEST(MemoryBudget, BeyondItsShareItTakesWhatModelsCanSpare) {
  MemoryBudget budget(1000, 250);
  size_t models = 750;
  budget.ChangeModels(0, models);
  // Models that somebody uses take 300.
  budget.OnNoRoom([&] {
    const size_t now = std::max<size_t>(300, std::min(models, budget.model_room()));
    budget.ChangeModels(models, now);
    models = now;
  });
  EXPECT_TRUE(budget.TryReserve(kRequests, 200));
  EXPECT_EQ(models, 750U);
  EXPECT_TRUE(budget.TryReserve(kRequests, 400));
  EXPECT_EQ(models, 400U);
  EXPECT_TRUE(budget.TryReserve(kRequests, 100));
  EXPECT_FALSE(budget.TryReserve(kRequests, 1));
  EXPECT_EQ(budget.reserved(kModels), 300U);
  EXPECT_EQ(budget.reserved(kRequests), 700U);
}

TEST(MemoryBudget, OneReservationAtATimeAlwaysSucceeds) {
  MemoryBudget budget(1000, 250);
  EXPECT_TRUE(budget.TryReserve(kRequests, 125));
  EXPECT_FALSE(budget.IsShort());
  EXPECT_TRUE(budget.TryReserve(kRequests, 5000));
  EXPECT_TRUE(budget.IsShort());
  EXPECT_FALSE(budget.TryReserve(kRequests, 1));
  budget.Release(kRequests, 5000);
  EXPECT_TRUE(budget.TryReserve(kRequests, 5000));
}

TEST(MemoryBudget, DataInFlightHasALimitOfItsOwnForWhichNoModelIsEvicted) {
  MemoryBudget budget(1000, 250, 400);
  budget.OnNoRoom([] { ADD_FAILURE() << "evicts for nothing"; });
  EXPECT_TRUE(budget.TryReserve(kRequests, 400));
  EXPECT_FALSE(budget.TryReserve(kAnswers, 1));
  EXPECT_EQ(budget.refusals(kAnswers), 1U);
  const absl::Status status = MemoryExhausted("the answer", 1, budget);
  EXPECT_EQ(ReasonOf(status), "MEMORY_EXHAUSTED");
  budget.Release(kRequests, 100);
  EXPECT_TRUE(budget.TryReserve(kAnswers, 100));
}

TEST(WorkMemory, WorkThatDoesNotFitRunsAfterOthersAndAloneIfItMust) {
  constexpr size_t kCapacity = 4 * WorkMemory::Lease::kFreeBytes;
  WorkMemory work(kCapacity);
  std::atomic<bool> done = false;
  absl::Notification second;
  std::thread large;
  {
    const WorkMemory::Lease first(work, kCapacity / 2);
    const WorkMemory::Lease beside(work, kCapacity / 2);
    large = std::thread([&] {
      const WorkMemory::Lease lease(work, 10 * kCapacity);
      EXPECT_TRUE(done);
      second.Notify();
    });
    const WorkMemory::Lease small(work, WorkMemory::Lease::kFreeBytes - 1);
    done = true;
  }
  second.WaitForNotification();
  large.join();
}

TEST(WithinMemory, AFailedAllocationIsAStatus) {
  const absl::Status status = WithinMemory([]() -> absl::Status { throw std::bad_alloc(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), "OUT_OF_MEMORY");
  EXPECT_OK(WithinMemory([] { return absl::OkStatus(); }));
}

class ModelMemoryTest : public StoreTest {};

TEST_F(ModelMemoryTest, DataInFlightEvictsModelsThatNobodyUses) {
  Store::Options options;
  options.memory_budget = 4 << 20;
  options.in_flight_share = 1 << 20;
  Open(options);
  for (const char* name : {"a", "b", "c"}) Create(name, 150'000);
  const std::shared_ptr<Model> used = store_->Acquire("a").value();
  for (const char* name : {"b", "c"}) ASSERT_OK(store_->Acquire(name).status());
  EXPECT_EQ(store_->stats().models_in_memory, 3U);
  EXPECT_TRUE(store_->memory().TryReserve(kRequests, 3 << 20));
  EXPECT_EQ(store_->stats().models_in_memory, 1U);
  EXPECT_EQ(store_->GetIfLoaded("a"), used);
  EXPECT_FALSE(store_->memory().TryReserve(kRequests, 1 << 20));
}

TEST_F(ModelMemoryTest, AModelThatThoseInUseLeaveNoRoomForIsNotLoaded) {
  Store::Options options;
  options.memory_budget = options.max_model_bytes = 3 << 20;
  Open(options);
  for (const char* name : {"a", "b"}) Create(name, 500'000);
  std::shared_ptr<Model> used = store_->Acquire("a").value();
  const absl::Status status = store_->Acquire("b").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(ReasonOf(status), "MODEL_TOO_LARGE");
  EXPECT_EQ(store_->memory().refusals(kModels), 1U);
  used.reset();
  EXPECT_OK(store_->Acquire("b").status());
}

TEST_F(ModelMemoryTest, AModelWaitsForThoseInUseAndStopsWithItsCall) {
  Store::Options options;
  options.memory_budget = options.max_model_bytes = 3 << 20;
  Open(options);
  for (const char* name : {"a", "b", "c"}) Create(name, 500'000);
  std::shared_ptr<Model> used = store_->Acquire("a").value();
  {
    const testing::StopAfter token(2);
    const CancellationScope scope(&token, 1);
    EXPECT_EQ(store_->Acquire("b").status().code(), absl::StatusCode::kCancelled);
  }
  // Two that leave each other no room: both are loaded in the end.
  std::vector<std::thread> waiting;
  for (const char* name : {"b", "c"})
    waiting.emplace_back([this, name] { EXPECT_OK(store_->Acquire(name).status()); });
  used.reset();
  for (std::thread& thread : waiting) thread.join();
  EXPECT_EQ(store_->memory().refusals(kModels), 0U);
}

TEST_F(ModelMemoryTest, AModelThatAloneExceedsTheLimitIsLoadedBesideASmallOne) {
  Create("small", 10);
  Create("large", 500'000);
  Store::Options options;
  options.memory_budget = options.max_model_bytes = 1 << 20;
  Open(options);
  const std::shared_ptr<Model> small = store_->Acquire("small").value();
  const std::shared_ptr<Model> large = store_->Acquire("large").value();
  EXPECT_GT(store_->stats().memory_bytes, options.memory_budget);
}

TEST_F(ModelMemoryTest, NamesEndWhereTheModelsMemoryDoes) {
  Store::Options options;
  options.limits.max_model_bytes = 1 << 20;
  Open(options);
  ::perceptron::v1::Model settings;
  settings.set_name("models/n");
  settings.mutable_feature_space()->mutable_named()->set_max_features(1 << 20);
  settings.mutable_stored_examples()->set_max_updates(0);
  ASSERT_OK(store_->Create(settings, "", false).status());
  const std::shared_ptr<Model> model = store_->Acquire("models/n").value();
  Producer producer("");
  LearnOutcome outcome;
  for (int i = 0; i < 100'000 && outcome.row_errors.empty(); ++i) {
    NameTable names;
    const std::string name = absl::StrCat("name-", i);
    const uint32_t length = static_cast<uint32_t>(name.size());
    ASSERT_FALSE(names.Append(name, {&length, 1}));
    const uint32_t row_end = 1;
    const uint32_t number = 0;
    const float value = 1;
    const int32_t label = i % 2 == 0 ? 1 : -1;
    LearnCall call;
    call.batch.row_ends = {&row_end, 1};
    call.batch.indices = {&number, 1};
    call.batch.values = {&value, 1};
    call.batch.labels = {&label, 1};
    call.batch.names = &names;
    call.producer = &producer;
    MutexLock turn(&producer.turn);
    ASSERT_OK(model->Learn(call, outcome));
    if (i % 1000 == 0) ASSERT_OK(store_->committer().Commit(model));
  }
  ASSERT_EQ(outcome.row_errors.size(), 1U);
  EXPECT_EQ(outcome.row_errors[0].error.code, ValidationCode::kFeatureCap);
  EXPECT_GT(model->revision(), 5000U);
}

TEST_F(ModelMemoryTest, RowsThatARuleKeepsEndWhereTheModelsMemoryDoes) {
  Store::Options options;
  options.limits.max_model_bytes = 1 << 20;
  Open(options);
  ::perceptron::v1::Model settings = DenseSettings("k", 1000);
  settings.mutable_learner()->mutable_kernel_perceptron()->set_budget(100'000);
  settings.mutable_stored_examples()->set_max_updates(0);
  ASSERT_OK(store_->Create(settings, "", false).status());
  LearnOutcome outcome;
  for (int i = 0; i < 1000 && outcome.row_errors.empty(); ++i) {
    std::vector<float> row(1000, 1.0F);
    row[i] = 100;
    const testing::Columns batch = testing::Columns().AddDense(row, i % 2 == 0 ? 1 : -1);
    outcome = testing::Send(*store_, "k", "p", batch.batch()).outcome;
  }
  ASSERT_EQ(outcome.row_errors.size(), 1U);
  EXPECT_EQ(outcome.row_errors[0].error.code, ValidationCode::kFeatureCap);
  const size_t bytes = MeasureMemory(*store_->Acquire("k").value()).total;
  EXPECT_GT(bytes, options.limits.max_model_bytes);
  EXPECT_LT(bytes, 2 * options.limits.max_model_bytes);
}

TEST_F(ModelMemoryTest, ThereAreAtMostMaxModels) {
  Store::Options options;
  options.max_models = 2;
  Open(options);
  Create("a");
  Create("b");
  const absl::Status status = store_->Create(DenseSettings("c", 2), "", false).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(ReasonOf(status), "MODEL_LIMIT");
  ASSERT_OK(store_->Delete("a", "", false));
  Create("c");
}

TEST_F(ModelMemoryTest, AModelWithMoreFeaturesThanAllowedIsNotCreated) {
  Store::Options options;
  options.max_model_features = 100;
  Open(options);
  Create("fits", 100);
  const absl::Status status = store_->Create(DenseSettings("large", 101), "", false).status();
  EXPECT_EQ(ReasonOf(status), "MODEL_TOO_LARGE");
}

// A torn ledger stands for an update that a failed allocation cut short.
TEST_F(ModelMemoryTest, AModelWhoseUpdateWasCutShortIsLoadedAsTheJournalHasIt) {
  Create("a");
  ASSERT_OK(testing::Send(*store_, "a", "p", row_.batch()).status);
  const std::shared_ptr<Model> torn = store_->Acquire("a").value();
  {
    // Learned, and not in the journal.
    Producer producer("");
    LearnCall call;
    const testing::Columns other = testing::Columns().AddDense({-3, -1}, 1);
    call.batch = other.batch();
    call.producer = &producer;
    LearnOutcome outcome;
    MutexLock turn(&producer.turn);
    ASSERT_OK(torn->Learn(call, outcome));
    EXPECT_EQ(torn->revision(), 2U);
  }
  try {
    const TornByException mark(torn->ledger());
    throw std::bad_alloc();
  } catch (const std::bad_alloc&) {
  }
  EXPECT_EQ(ReasonOf(torn->closed()), "OUT_OF_MEMORY");
  PredictOutcome predicted;
  EXPECT_EQ(ReasonOf(torn->Predict(row_.batch(), {}, 0, predicted)), "OUT_OF_MEMORY");
  const std::shared_ptr<Model> again = store_->Acquire("a").value();
  EXPECT_NE(again, torn);
  EXPECT_EQ(again->revision(), 1U);
  EXPECT_EQ(ReasonOf(store_->committer().Commit(torn)), "OUT_OF_MEMORY");
  EXPECT_EQ(store_->Acquire("a").value(), again);
  const testing::Sent sent = testing::Send(*store_, "a", "p", row_.batch(), 1);
  EXPECT_OK(sent.status);
}

}  // namespace
}  // namespace perceptrond
