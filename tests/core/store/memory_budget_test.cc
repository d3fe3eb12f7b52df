// The memory budget: what counts, which models leave memory, and what is refused.
#include "core/memory/memory_budget.h"

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

using testing::Columns;
using testing::DenseSettings;
using testing::ReasonOf;
using testing::Send;
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

// A model of names, and one whose rule keeps rows: each message brings more of them.
TEST_F(ModelMemoryTest, WhatAModelCollectsEndsWhereItsMemoryDoes) {
  Store::Options options;
  options.limits.max_model_bytes = 1 << 20;
  Open(options);
  ::perceptron::v1::Model names = testing::NamedSettings("names", 1 << 20);
  ::perceptron::v1::Model rows = DenseSettings("rows", 1000);
  rows.mutable_learner()->mutable_kernel_perceptron()->set_budget(100'000);
  const auto learn = [&](const std::string& name, int i) {
    const int label = i % 2 == 0 ? 1 : -1;
    if (name == "rows") {
      std::vector<float> row(1000, 1.0F);
      row[i] = 100;
      return Send(*store_, name, "p", Columns().AddDense(row, label).batch()).outcome;
    }
    std::vector<testing::NamedExample> examples;
    for (int k = 0; k < 50; ++k)
      examples.push_back({{{absl::StrCat("name-", 50 * i + k), 1}}, k % 2 == 0 ? 1 : -1});
    return Send(*store_, name, "p", testing::NamedColumns(examples).batch()).outcome;
  };
  for (::perceptron::v1::Model* const settings : {&names, &rows}) {
    SCOPED_TRACE(settings->name());
    settings->mutable_stored_examples()->set_max_updates(0);
    ASSERT_OK(store_->Create(*settings, "", false).status());
    LearnOutcome outcome;
    for (int i = 0; i < 1000 && outcome.row_errors.empty(); ++i)
      outcome = learn(settings->name(), i);
    ASSERT_FALSE(outcome.row_errors.empty());
    EXPECT_EQ(outcome.row_errors[0].error.code, ValidationCode::kFeatureCap);
    const size_t bytes = MeasureMemory(*store_->Acquire(settings->name()).value()).total;
    EXPECT_GT(bytes, options.limits.max_model_bytes / 2);
    EXPECT_LT(bytes, 2 * options.limits.max_model_bytes);
  }
}

// Waiting for the journal a large example is there several times.
TEST_F(ModelMemoryTest, ExamplesThatThereIsNoMemoryForUntilTheyAreWrittenAreNotLearned) {
  constexpr size_t kRow = 100'000;
  Store::Options options;
  options.memory_budget = 4 << 20;
  options.in_flight_share = 2 << 20;
  Open(options);
  Create("a", kRow);
  const std::shared_ptr<Model> model = store_->Acquire("a").value();
  Producer producer("");
  LearnCall call;
  const Columns row = Columns().AddDense(std::vector<float>(kRow, 1), 1);
  call.batch = row.batch();
  call.producer = &producer;
  LearnOutcome outcome;
  MutexLock turn(&producer.turn);
  ASSERT_TRUE(store_->memory().TryReserve(kRequests, 2 << 20));
  EXPECT_EQ(ReasonOf(model->Learn(call, outcome)), "MEMORY_EXHAUSTED");
  EXPECT_EQ(model->revision(), 0U);
  EXPECT_EQ(producer.position().next_offset, 0);
  store_->memory().Release(kRequests, 2 << 20);
  EXPECT_OK(model->Learn(call, outcome));
  EXPECT_EQ(model->revision(), 1U);
  EXPECT_EQ(store_->memory().reserved(kRequests), 0U);
  EXPECT_GT(outcome.uncommitted_bytes, 4 * kRow * sizeof(float));
  // Of a right row nothing waits.
  EXPECT_OK(model->Learn(call, outcome));
  EXPECT_EQ(outcome.updated_rows.size(), 0U);
  EXPECT_EQ(outcome.uncommitted_bytes, 0U);
}

TEST_F(ModelMemoryTest, ModelsBeyondALimitAreNotCreated) {
  Store::Options options;
  options.max_models = 2;
  // A twelfth is kept free for examples that cause updates.
  options.max_model_bytes = 12 << 17;
  Open(options);
  Create("fits", 11 << 15);
  const auto refusal = [&](uint32_t dimension, bool validate_only) {
    const absl::Status status =
        store_->Create(DenseSettings("c", dimension), "", validate_only).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    return ReasonOf(status);
  };
  for (const bool validate_only : {false, true}) {
    for (const uint32_t dimension : {(11U << 15) + 1, 1U << 28})
      EXPECT_EQ(refusal(dimension, validate_only), "MODEL_TOO_LARGE");
  }
  Create("b");
  EXPECT_EQ(refusal(2, false), "MODEL_LIMIT");
  ASSERT_OK(store_->Delete("b", "", false));
  Create("c");
  options.max_model_features = 100;
  Open(options);
  ASSERT_OK(store_->Delete("c", "", false));
  EXPECT_EQ(refusal(101, false), "MODEL_TOO_LARGE");
  Create("d", 100);
}

// A torn ledger stands for an update that a failed allocation cut short.
TEST_F(ModelMemoryTest, AModelWhoseUpdateWasCutShortIsLoadedAsTheJournalHasIt) {
  Create("a");
  ASSERT_OK(Send(*store_, "a", "p", row_.batch()).status);
  const std::shared_ptr<Model> torn = store_->Acquire("a").value();
  // Learned, and not in the journal.
  Producer producer("");
  LearnAlone(*torn, Columns().AddDense({-3, -1}, 1), producer);
  EXPECT_EQ(torn->revision(), 2U);
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
  const testing::Sent sent = Send(*store_, "a", "p", row_.batch(), 1);
  EXPECT_OK(sent.status);
}

TEST_F(ModelMemoryTest, TheLeastRecentlyUsedLeavesFirst) {
  Create("probe", 1000);
  const size_t each = MeasureMemory(*store_->Acquire("probe").value()).total;
  Store::Options options;
  options.memory_budget = 3 * each + each / 2;
  Open(options);
  for (const char* name : {"a", "b", "c", "d"}) Create(name, 1000);
  for (const char* name : {"a", "b", "c", "a", "d"}) ASSERT_OK(store_->Acquire(name).status());
  std::vector<std::string> in_memory;
  const std::vector<ModelSummary> page = store_->List("", 10).value().models;
  for (const ModelSummary& summary : page) {
    if (summary.in_memory) in_memory.push_back(summary.settings.name());
  }
  EXPECT_EQ(in_memory, (std::vector<std::string>{"a", "c", "d"}));
  EXPECT_LE(store_->stats().memory_bytes, options.memory_budget);
}

TEST_F(ModelMemoryTest, CopiesThatTakeMoreThanAllModelsLeaveNoneInMemory) {
  Store::Options options;
  options.memory_budget = 1 << 20;
  Open(options);
  Create("a", 10);
  Create("b", 10);
  {
    const ModelCopyMemory copy(store_->memory(), 2 << 20);
    EXPECT_EQ(store_->stats().models_in_memory, 0U);
  }
  EXPECT_OK(store_->Acquire("a").status());
}

TEST_F(ModelMemoryTest, ProducersCountAsMemoryAlsoIfAllTheySendIsRight) {
  Create("a");
  Create("b");
  ASSERT_OK(Send(*store_, "a", "p", row_.batch()).status);
  const size_t lone = store_->stats().memory_bytes;
  Store::Options options;
  options.memory_budget = 2 * lone + 400 * sizeof(Producer);
  Open(options);
  ASSERT_OK(store_->Acquire("b").status());
  for (int i = 0; i < 500; ++i)
    ASSERT_OK(Send(*store_, "a", absl::StrCat("producer", i), row_.batch()).status);
  EXPECT_EQ(store_->Acquire("a").value()->revision(), 1U);
  EXPECT_GT(MeasureMemory(*store_->Acquire("a").value()).total, lone + 500 * sizeof(Producer));
  EXPECT_EQ(store_->stats().models_in_memory, 1U);  // "b" had to go
  const size_t full = store_->stats().memory_bytes;
  Open(Store::Options());
  ASSERT_OK(store_->Acquire("a").status());
  EXPECT_NEAR(store_->stats().memory_bytes, full, full / 10);
}

TEST_F(ModelMemoryTest, UpdatesThatWaitAndStoredExamplesCountAsMemory) {
  constexpr size_t kRow = 10'000 * sizeof(float);
  for (const uint32_t stored : {0, 2}) {
    const std::string name = absl::StrCat("a", stored);
    ::perceptron::v1::Model settings = DenseSettings(name, 10'000);
    settings.mutable_stored_examples()->set_max_updates(stored);
    ASSERT_OK(store_->Create(settings, "", false).status());
    const std::shared_ptr<Model> model = store_->Acquire(name).value();
    const size_t before = MeasureMemory(*model).total;
    Producer producer("");
    for (const float value : {1.0F, -2.0F, 3.0F})
      LearnAlone(*model, Columns().AddDense(std::vector<float>(10'000, value), 1), producer);
    EXPECT_EQ(model->revision(), 3U);
    EXPECT_GE(MeasureMemory(*model).total, before + (stored + 3) * kRow);
    ASSERT_OK(store_->committer().Commit(model));
    EXPECT_GE(MeasureMemory(*model).total, before + stored * kRow);
    EXPECT_LT(MeasureMemory(*model).total, before + stored * kRow + kRow / 4);
  }
}

TEST_F(ModelMemoryTest, ConcurrentCallersShareOneLoad) {
  Create("a", 100'000);
  Open(Store::Options());
  std::vector<std::shared_ptr<Model>> models(8);
  std::vector<std::thread> threads;
  for (std::shared_ptr<Model>& model : models)
    threads.emplace_back([&] { model = store_->Acquire("a").value(); });
  for (std::thread& thread : threads) thread.join();
  for (const std::shared_ptr<Model>& model : models) EXPECT_EQ(model, models[0]);
  EXPECT_EQ(store_->stats().loads, 1U);
}

}  // namespace
}  // namespace perceptrond
