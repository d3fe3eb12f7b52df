#include "core/store/committer.h"

#include <atomic>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "core/journal/memory_journal.h"
#include "gtest/gtest.h"
#include "tests/core/store/store_fixture.h"
#include "tests/support/faulty_journal.h"

namespace perceptrond {
namespace {

// Records its notifications, and can block the committer.
class Waiter final : public CommitWaiter {
 public:
  void Committed(size_t submissions, const absl::Status& status) override {
    MutexLock lock(&mutex_);
    EXPECT_TRUE(status.ok()) << status;
    notifications_.push_back(submissions);
    const auto open = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return open_; };
    mutex_.Await(absl::Condition(&open));
  }

  void Hold() {
    MutexLock lock(&mutex_);
    open_ = false;
  }
  void LetGo() {
    MutexLock lock(&mutex_);
    open_ = true;
  }
  // Waits for that many notifications, and returns them.
  std::vector<size_t> Await(size_t calls) {
    MutexLock lock(&mutex_);
    const auto reached = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return notifications_.size() >= calls;
    };
    mutex_.Await(absl::Condition(&reached));
    return notifications_;
  }

 private:
  Mutex mutex_;
  bool open_ ABSL_GUARDED_BY(mutex_) = true;
  std::vector<size_t> notifications_ ABSL_GUARDED_BY(mutex_);
};

class CommitterTest : public testing::StoreTest {
 protected:
  CommitterTest() {
    Create("a");
    model_ = store_->Acquire("a").value();
  }
  void Submit(const std::shared_ptr<Waiter>& waiter, absl::Duration delay) {
    store_->committer().Submit(model_, waiter, delay);
  }
  // Something that must be written: the end of a pass.
  void Learn() {
    Producer producer("");
    LearnAlone(*model_, testing::Columns().AddDense({1}, 1), producer, {}, 1);
  }

  std::shared_ptr<Model> model_;
  const std::shared_ptr<Waiter> first_ = std::make_shared<Waiter>();
  const std::shared_ptr<Waiter> second_ = std::make_shared<Waiter>();
};

TEST_F(CommitterTest, AWaiterWithADelayIsNotifiedAlsoIfNoOtherComes) {
  Submit(first_, Committer::kLongDelay);
  EXPECT_EQ(first_->Await(1), std::vector<size_t>{1});
}

TEST_F(CommitterTest, WhatAWaiterSubmitsInARowIsOneCommitAndOneCall) {
  first_->Hold();
  Submit(first_, absl::ZeroDuration());
  first_->Await(1);
  const uint64_t commits = store_->committer().commits();
  Learn();
  for (int i = 0; i < 5; ++i)
    Submit(second_, i % 2 == 0 ? Committer::kLongDelay : absl::ZeroDuration());
  first_->LetGo();
  EXPECT_EQ(second_->Await(1), std::vector<size_t>{5});
  EXPECT_EQ(store_->committer().commits(), commits + 1);
}

TEST_F(CommitterTest, WaitersThatTakeTurnsAreNotifiedInTheOrderOfTheirSubmissions) {
  first_->Hold();
  Submit(first_, absl::ZeroDuration());
  first_->Await(1);
  for (int i = 0; i < 3; ++i) {
    Submit(second_, Committer::kLongDelay);
    Submit(first_, Committer::kLongDelay);
  }
  first_->LetGo();
  EXPECT_EQ(second_->Await(3), (std::vector<size_t>{1, 1, 1}));
  EXPECT_EQ(first_->Await(4), (std::vector<size_t>{1, 1, 1, 1}));
}

TEST_F(CommitterTest, ItsEndNotifiesEveryWaiter) {
  for (int i = 0; i < 100; ++i) Submit(first_, Committer::kLongDelay);
  model_.reset();
  store_.reset();
  size_t committed = 0;
  for (const size_t submissions : first_->Await(1)) committed += submissions;
  EXPECT_EQ(committed, 100U);
}

// A committer that lets counters wait.
class WaitingCountersTest : public testing::StoreTest {
 protected:
  void OpenWith(absl::Duration delay) {
    Store::Options options;
    options.committer.counters_delay = delay;
    Open(options);
    Create("a", 1);
  }
  // A message of one row, which is right or wrong, acknowledged as a stream's is.
  void Learn(float value, int64_t completed_pass = 0,
             std::span<const PredictionOfRow> predictions = {}) {
    const std::shared_ptr<Model> model = store_->Acquire("a").value();
    LearnAlone(*model, testing::Columns().AddDense({value}, 1), producer_, predictions,
               completed_pass);
    const auto waiter = std::make_shared<Waiter>();
    store_->committer().Submit(model, waiter, absl::ZeroDuration());
    waiter->Await(1);
  }
  // The number of examples that the journal has.
  uint64_t Written() {
    return journal_->LoadCounters(store_->GetIfLoaded("a")->id())->report().examples();
  }

  Producer producer_{""};
};

TEST_F(WaitingCountersTest, WithoutAnUpdateNothingIsWrittenUntilTheyAreDue) {
  OpenWith(absl::Hours(1));
  Learn(1);
  const uint64_t commits = store_->committer().commits();
  EXPECT_EQ(Written(), 1U);
  for (int i = 0; i < 20; ++i) Learn(2);
  EXPECT_EQ(store_->committer().commits(), commits);
  EXPECT_EQ(Written(), 1U);
  // The next update takes them along.
  Learn(-1);
  EXPECT_EQ(store_->committer().commits(), commits + 1);
  EXPECT_EQ(Written(), 22U);
}

TEST_F(WaitingCountersTest, TheyAreWrittenByThemselvesWhenTheyAreDue) {
  OpenWith(absl::Milliseconds(1));
  Learn(1);
  Learn(2);
  while (Written() < 2) {
  }
}

TEST_F(WaitingCountersTest, AWholeCommitWritesThem) {
  OpenWith(absl::Hours(1));
  Learn(1);
  Learn(2);
  const std::shared_ptr<Model> model = store_->GetIfLoaded("a");
  EXPECT_OK(store_->committer().CommitAll({&model, 1}));
  EXPECT_EQ(Written(), 2U);
  Learn(2);
  EXPECT_OK(store_->committer().Commit(store_->GetIfLoaded("a")));
  EXPECT_EQ(Written(), 3U);
}

TEST_F(WaitingCountersTest, TheEndOfAPassIsWrittenAtOnce) {
  OpenWith(absl::Hours(1));
  Learn(1);
  Learn(2, 1);
  EXPECT_EQ(Written(), 2U);
}

// After a crash its id would otherwise be waiting again, and its row could be learned twice.
TEST_F(WaitingCountersTest, ALearnedPredictionIsWrittenAtOnce) {
  OpenWith(absl::Hours(1));
  Learn(1);
  const PredictionOfRow prediction[] = {{0, 7}};
  Learn(2, 0, prediction);
  EXPECT_EQ(Written(), 2U);
}

// Deferred without the committer's thread.
TEST_F(WaitingCountersTest, AreDeferredOnlyIfNothingElseWaitsToBeCommitted) {
  OpenWith(absl::Hours(1));
  const std::shared_ptr<Model> model = store_->Acquire("a").value();
  const auto learn = [&](float value) {
    LearnAlone(*model, testing::Columns().AddDense({value}, 1), producer_);
  };
  learn(1);
  EXPECT_FALSE(store_->committer().Defer(model));
  EXPECT_OK(store_->committer().Commit(model));
  learn(2);
  EXPECT_TRUE(store_->committer().Defer(model));
  EXPECT_EQ(Written(), 1U);
  learn(-1);
  EXPECT_FALSE(store_->committer().Defer(model));
  // The update takes what was deferred along.
  EXPECT_OK(store_->committer().Commit(model));
  EXPECT_EQ(Written(), 3U);
  learn(2);
  EXPECT_TRUE(store_->committer().Defer(model));
  // By the time that a whole commit is done it has them.
  store_->committer().Submit(
      model, [](const absl::Status&) {}, /*whole=*/true);
  EXPECT_OK(store_->committer().Commit(model));
  EXPECT_EQ(Written(), 4U);
}

TEST_F(WaitingCountersTest, AreWrittenBeforeAModelIsFrozen) {
  OpenWith(absl::Hours(1));
  Learn(1);
  Learn(2);
  ASSERT_OK(testing::FreezeIn(*store_, "a"));
  EXPECT_EQ(Written(), 2U);
}

// Its next step comes after so many examples.
TEST_F(WaitingCountersTest, ABatchPerceptronWithMiniBatchesHasNone) {
  OpenWith(absl::Hours(1));
  testing::v1::Model settings = testing::DenseSettings("b", 1);
  settings.mutable_learner()->mutable_batch_perceptron()->set_mini_batch(100);
  ASSERT_OK(store_->Create(settings, "", false).status());
  const std::shared_ptr<Model> model = store_->Acquire("b").value();
  EXPECT_OK(testing::Send(*store_, "b", "p", testing::Columns().AddDense({1}, 1).batch()).status);
  EXPECT_OK(testing::Send(*store_, "b", "p", testing::Columns().AddDense({2}, 1).batch()).status);
  EXPECT_FALSE(store_->committer().Defer(model));
  EXPECT_EQ(journal_->LoadCounters(model->id())->report().examples(), 2U);
}

// Each model takes most of what models may: a model with counts that wait would stay until they are due.
TEST_F(WaitingCountersTest, AreWrittenAtOnceIfTheirModelIsInTheWay) {
  Store::Options options;
  options.committer.counters_delay = absl::Hours(1);
  options.memory_budget = options.max_model_bytes = 1 << 20;
  Open(options);
  for (const char* const name : {"a", "b"}) {
    Create(name, 200'000);
    const std::vector<float> row(200'000, 1);
    Producer producer("");
    const std::shared_ptr<Model> model = store_->Acquire(name).value();
    LearnAlone(*model, testing::Columns().AddDense(row, 1), producer);
    EXPECT_OK(store_->committer().Commit(model));
    LearnAlone(*model, testing::Columns().AddDense(row, 1), producer);
    EXPECT_TRUE(store_->committer().Defer(model));
  }
  EXPECT_EQ(journal_->LoadCounters(store_->catalogue().Find("a")->id())->report().examples(), 2U);
}

// A deletion that is refused after the model was closed must not take them.
TEST_F(WaitingCountersTest, ADeletionThatIsRefusedLosesNone) {
  OpenWith(absl::Hours(1));
  Learn(1);
  Learn(2);
  EXPECT_EQ(Written(), 1U);
  ASSERT_OK(testing::PointAlias(store_->catalogue(), "aliases/x", "a"));
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->Delete("a", "", false)));
  EXPECT_EQ(store_->Acquire("a").value()->ledger().examples(), 2U);
}

TEST_F(WaitingCountersTest, WhoseWriteFailsEndStreamsAndWaitNoMoreUntilOneWorks) {
  std::atomic<bool> fails = false;
  Store::Options options;
  options.committer.counters_delay = absl::Hours(1);
  using Faulty = testing::FaultyJournal;
  const auto plan = [&](Faulty::Call call, uint64_t) {
    return call == Faulty::Call::kCommit && fails ? Faulty::Fate::kFails : Faulty::Fate::kWorks;
  };
  store_ = std::make_unique<Store>(std::make_unique<Faulty>(journal_, plan), options);
  const std::string uid = Create("a", 1).uid();
  absl::Status end;
  auto ticket = store_->streams().Open(uid, "", [&](const absl::Status& why) { end = why; });
  const auto learn = [&](float value) {
    const std::shared_ptr<Model> model = store_->Acquire("a").value();
    Producer producer("");
    LearnAlone(*model, testing::Columns().AddDense({value}, 1), producer);
    return model;
  };
  EXPECT_OK(store_->committer().Commit(learn(1)));
  EXPECT_TRUE(store_->committer().Defer(learn(2)));
  fails = true;
  EXPECT_TRUE(absl::IsUnavailable(store_->committer().Commit(store_->Acquire("a").value())));
  EXPECT_TRUE(absl::IsUnavailable(end)) << end;
  // As the journal has it.
  EXPECT_EQ(store_->Acquire("a").value()->ledger().examples(), 1U);
  EXPECT_FALSE(store_->committer().Defer(learn(2)));
  fails = false;
  EXPECT_OK(store_->committer().Commit(learn(2)));
  EXPECT_TRUE(store_->committer().Defer(learn(2)));
  // The end of the store writes what is deferred.
  ticket.reset();
  store_.reset();
}

// Notes whether the last commit was synced, and holds up the commits of one partition.
class WatchedJournal final : public testing::JournalDecorator {
 public:
  using JournalDecorator::JournalDecorator;
  absl::StatusOr<CommitOutcome> Commit(std::span<const JournalEntry> entries,
                                       const CommitOptions& options) override {
    synced = options.sync;
    const uint32_t partition = PartitionOf(entries.front().model_id);
    for (const JournalEntry& entry : entries) EXPECT_EQ(PartitionOf(entry.model_id), partition);
    if (partition == stalled) {
      entered.Notify();
      released.WaitForNotification();
    }
    return JournalDecorator::Commit(entries, options);
  }

  std::atomic<bool> synced = false;
  std::atomic<uint32_t> stalled = ~0U;
  absl::Notification entered;
  absl::Notification released;
};

class WatchedCommits : public testing::StoreTest {
 protected:
  void Watch(uint32_t partitions) {
    auto owned = std::make_unique<WatchedJournal>(
        std::make_shared<MemoryJournal>(MemoryJournal::Options{.partitions = partitions}));
    watched_ = owned.get();
    store_ = std::make_unique<Store>(std::move(owned), Store::Options());
  }
  WatchedJournal* watched_ = nullptr;
};

TEST_F(WatchedCommits, SyncUpdatesAndLearnedPredictionsButNotCountersAlone) {
  Watch(1);
  Create("a");
  const std::shared_ptr<Model> model = store_->Acquire("a").value();
  Producer producer("");
  const auto learn = [&](std::span<const PredictionOfRow> predictions) {
    const size_t updates = LearnAlone(*model, row_, producer, predictions).updated_rows.size();
    EXPECT_OK(store_->committer().Commit(model));
    return updates;
  };
  EXPECT_EQ(learn({}), 1U);
  EXPECT_TRUE(watched_->synced);
  EXPECT_EQ(learn({}), 0U);
  EXPECT_FALSE(watched_->synced);
  const PredictionOfRow named[] = {{0, 7}};
  EXPECT_EQ(learn(named), 0U);
  EXPECT_TRUE(watched_->synced);
  EXPECT_EQ(learn({}), 0U);
  EXPECT_FALSE(watched_->synced);
}

TEST_F(WatchedCommits, APartitionThatDoesNotAnswerHoldsUpNoOther) {
  constexpr uint32_t kPartitions = 4;
  Watch(kPartitions);
  for (uint32_t i = 0; i < kPartitions; ++i) Create(absl::StrCat("models/m", i));
  watched_->stalled = watched_->PartitionOf(store_->catalogue().Find("models/m0").value().id());
  const auto learn = [&](uint32_t i) {
    EXPECT_OK(testing::Send(*store_, absl::StrCat("models/m", i), "p", row_.batch()).status);
  };
  std::thread stalled([&] { learn(0); });
  watched_->entered.WaitForNotification();
  for (uint32_t i = 1; i < kPartitions; ++i) learn(i);
  EXPECT_GT(store_->stats().oldest_commit_wait, absl::ZeroDuration());
  EXPECT_EQ(store_->committer().commits(), kPartitions - 1);
  watched_->released.Notify();
  stalled.join();
  EXPECT_EQ(store_->committer().commits(), kPartitions);
  EXPECT_GT(store_->stats().commit_busy, absl::ZeroDuration());
  while (store_->stats().oldest_commit_wait > absl::ZeroDuration()) std::this_thread::yield();
}

}  // namespace
}  // namespace perceptrond
