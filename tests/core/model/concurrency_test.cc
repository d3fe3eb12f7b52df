// Many streams learn one model at once while others predict, read reports and take snapshots. To be
// run under ThreadSanitizer too.
#include <atomic>
#include <thread>

#include "gtest/gtest.h"
#include "tests/core/model/replayed_weights.h"
#include "tests/support/recording_journal.h"
#include "tests/support/separable.h"
#include "tests/support/traffic.h"

namespace perceptrond::concurrency_test {
namespace {

using testing::Columns;
using testing::DenseSettings;
using testing::RecordingJournal;
using testing::Send;
using testing::SeparableData;
using testing::StateBytes;

constexpr uint32_t kDimension = 16;
constexpr int kLearners = 8;
constexpr int kPasses = 6;
constexpr size_t kExamples = 1600;
constexpr size_t kMessage = 25;

class Concurrency : public ::testing::Test {
 protected:
  Concurrency() {
    Store::Options options;
    options.snapshot_bytes = 1;
    store_ =
        std::make_unique<Store>(std::make_unique<testing::JournalDecorator>(journal_), options);
    EXPECT_OK(store_->Create(DenseSettings("shared", kDimension), "", false).status());
    model_ = store_->Acquire("shared").value();
  }

  // One producer's share of the set, some passes of it. Says how many updates were its own.
  uint64_t LearnShare(int learner) {
    uint64_t updates = 0;
    const size_t share = kExamples / kLearners;
    for (int pass = 1; pass <= kPasses; ++pass) {
      for (size_t at = 0; at < share; at += kMessage) {
        const size_t begin = learner * share + at;
        const Columns columns(data_.examples, begin, begin + kMessage);
        const int64_t offset = (pass - 1) * share + at;
        const testing::Sent sent = Send(*store_, "shared", absl::StrCat("learner-", learner),
                                        columns.batch(), offset, at + kMessage == share ? pass : 0);
        EXPECT_OK(sent.status);
        EXPECT_EQ(sent.outcome.examples, kMessage);
        EXPECT_EQ(sent.outcome.duplicates, 0U);
        EXPECT_EQ(sent.outcome.mistakes, sent.outcome.updated_rows.size());
        updates += sent.outcome.updated_rows.size();
      }
    }
    return updates;
  }

  // Every row of a prediction comes from one state: a row and its copy score the same.
  void PredictOnce(uint64_t& revision) {
    const std::vector<testing::SvmExample> twice = {data_.examples[0], data_.examples[1],
                                                    data_.examples[0], data_.examples[1]};
    PredictOutcome outcome;
    EXPECT_OK(model_->Predict(Columns(twice).unlabelled(), {}, revision, outcome));
    EXPECT_GE(outcome.revision, revision);
    EXPECT_EQ(outcome.scores[0], outcome.scores[2]);
    EXPECT_EQ(outcome.scores[1], outcome.scores[3]);
    revision = outcome.revision;
  }

  // Counters, weights and stored examples of one moment: they must fit together.
  void ReportOnce(uint64_t& examples) {
    const ModelReader reader(*model_);
    const StoredExamplesView stored = CopyStoredExamples(reader);
    if (reader.revision() > 0) {
      ASSERT_FALSE(stored.examples.updates.empty());
      EXPECT_EQ(stored.examples.updates.back().revision, reader.revision());
    }
    const ConvergenceReport report = MakeReport(reader);
    EXPECT_EQ(report.updates(), ListWeights(reader)[0].revision);
    EXPECT_EQ(report.mistakes(), report.updates());
    EXPECT_GE(report.examples(), examples);
    examples = report.examples();
    if (!report.has_margin_ceiling()) return;
    EXPECT_GE(report.margin_ceiling(), data_.margin * (1 - 1e-5));
    EXPECT_LE(report.bound_in_use(), 1 + 1e-5);
  }

  const SeparableData data_ = testing::MakeSeparable(5, kExamples, kDimension, 0.05, 1);
  const std::shared_ptr<RecordingJournal> journal_ =
      std::make_shared<RecordingJournal>(std::make_shared<MemoryJournal>());
  std::unique_ptr<Store> store_;
  std::shared_ptr<Model> model_;
};

TEST_F(Concurrency, EightStreamsAreOneRunOfThePerceptron) {
  std::atomic<bool> done = false;
  std::atomic<uint64_t> updates = 0;
  std::vector<std::thread> learners;
  std::vector<std::thread> watchers;
  for (int i = 0; i < kLearners; ++i) learners.emplace_back([&, i] { updates += LearnShare(i); });
  for (int i = 0; i < 2; ++i) {
    watchers.emplace_back([&] {
      for (uint64_t revision = 0; !done;) PredictOnce(revision);
    });
  }
  watchers.emplace_back([&] {
    for (uint64_t examples = 0; !done;) ReportOnce(examples);
  });
  watchers.emplace_back([&] {
    for (uint64_t revision = 0; !done;) {
      const storage::Snapshot snapshot = MakeSnapshot(*model_);
      EXPECT_GE(snapshot.revision(), revision);
      revision = snapshot.revision();
    }
  });
  for (std::thread& thread : learners) thread.join();
  done = true;
  for (std::thread& thread : watchers) thread.join();
  journal_->AwaitSnapshots(1);

  const ConvergenceReport report = MakeReport(*model_);
  EXPECT_EQ(report.examples(), kExamples * kPasses);
  EXPECT_EQ(report.duplicates(), 0U);
  EXPECT_EQ(report.updates(), updates);
  EXPECT_EQ(model_->revision(), updates);
  EXPECT_GT(updates, 50U);
  EXPECT_LE(static_cast<double>(updates), data_.squared_radius / (data_.margin * data_.margin));

  // A serial run over the journal's records ends at the same bits.
  testing::ReplayedWeights replayed(kDimension);
  for (const storage::UpdateRecord& record : journal_->records()) replayed.Apply(record);
  replayed.ExpectEqual(*model_);

  // And so does the journal itself, snapshots and all.
  const std::string state = StateBytes(*model_);
  model_.reset();
  store_ = std::make_unique<Store>(std::make_unique<testing::JournalDecorator>(journal_),
                                   Store::Options());
  const std::shared_ptr<Model> again = store_->Acquire("shared").value();
  EXPECT_EQ(StateBytes(*again), state);
  EXPECT_EQ(MakeReport(*again).examples(), kExamples * kPasses);
}

// Streams that hold a deleted model get an error, and nothing crashes.
TEST_F(Concurrency, ModelsAreDeletedAndMadeAnewUnderTheirStreams) {
  model_.reset();
  std::atomic<bool> done = false;
  std::vector<std::thread> learners;
  for (int t = 0; t < 4; ++t) {
    learners.emplace_back([&, t] {
      for (size_t at = 0; !done; at = (at + kMessage) % (kExamples - kMessage)) {
        const testing::Sent sent = Send(*store_, "shared", absl::StrCat("learner-", t),
                                        Columns(data_.examples, at, at + kMessage).batch());
        EXPECT_TRUE(sent.status.ok() || absl::IsNotFound(sent.status)) << sent.status;
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    EXPECT_OK(store_->Delete("shared", "", false));
    EXPECT_OK(store_->Create(DenseSettings("shared", kDimension), "", false).status());
    EXPECT_OK(Send(*store_, "shared", "main", Columns(data_.examples, 0, kMessage).batch()).status);
  }
  done = true;
  for (std::thread& thread : learners) thread.join();
  EXPECT_EQ(store_->catalogue().Count().value(), 1U);
}

}  // namespace
}  // namespace perceptrond::concurrency_test
