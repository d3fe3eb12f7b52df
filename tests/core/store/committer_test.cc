#include "core/store/committer.h"

#include <atomic>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/journal/memory_journal.h"
#include "core/store/store.h"
#include "gtest/gtest.h"
#include "tests/support/columns.h"
#include "tests/support/journal_decorator.h"
#include "tests/support/models.h"

namespace perceptrond {
namespace {

using testing::DenseSettings;

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

class CommitterTest : public ::testing::Test {
 protected:
  CommitterTest() {
    EXPECT_TRUE(store_.Create(DenseSettings("a", 2), "", false).ok());
    model_ = store_.Acquire("a").value();
  }
  void Submit(const std::shared_ptr<Waiter>& waiter, absl::Duration delay) {
    store_.committer().Submit(model_, waiter, delay);
  }

  Store store_{std::make_unique<MemoryJournal>(), Store::Options()};
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
  const uint64_t commits = store_.committer().commits();
  for (int i = 0; i < 5; ++i)
    Submit(second_, i % 2 == 0 ? Committer::kLongDelay : absl::ZeroDuration());
  first_->LetGo();
  EXPECT_EQ(second_->Await(1), std::vector<size_t>{5});
  EXPECT_EQ(store_.committer().commits(), commits + 1);
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
  const auto waiter = std::make_shared<Waiter>();
  {
    Store store(std::make_unique<MemoryJournal>(), Store::Options());
    ASSERT_TRUE(store.Create(DenseSettings("a", 2), "", false).ok());
    const std::shared_ptr<Model> model = store.Acquire("a").value();
    for (int i = 0; i < 100; ++i) store.committer().Submit(model, waiter, Committer::kLongDelay);
  }
  size_t committed = 0;
  for (const size_t submissions : waiter->Await(1)) committed += submissions;
  EXPECT_EQ(committed, 100U);
}

// A committer that lets counters wait, over a journal that counts what is written.
class WaitingCountersTest : public ::testing::Test {
 protected:
  static Store::Options MakeOptions(absl::Duration delay) {
    Store::Options options;
    options.committer.counters_delay = delay;
    return options;
  }
  // A message of one row, which is right or wrong, acknowledged as a stream's is.
  void Learn(Store& store, float value, int64_t completed_pass = 0) {
    testing::Columns rows;
    rows.AddDense({value}, 1);
    const std::shared_ptr<Model> model = store.Acquire("a").value();
    LearnCall call;
    call.batch = rows.batch();
    call.producer = &producer_;
    call.completed_pass = completed_pass;
    LearnOutcome outcome;
    {
      MutexLock turn(&producer_.turn);
      ASSERT_OK(model->Learn(call, outcome));
    }
    const auto waiter = std::make_shared<Waiter>();
    store.committer().Submit(model, waiter, absl::ZeroDuration());
    waiter->Await(1);
  }
  // What the journal has.
  storage::Counters Written(const Store& store) {
    return journal_->LoadCounters(store.GetIfLoaded("a")->id()).value();
  }
  std::unique_ptr<Store> Open(absl::Duration delay) {
    auto journal = std::make_unique<MemoryJournal>();
    journal_ = journal.get();
    auto store = std::make_unique<Store>(std::move(journal), MakeOptions(delay));
    EXPECT_OK(store->Create(DenseSettings("a", 1), "", false).status());
    return store;
  }

  MemoryJournal* journal_ = nullptr;
  Producer producer_{""};
};

TEST_F(WaitingCountersTest, WithoutAnUpdateNothingIsWrittenUntilTheyAreDue) {
  const auto store = Open(absl::Hours(1));
  Learn(*store, 1);
  const uint64_t commits = store->committer().commits();
  EXPECT_EQ(Written(*store).report().examples(), 1U);
  for (int i = 0; i < 20; ++i) Learn(*store, 2);
  EXPECT_EQ(store->committer().commits(), commits);
  EXPECT_EQ(Written(*store).report().examples(), 1U);
  // The next update takes them along.
  Learn(*store, -1);
  EXPECT_EQ(store->committer().commits(), commits + 1);
  EXPECT_EQ(Written(*store).report().examples(), 22U);
}

TEST_F(WaitingCountersTest, TheyAreWrittenByThemselvesWhenTheyAreDue) {
  const auto store = Open(absl::Milliseconds(1));
  Learn(*store, 1);
  Learn(*store, 2);
  while (Written(*store).report().examples() < 2) {
  }
}

TEST_F(WaitingCountersTest, AFlushWritesThemAndSoDoesAWholeCommit) {
  const auto store = Open(absl::Hours(1));
  Learn(*store, 1);
  Learn(*store, 2);
  store->committer().FlushPartitionOf(*store->GetIfLoaded("a"));
  EXPECT_EQ(Written(*store).report().examples(), 2U);
  Learn(*store, 2);
  EXPECT_OK(store->committer().Commit(store->GetIfLoaded("a")));
  EXPECT_EQ(Written(*store).report().examples(), 3U);
}

TEST_F(WaitingCountersTest, TheEndOfAPassIsWrittenAtOnce) {
  const auto store = Open(absl::Hours(1));
  Learn(*store, 1);
  Learn(*store, 2, 1);
  EXPECT_EQ(Written(*store).report().examples(), 2U);
}

// Whether each commit was synced.
class SyncRecorder final : public testing::JournalDecorator {
 public:
  using JournalDecorator::JournalDecorator;
  absl::StatusOr<CommitOutcome> Commit(std::span<const JournalEntry> entries,
                                       const CommitOptions& options) override {
    synced = options.sync;
    return JournalDecorator::Commit(entries, options);
  }
  // Of the last commit.
  std::atomic<bool> synced = false;
};

TEST(Committer, SyncsUpdatesAndLearnedPredictionsButNotCountersAlone) {
  auto owned = std::make_unique<SyncRecorder>(std::make_shared<MemoryJournal>());
  const SyncRecorder& journal = *owned;
  Store store(std::move(owned), Store::Options());
  ASSERT_OK(store.Create(DenseSettings("a", 2), "", false).status());
  const std::shared_ptr<Model> model = store.Acquire("a").value();
  Producer producer("");
  const auto learn = [&](std::span<const PredictionOfRow> predictions) {
    const testing::Columns row = testing::Columns().AddDense({1, 2}, 1);
    LearnCall call;
    call.batch = row.batch();
    call.producer = &producer;
    call.predictions = predictions;
    LearnOutcome outcome;
    {
      MutexLock turn(&producer.turn);
      EXPECT_OK(model->Learn(call, outcome));
    }
    EXPECT_OK(store.committer().Commit(model));
    return outcome.updated_rows.size();
  };
  EXPECT_EQ(learn({}), 1U);
  EXPECT_TRUE(journal.synced);
  EXPECT_EQ(learn({}), 0U);
  EXPECT_FALSE(journal.synced);
  const PredictionOfRow named[] = {{0, 7}};
  EXPECT_EQ(learn(named), 0U);
  EXPECT_TRUE(journal.synced);
}

}  // namespace
}  // namespace perceptrond
