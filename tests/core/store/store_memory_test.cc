// The store's memory budget: what counts, which models leave memory, and who shares a load.
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/core/store/store_fixture.h"
#include "tests/support/textbook.h"

namespace perceptrond {
namespace {

using testing::Columns;
using testing::DenseSettings;
using testing::IntegerExample;
using testing::ReasonOf;
using testing::Send;
using testing::StoreTest;
using testing::SvmExample;
using testing::Textbook;
namespace v1 = ::perceptron::v1;

class StoreMemoryTest : public StoreTest {};

TEST_F(StoreMemoryTest, ServesMoreModelsThanFitFromSeveralThreads) {
  constexpr uint32_t kDimension = 1000;
  constexpr size_t kModels = 40;
  constexpr int kThreads = 4;
  constexpr int kMessages = 300;
  Store::Options options;
  options.memory_budget = 8 * kDimension * sizeof(float);
  options.snapshot_bytes = 2000;
  Open(options);
  struct Twin {
    Mutex mutex;
    Textbook textbook{kDimension};
  };
  std::vector<Twin> twins(kModels);
  for (size_t i = 0; i < kModels; ++i) Create(absl::StrCat("model-", i), kDimension);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < kMessages; ++i) {
        const size_t m = random() % kModels;
        const SvmExample example = IntegerExample(random, kDimension);
        MutexLock lock(&twins[m].mutex);  // so that both learn in the same order
        const bool mistake = twins[m].textbook.Learn(example);
        const testing::Sent sent = Send(*store_, absl::StrCat("model-", m),
                                        absl::StrCat("producer-", t), Columns({example}).batch());
        EXPECT_OK(sent.status);
        EXPECT_EQ(sent.outcome.mistakes, mistake ? 1U : 0U);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Store::Stats stats = store_->stats();
  EXPECT_GT(stats.evictions, kModels);
  EXPECT_LE(stats.loads, stats.evictions + stats.models_in_memory);
  EXPECT_LT(stats.models_in_memory, kModels / 2);
  uint64_t examples = 0;
  for (size_t m = 0; m < kModels; ++m) {
    const std::shared_ptr<Model> model = store_->Acquire(absl::StrCat("model-", m)).value();
    const WeightList list = ListWeights(*model)[0];
    std::vector<double> weights(kDimension);
    for (size_t i = 0; i < list.indices.size(); ++i) weights[list.indices[i]] = list.values[i];
    EXPECT_EQ(weights, twins[m].textbook.weights) << m;
    EXPECT_EQ(list.bias, twins[m].textbook.bias);
    examples += MakeReport(*model).examples();
  }
  EXPECT_EQ(examples, static_cast<uint64_t>(kThreads * kMessages));
}

TEST_F(StoreMemoryTest, KeepsModelsThatAreHeldWhateverTheBudget) {
  Store::Options options;
  options.memory_budget = 1;
  Open(options);
  for (int i = 0; i < 10; ++i) Create(absl::StrCat("model-", i), 100);
  const std::shared_ptr<Model> held = store_->Acquire("model-0").value();
  for (int i = 1; i < 10; ++i) ASSERT_OK(store_->Acquire(absl::StrCat("model-", i)).status());
  EXPECT_EQ(store_->Acquire("model-0").value(), held);
  EXPECT_EQ(store_->stats().models_in_memory, 2U);  // the held one and the last
  EXPECT_EQ(store_->stats().evictions, 8U);
  EXPECT_EQ(store_->stats().loads, 10U);
}

TEST_F(StoreMemoryTest, AModelThatWouldNotFitAloneIsNotCreated) {
  Store::Options options;
  options.max_model_bytes = 1 << 20;
  Open(options);
  Create("fits", 1 << 18);
  for (const uint32_t dimension : {(1U << 18) + 1, 1U << 28}) {
    const v1::Model settings = DenseSettings("large", dimension);
    const absl::Status status = store_->Create(settings, "", false).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_EQ(ReasonOf(status), "MODEL_TOO_LARGE");
    EXPECT_EQ(ReasonOf(store_->Create(settings, "", /*validate_only=*/true).status()),
              "MODEL_TOO_LARGE");
  }
  EXPECT_EQ(store_->catalogue().Count().value(), 1U);
}

TEST_F(StoreMemoryTest, TheLeastRecentlyUsedLeavesFirst) {
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

TEST_F(StoreMemoryTest, CopiesThatTakeMoreThanAllModelsLeaveNoneInMemory) {
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

TEST_F(StoreMemoryTest, ProducersCountAsMemoryAlsoIfAllTheySendIsRight) {
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

TEST_F(StoreMemoryTest, UpdatesThatWaitCountAsMemory) {
  v1::Model settings = DenseSettings("a", 10'000);
  settings.mutable_stored_examples()->set_max_updates(0);
  ASSERT_OK(store_->Create(settings, "", false).status());
  const std::shared_ptr<Model> model = store_->Acquire("a").value();
  const size_t before = MeasureMemory(*model).total;
  Producer producer("");
  LearnCall call;
  const Columns columns = Columns().AddDense(std::vector<float>(10'000, 1), 1);
  call.batch = columns.batch();
  call.producer = &producer;
  LearnOutcome outcome;
  ASSERT_OK(model->Learn(call, outcome));
  EXPECT_GE(MeasureMemory(*model).total, before + 10'000 * sizeof(float));
  ASSERT_OK(store_->committer().Commit(model));
  EXPECT_LT(MeasureMemory(*model).total, before + 1000);
}

TEST_F(StoreMemoryTest, StoredExamplesCountAsMemory) {
  v1::Model settings = DenseSettings("a", 10'000);
  settings.mutable_stored_examples()->set_max_updates(2);
  ASSERT_OK(store_->Create(settings, "", false).status());
  const std::shared_ptr<Model> model = store_->Acquire("a").value();
  const size_t before = MeasureMemory(*model).total;
  for (const float value : {1.0F, -2.0F, 3.0F}) {
    ASSERT_OK(
        Send(*store_, "a", "p", Columns().AddDense(std::vector<float>(10'000, value), 1).batch())
            .status);
  }
  EXPECT_EQ(model->revision(), 3U);
  EXPECT_GE(MeasureMemory(*model).total, before + 2 * 10'000 * sizeof(float));
  EXPECT_LT(MeasureMemory(*model).total, before + 3 * 10'000 * sizeof(float));
}

TEST_F(StoreMemoryTest, ConcurrentCallersShareOneLoad) {
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
