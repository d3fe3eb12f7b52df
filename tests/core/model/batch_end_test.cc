// Batches end at counts of examples whatever the messages, and at marks of passes once.
#include "gtest/gtest.h"
#include "tests/core/store/store_fixture.h"
#include "tests/support/learners.h"
#include "tests/support/traffic.h"

namespace perceptrond {
namespace {

using testing::Columns;
using testing::LoneModel;
using testing::Message;
using testing::Send;
using testing::Sent;
using testing::StateBytes;
namespace v1 = ::perceptron::v1;

v1::Model Settings(uint32_t dimension, uint32_t mini_batch) {
  v1::Model settings = testing::DenseSettings("models/m", dimension);
  settings.mutable_learner()->mutable_batch_perceptron();
  testing::SetCount(*settings.mutable_learner(), "mini_batch", mini_batch);
  return settings;
}

// One-dimensional examples, all mistakes before the first step.
Columns Ones(size_t count) {
  Columns columns;
  for (size_t i = 0; i < count; ++i) columns.AddDense({1}, 1);
  return columns;
}

TEST(BatchEnd, ComesAfterTheSameExampleHoweverTheyAreSent) {
  testing::TrafficOptions traffic;
  traffic.bad_rows = false;
  std::vector<testing::SvmExample> examples;
  for (const Message& message : MakeTraffic(1, traffic))
    examples.insert(examples.end(), message.examples.begin(), message.examples.end());
  ASSERT_GT(examples.size(), 300U);
  std::string expected;
  for (const size_t at_once : {examples.size(), size_t{1}, size_t{7}, size_t{10}, size_t{33}}) {
    LoneModel lone(Settings(traffic.dimension, 10));
    for (size_t at = 0; at < examples.size(); at += at_once)
      lone.Learn(Columns(examples, at, at + at_once).batch());
    if (expected.empty()) expected = StateBytes(*lone.model);
    EXPECT_EQ(StateBytes(*lone.model), expected) << at_once << " at once";
  }
}

TEST(BatchEnd, IsARevisionOfNoRow) {
  LoneModel lone(Settings(1, 3));
  const LearnOutcome outcome = lone.Learn(Ones(5).batch());
  EXPECT_EQ(outcome.updated_rows, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(outcome.update_revisions, (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(outcome.revision, 4U);
  EXPECT_EQ(lone.Weights(1)[0], 3);
  EXPECT_EQ(MakeReport(*lone.model).updates(), 4U);
}

TEST(BatchEnd, APassWithoutAMistakeChangesNothingAndConverges) {
  LoneModel lone(Settings(1, 0));
  EXPECT_FALSE(lone.Learn(Ones(2).batch(), 1).pass->converged());
  EXPECT_EQ(lone.model->revision(), 3U);
  const PassSummary second = *lone.Learn(Ones(2).batch(), 2).pass;
  EXPECT_TRUE(second.converged());
  EXPECT_EQ(second.updates(), 0U);
  EXPECT_EQ(lone.model->revision(), 3U);
  EXPECT_EQ(MakeReport(*lone.model).state(), ::perceptron::v1::CONVERGENCE_STATE_CONVERGED);
}

class BatchEndStore : public testing::StoreTest {
 protected:
  BatchEndStore() { EXPECT_OK(store_->Create(Settings(1, 0), "", false).status()); }
  Sent Learn(const std::string& producer, const Columns& rows, int64_t first, int64_t pass = 0) {
    return Send(*store_, "models/m", producer, rows.batch(), first, pass);
  }
};

// The mistake of another producer becomes part of the first marked pass, which has not converged.
TEST_F(BatchEndStore, AMarkIncludesMistakesOfAllProducers) {
  Learn("a", Ones(2), 0, 1);
  Learn("b", Columns().AddDense({-1}, 1), 0);
  const Sent marked = Learn("a", Ones(1), 2, 2);
  EXPECT_EQ(marked.outcome.pass->mistakes(), 0U);
  EXPECT_FALSE(marked.outcome.pass->converged());
  EXPECT_EQ(marked.outcome.revision, 5U);
}

TEST_F(BatchEndStore, AMarkSentAgainEndsNoBatch) {
  const Sent first = Learn("a", Ones(2), 0, 1);
  ASSERT_OK(first.status);
  EXPECT_EQ(first.outcome.revision, 3U);
  Learn("b", Columns().AddDense({-1}, 1), 0);
  for (const bool restarted : {false, true}) {
    if (restarted) Open(Store::Options());
    const Sent again = Learn("a", Ones(2), 0, 1);
    ASSERT_OK(again.status);
    EXPECT_EQ(again.outcome.duplicates, 2U);
    EXPECT_EQ(again.outcome.pass->updates(), first.outcome.pass->updates());
    EXPECT_EQ(again.outcome.revision, 4U);
  }
}

TEST(BatchEnd, ThatACrashCutOffComesBeforeTheNextExample) {
  LoneModel lone(Settings(1, 2));
  lone.Learn(Ones(2).batch(), 1);
  JournalEntry entry = lone.model->ledger().TakePending().entry;
  ASSERT_EQ(entry.records.size(), 2U);
  entry.model_id = lone.model->id();
  entry.records.pop_back();
  entry.counters.mutable_report()->set_updates(2);
  ASSERT_OK(lone.journal.Commit({&entry, 1}, {}).status());
  lone.model = Model::Load(*lone.journal.Find("models/m"), lone.journal, Model::Limits()).value();
  const LearnOutcome outcome = lone.Learn(Ones(1).batch());
  EXPECT_EQ(outcome.mistakes, 0U);
  EXPECT_EQ(outcome.revision, 3U);
}

}  // namespace
}  // namespace perceptrond
