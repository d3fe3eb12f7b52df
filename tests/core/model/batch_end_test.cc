// Where batches end: at counts of examples whatever the messages, at marks of passes once, and the
// same again from the journal.
#include "core/journal/rocksdb_journal.h"
#include "gtest/gtest.h"
#include "tests/support/learners.h"
#include "tests/support/temp_dir.h"
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

std::unique_ptr<Store> Open(const testing::TempDir& directory,
                            uint64_t snapshot_bytes = uint64_t{1} << 40) {
  RocksDbJournal::Options journal;
  journal.directory = directory.path();
  Store::Options options;
  options.snapshot_bytes = snapshot_bytes;
  return std::make_unique<Store>(RocksDbJournal::Open(journal).value(), options);
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

// What waits of another producer's goes along with the first mark, and that pass has not converged.
TEST(BatchEnd, AMarkIncludesWhatWaitsOfAllProducers) {
  testing::TempDir directory;
  const std::unique_ptr<Store> store = Open(directory);
  ASSERT_OK(store->Create(Settings(1, 0), "", false).status());
  Send(*store, "models/m", "a", Ones(2).batch(), 0, 1);
  Send(*store, "models/m", "b", Columns().AddDense({-1}, 1).batch(), 0);
  const Sent marked = Send(*store, "models/m", "a", Ones(1).batch(), 2, 2);
  EXPECT_EQ(marked.outcome.pass->mistakes(), 0U);
  EXPECT_FALSE(marked.outcome.pass->converged());
  EXPECT_EQ(marked.outcome.revision, 5U);
}

TEST(BatchEnd, AMarkSentAgainEndsNoBatch) {
  testing::TempDir directory;
  std::unique_ptr<Store> store = Open(directory);
  ASSERT_OK(store->Create(Settings(1, 0), "", false).status());
  const Sent first = Send(*store, "models/m", "a", Ones(2).batch(), 0, 1);
  ASSERT_OK(first.status);
  EXPECT_EQ(first.outcome.revision, 3U);
  // Another's mistake waits.
  Send(*store, "models/m", "b", Columns().AddDense({-1}, 1).batch(), 0);
  for (const bool restarted : {false, true}) {
    if (restarted) {
      store.reset();
      store = Open(directory);
    }
    const Sent again = Send(*store, "models/m", "a", Ones(2).batch(), 0, 1);
    ASSERT_OK(again.status);
    EXPECT_EQ(again.outcome.duplicates, 2U);
    EXPECT_EQ(again.outcome.pass->updates(), first.outcome.pass->updates());
    EXPECT_EQ(again.outcome.revision, 4U);
  }
}

TEST(BatchEnd, AFrozenModelEndsNone) {
  testing::TempDir directory;
  const std::unique_ptr<Store> store = Open(directory);
  ASSERT_OK(store->Create(Settings(1, 0), "", false).status());
  Send(*store, "models/m", "a", Ones(2).batch(), 0);
  ASSERT_OK(store
                ->Change("models/m", {"", {}, false},
                         [](v1::Model& model) {
                           model.set_state(v1::MODEL_STATE_FROZEN);
                           return absl::OkStatus();
                         })
                .status());
  EXPECT_EQ(Send(*store, "models/m", "a", Ones(2).batch(), 0).outcome.duplicates, 2U);
  EXPECT_TRUE(absl::IsFailedPrecondition(Send(*store, "models/m", "a", Batch(), {}, 1).status));
  EXPECT_EQ((*store->Acquire("models/m"))->revision(), 2U);
}

// A model of this one-dimensional batch perceptron, loaded from what `change` makes of the journal
// of two mistakes and the step after them.
struct Reloaded {
  MemoryJournal journal;
  absl::StatusOr<std::shared_ptr<Model>> model;
  Producer producer{""};

  Reloaded(const v1::Model& settings, const std::function<void(JournalEntry&)>& change)
      : model(absl::UnknownError("not loaded")) {
    const std::shared_ptr<Model> learned = testing::MakeModel(journal, settings);
    LearnCall call;
    const Columns ones = Ones(2);
    call.batch = ones.batch();
    call.producer = &producer;
    call.completed_pass = 1;
    LearnOutcome outcome;
    EXPECT_OK(learned->Learn(call, outcome));
    JournalEntry entry = learned->ledger().TakePending();
    EXPECT_EQ(entry.records.size(), 2U);
    entry.model_id = learned->id();
    change(entry);
    EXPECT_OK(journal.Commit({&entry, 1}, {}).status());
    model = Model::Load(journal.Find("models/m").value(), journal, Model::Limits());
  }
};

TEST(BatchEnd, ThatACrashCutOffComesBeforeTheNextExample) {
  Reloaded reloaded(Settings(1, 2), [](JournalEntry& entry) {
    entry.records.pop_back();
    entry.counters.mutable_report()->set_updates(2);
  });
  ASSERT_OK(reloaded.model.status());
  LearnCall call;
  const Columns one = Ones(1);
  call.batch = one.batch();
  call.producer = &reloaded.producer;
  LearnOutcome outcome;
  ASSERT_OK((*reloaded.model)->Learn(call, outcome));
  EXPECT_EQ(outcome.mistakes, 0U);
  EXPECT_EQ(outcome.revision, 3U);
}

}  // namespace
}  // namespace perceptrond
