// The store: names, etags, deletion, the memory budget, and its end.
#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/recording_journal.h"
#include "tests/support/textbook.h"
#include "tests/support/traffic.h"

namespace perceptrond {
namespace {

using testing::Columns;
using testing::DenseSettings;
using testing::ReasonOf;
using testing::Send;
using testing::StateBytes;
using testing::SvmExample;
using testing::Textbook;
namespace v1 = ::perceptron::v1;

class StoreTest : public ::testing::Test {
 protected:
  void Open(const Store::Options& options) {
    store_.reset();
    store_ =
        std::make_unique<Store>(std::make_unique<testing::JournalDecorator>(journal_), options);
  }
  StoreTest() { Open(Store::Options()); }

  v1::Model Create(const std::string& name, uint32_t dimension = 2) {
    const auto created = store_->Create(DenseSettings(name, dimension), "", false);
    EXPECT_OK(created.status());
    return created.value();
  }

  const std::shared_ptr<Journal> journal_ = std::make_shared<MemoryJournal>();
  std::unique_ptr<Store> store_;
  const Columns row_ = Columns().AddDense({1, 2}, 1);
};

TEST_F(StoreTest, CreatesOnceUnlessTheSameRequestComesAgain) {
  const auto first = store_->Create(DenseSettings("a", 2), "request-1", false);
  ASSERT_OK(first.status());
  EXPECT_EQ(first->learner().step_size(), 1);
  EXPECT_EQ(first->state(), v1::MODEL_STATE_ACTIVE);
  const auto again = store_->Create(DenseSettings("a", 2), "request-1", false);
  ASSERT_OK(again.status());
  EXPECT_EQ(again->uid(), first->uid());
  for (const char* request : {"", "request-2"}) {
    const absl::Status status = store_->Create(DenseSettings("a", 2), request, false).status();
    EXPECT_TRUE(absl::IsAlreadyExists(status));
    EXPECT_EQ(ReasonOf(status), "MODEL_EXISTS");
  }
  EXPECT_EQ(store_->Count().value(), 1U);
}

// Standings of one model are damaged for as long as it says so.
class DamagedJournal final : public testing::JournalDecorator {
 public:
  using JournalDecorator::JournalDecorator;
  absl::StatusOr<CommittedState> LoadCommittedState(uint64_t model_id) override {
    if (model_id == damaged_id) return absl::DataLossError("block checksum mismatch");
    return JournalDecorator::LoadCommittedState(model_id);
  }
  std::atomic<uint64_t> damaged_id = 0;
};

// Who is on call has the alert, which names no model, and the log.
TEST_F(StoreTest, ADamagedModelIsNamedInTheErrorAndToldOfOnceUntilItCanBeLoaded) {
  Create("a");
  Create("b");
  std::vector<std::string> told;
  Store::Options options;
  options.on_damage = [&told](const std::string& name, const absl::Status& why) {
    told.push_back(absl::StrCat(name, ": ", why.message()));
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
  EXPECT_EQ(told, std::vector<std::string>({"a: " + message}));
  journal.damaged_id = 0;
  EXPECT_OK(store_->Acquire("a").status());
  EXPECT_EQ(told.size(), 1U);
}

TEST_F(StoreTest, OnlyValidatesWhenAsked) {
  EXPECT_OK(store_->Create(DenseSettings("a", 2), "", true).status());
  EXPECT_EQ(store_->Count().value(), 0U);
  EXPECT_TRUE(absl::IsInvalidArgument(store_->Create(DenseSettings("a", 0), "", true).status()));
  Create("a");
  EXPECT_OK(store_->Delete("a", "", true));
  EXPECT_EQ(store_->Count().value(), 1U);
}

TEST_F(StoreTest, AnEtagGuardsChangesAndDeletion) {
  const v1::Model first = Create("a");
  const auto describe = [](v1::Model& model) {
    model.set_description("changed");
    return absl::OkStatus();
  };
  const auto changed = store_->Change("a", first.etag(), false, describe);
  ASSERT_OK(changed.status());
  EXPECT_NE(changed->etag(), first.etag());
  EXPECT_EQ(ReasonOf(store_->Change("a", first.etag(), false, describe).status()), "ETAG_MISMATCH");
  EXPECT_TRUE(absl::IsAborted(store_->Delete("a", first.etag(), false)));
  EXPECT_OK(store_->Delete("a", changed->etag(), false));
}

TEST_F(StoreTest, WhatIsNotThereIsNotFound) {
  const auto nothing = [](v1::Model&) { return absl::OkStatus(); };
  for (const absl::Status& status :
       {store_->Acquire("a").status(), store_->Get("a").status(), store_->Delete("a", "", false),
        store_->Change("a", "", false, nothing).status()}) {
    EXPECT_TRUE(absl::IsNotFound(status));
    EXPECT_EQ(ReasonOf(status), "MODEL_NOT_FOUND");
  }
}

TEST_F(StoreTest, AFrozenModelStaysFrozenAfterARestart) {
  Create("a");
  ASSERT_OK(store_
                ->Change("a", "", false,
                         [](v1::Model& model) {
                           model.set_state(v1::MODEL_STATE_FROZEN);
                           return absl::OkStatus();
                         })
                .status());
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

// Deletes nothing.
class UndeletingJournal final : public testing::JournalDecorator {
 public:
  using JournalDecorator::JournalDecorator;
  absl::Status Delete(absl::string_view) override { return absl::UnavailableError("injected"); }
};

TEST_F(StoreTest, AModelWhoseDeletionFailedIsThereAsItWas) {
  store_.reset();
  store_ = std::make_unique<Store>(std::make_unique<UndeletingJournal>(journal_), Store::Options());
  Create("a");
  ASSERT_OK(Send(*store_, "a", "p", row_.batch(), 0).status);
  EXPECT_TRUE(absl::IsUnavailable(store_->Delete("a", "", false)));
  const testing::Sent again = Send(*store_, "a", "p", row_.batch(), 0);
  ASSERT_OK(again.status);
  EXPECT_EQ(again.outcome.duplicates, 1U);
  EXPECT_EQ(store_->Count().value(), 1U);
}

TEST_F(StoreTest, AListLeavesOutStartingWeights) {
  v1::Model settings = DenseSettings("a", 2);
  settings.mutable_learner()->mutable_starting_weights()->add_indices(1);
  settings.mutable_learner()->mutable_starting_weights()->add_values(3);
  ASSERT_OK(store_->Create(settings, "", false).status());
  const ModelSummary listed = store_->List("", 10).value().at(0);
  EXPECT_TRUE(listed.settings.learner().has_starting_weights());
  EXPECT_EQ(listed.settings.learner().starting_weights().values_size(), 0);
  EXPECT_EQ(store_->Get("a").value().settings.learner().starting_weights().values_size(), 1);
}

TEST_F(StoreTest, EverythingSubmittedIsAnsweredBeforeTheStoreEnds) {
  // Commits that ask for snapshots while the store goes.
  for (int round = 0; round < 30; ++round) {
    Store::Options options;
    options.snapshot_bytes = 1;
    Open(options);
    const std::string name = absl::StrCat("model-", round);
    Create(name, 20'000);
    int answered = 0;
    {
      std::shared_ptr<Model> model = store_->Acquire(name).value();
      Producer producer("");
      LearnOutcome outcome;
      for (int i = 0; i < 4; ++i) {
        const Columns columns =
            Columns().AddDense(std::vector<float>(20'000, 1), i % 2 == 0 ? 1 : -1);
        LearnCall call;
        call.batch = columns.batch();
        call.producer = &producer;
        ASSERT_OK(model->Learn(call, outcome));
        ASSERT_EQ(outcome.mistakes, 1U);
        store_->committer().Submit(model, [&](const absl::Status& status) {
          EXPECT_OK(status);
          ++answered;
        });
      }
    }
    store_.reset();
    EXPECT_EQ(answered, 4);
  }
}

// Integers: the reference in float64 is exact, and so is float32.
SvmExample IntegerExample(std::mt19937& random, uint32_t dimension) {
  SvmExample example;
  example.label = random() % 2 == 0 ? 1 : -1;
  for (uint32_t i = 0; i < dimension; i += 1 + random() % 40) {
    example.indices.push_back(i);
    example.values.push_back(static_cast<float>(static_cast<int>(random() % 7) - 3));
  }
  return example;
}

TEST_F(StoreTest, ServesMoreModelsThanFitFromSeveralThreads) {
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
    const WeightList list = ListWeights(*model);
    std::vector<double> weights(kDimension);
    for (size_t i = 0; i < list.indices.size(); ++i) weights[list.indices[i]] = list.values[i];
    EXPECT_EQ(weights, twins[m].textbook.weights) << m;
    EXPECT_EQ(list.offset, twins[m].textbook.bias);
    examples += MakeReport(*model).examples();
  }
  EXPECT_EQ(examples, static_cast<uint64_t>(kThreads * kMessages));
}

TEST_F(StoreTest, KeepsModelsThatAreHeldWhateverTheBudget) {
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

TEST_F(StoreTest, TheLeastRecentlyUsedLeavesFirst) {
  Create("probe", 1000);
  const size_t each = MeasureMemory(store_->Acquire("probe").value()->core()).total;
  Store::Options options;
  options.memory_budget = 3 * each + each / 2;
  Open(options);
  for (const char* name : {"a", "b", "c", "d"}) Create(name, 1000);
  for (const char* name : {"a", "b", "c", "a", "d"}) ASSERT_OK(store_->Acquire(name).status());
  std::vector<std::string> in_memory;
  const std::vector<ModelSummary> page = store_->List("", 10).value();
  for (const ModelSummary& summary : page) {
    if (summary.in_memory) in_memory.push_back(summary.settings.name());
  }
  EXPECT_EQ(in_memory, (std::vector<std::string>{"a", "c", "d"}));
  EXPECT_LE(store_->stats().memory_bytes, options.memory_budget);
}

TEST_F(StoreTest, ProducersCountAsMemoryAlsoIfAllTheySendIsRight) {
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
  EXPECT_GT(MeasureMemory(store_->Acquire("a").value()->core()).total,
            lone + 500 * sizeof(Producer));
  EXPECT_EQ(store_->stats().models_in_memory, 1U);  // "b" had to go
  const size_t full = store_->stats().memory_bytes;
  Open(Store::Options());
  ASSERT_OK(store_->Acquire("a").status());
  EXPECT_NEAR(store_->stats().memory_bytes, full, full / 10);
}

TEST_F(StoreTest, UpdatesThatWaitCountAsMemory) {
  v1::Model settings = DenseSettings("a", 10'000);
  settings.mutable_retention()->set_updates(0);
  ASSERT_OK(store_->Create(settings, "", false).status());
  const std::shared_ptr<Model> model = store_->Acquire("a").value();
  const size_t before = MeasureMemory(model->core()).total;
  Producer producer("");
  LearnCall call;
  const Columns columns = Columns().AddDense(std::vector<float>(10'000, 1), 1);
  call.batch = columns.batch();
  call.producer = &producer;
  LearnOutcome outcome;
  ASSERT_OK(model->Learn(call, outcome));
  EXPECT_GE(MeasureMemory(model->core()).total, before + 10'000 * sizeof(float));
  ASSERT_OK(store_->committer().Commit(model));
  EXPECT_LT(MeasureMemory(model->core()).total, before + 1000);
}

TEST_F(StoreTest, WhatIsRetainedCountsAsMemory) {
  v1::Model settings = DenseSettings("a", 10'000);
  settings.mutable_retention()->set_updates(2);
  ASSERT_OK(store_->Create(settings, "", false).status());
  const std::shared_ptr<Model> model = store_->Acquire("a").value();
  const size_t before = MeasureMemory(model->core()).total;
  for (const float value : {1.0F, -2.0F, 3.0F}) {
    ASSERT_OK(
        Send(*store_, "a", "p", Columns().AddDense(std::vector<float>(10'000, value), 1).batch())
            .status);
  }
  EXPECT_EQ(model->revision(), 3U);
  EXPECT_GE(MeasureMemory(model->core()).total, before + 2 * 10'000 * sizeof(float));
  EXPECT_LT(MeasureMemory(model->core()).total, before + 3 * 10'000 * sizeof(float));
}

TEST_F(StoreTest, ADeletedModelsStreamsAreToldToEnd) {
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

TEST_F(StoreTest, ConcurrentCallersShareOneLoad) {
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

TEST_F(StoreTest, ASnapshotShortensTheJournalAndIsReported) {
  auto recording = std::make_shared<testing::RecordingJournal>(journal_);
  Store::Options options;
  options.snapshot_bytes = 1;
  store_ = std::make_unique<Store>(std::make_unique<testing::JournalDecorator>(recording), options);
  Create("a", 10);
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    ASSERT_OK(Send(*store_, "a", "p", Columns({IntegerExample(random, 10)}).batch()).status);
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

}  // namespace
}  // namespace perceptrond
