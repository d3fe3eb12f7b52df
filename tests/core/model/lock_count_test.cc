// How many locks a message acquires: a handful, however many rows it has.
#include "gtest/gtest.h"
#include "tests/support/learners.h"
#include "tests/support/models.h"
#include "tests/support/separable.h"

namespace perceptrond::lock_count_test {
namespace {

using testing::Columns;
using testing::LoneModel;

namespace v1 = ::perceptron::v1;

constexpr size_t kRows = 100;
constexpr uint32_t kDimension = 8;

// Locks that this thread acquires for `call`.
template <typename Call>
uint64_t LocksOf(const Call& call) {
  const uint64_t before = locks_acquired;
  call();
  return locks_acquired - before;
}

class LockCount : public ::testing::Test {
 protected:
  static void Converge(LoneModel& lone, const Batch& batch) {
    while (lone.Learn(batch).mistakes > 0) {
    }
  }

  const testing::SeparableData data_ = testing::MakeSeparable(1, kRows, kDimension, 0.1, 1);
  const Columns columns_{data_.examples, 0, kRows};
};

// The gate, the state, the ledger.
TEST_F(LockCount, AConvergedMessageAcquiresThree) {
  LoneModel lone(testing::DenseSettings("models/m", kDimension));
  Converge(lone, columns_.batch());
  EXPECT_LE(LocksOf([&] { lone.Learn(columns_.batch()); }), 3U);
}

TEST_F(LockCount, TheEndOfAPassAcquiresNoMore) {
  LoneModel lone(testing::DenseSettings("models/m", kDimension));
  Converge(lone, columns_.batch());
  EXPECT_LE(LocksOf([&] { lone.Learn(columns_.batch(), 1); }), 3U);
}

// One more, for the sample that every row is in.
TEST_F(LockCount, AConvergedMessageOfASampledModelAcquiresFour) {
  v1::Model settings = testing::DenseSettings("models/m", kDimension);
  settings.mutable_stored_examples()->set_max_sample(1000);
  LoneModel lone(settings);
  Converge(lone, columns_.batch());
  EXPECT_LE(LocksOf([&] { lone.Learn(columns_.batch()); }), 4U);
}

TEST_F(LockCount, AReplayedMessageAcquiresThree) {
  LoneModel lone(testing::DenseSettings("models/m", kDimension));
  lone.Learn(columns_.batch());
  LearnCall call;
  call.batch = columns_.batch();
  call.producer = &lone.producer;
  call.first_offset = 0;
  LearnOutcome outcome;
  EXPECT_LE(LocksOf([&] { EXPECT_OK(lone.model->Learn(call, outcome)); }), 3U);
  EXPECT_EQ(outcome.duplicates, kRows);
}

// Each update takes the state exclusively and the shared lock again, and goes to the ledger and the
// stored examples.
TEST_F(LockCount, AnUpdateAddsFour) {
  LoneModel lone(testing::DenseSettings("models/m", kDimension));
  LearnOutcome outcome;
  const uint64_t locks = LocksOf([&] { outcome = lone.Learn(columns_.batch()); });
  ASSERT_GT(outcome.updated_rows.size(), 1U);
  EXPECT_LE(locks, 3 + 4 * outcome.updated_rows.size());
}

// The ledger counts the rows before it first.
TEST_F(LockCount, AnUpdateOfARuleThatCountsExamplesAddsOneMore) {
  v1::Model settings = testing::DenseSettings("models/m", kDimension);
  testing::SetLearner(*settings.mutable_learner(), "averaged-perceptron");
  LoneModel lone(settings);
  LearnOutcome outcome;
  const uint64_t locks = LocksOf([&] { outcome = lone.Learn(columns_.batch()); });
  ASSERT_GT(outcome.updated_rows.size(), 1U);
  EXPECT_LE(locks, 3 + 5 * outcome.updated_rows.size());
}

TEST_F(LockCount, PredictingAcquiresOneWhateverTheRule) {
  for (const char* const learner : {"perceptron", "averaged-perceptron", "voted-perceptron"}) {
    v1::Model settings = testing::DenseSettings("models/m", kDimension);
    testing::SetLearner(*settings.mutable_learner(), learner);
    LoneModel lone(settings);
    Converge(lone, columns_.batch());
    PredictOutcome outcome;
    EXPECT_LE(LocksOf([&] { EXPECT_OK(lone.model->Predict(columns_.batch(), {}, 0, outcome)); }),
              1U)
        << learner;
  }
}

// Notes how many locks the committer's thread had acquired at each commit.
class CountingWaiter final : public CommitWaiter {
 public:
  void Committed(size_t submissions, const absl::Status& status) override {
    EXPECT_OK(status);
    MutexLock lock(&mutex_);
    done_ += submissions;
    locks_ = locks_acquired - 1;
  }
  // Waits for that many commits, and returns the locks up to the last.
  uint64_t Await(size_t commits) {
    MutexLock lock(&mutex_);
    const auto done = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return done_ == commits; };
    mutex_.Await(absl::Condition(&done));
    return locks_;
  }

 private:
  Mutex mutex_;
  size_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t locks_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The queue, the ledger, the journal, this waiter.
TEST_F(LockCount, CommittingAMessageWithoutUpdatesAcquiresFour) {
  Store store(std::make_unique<MemoryJournal>(), {});
  ASSERT_OK(store.Create(testing::DenseSettings("models/m", kDimension), "", false).status());
  while (testing::Send(store, "models/m", "p", columns_.batch()).outcome.mistakes > 0) {
  }
  const std::shared_ptr<Model> model = store.Acquire("models/m").value();
  const auto waiter = std::make_shared<CountingWaiter>();
  const auto learn_and_commit = [&](size_t commits) {
    const std::shared_ptr<Producer> producer = model->ledger().FindProducer("p").value();
    MutexLock turn(&producer->turn);
    LearnCall call;
    call.batch = columns_.batch();
    call.producer = producer.get();
    LearnOutcome outcome;
    EXPECT_OK(model->Learn(call, outcome));
    EXPECT_LE(LocksOf([&] { store.committer().Submit(model, waiter, absl::ZeroDuration()); }), 1U);
    return waiter->Await(commits);
  };
  const uint64_t before = learn_and_commit(1);
  EXPECT_LE(learn_and_commit(2) - before, 4U);
}

}  // namespace
}  // namespace perceptrond::lock_count_test
