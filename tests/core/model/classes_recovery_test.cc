// Every rule of several classes through the store: classes that were added mid-stream, what was
// learned and what is answered are there again to the bit after the server was away or the model
// was not in memory, from records, from snapshots, and from both.
#include <bit>

#include "core/journal/rocksdb_journal.h"
#include "core/learner/catalogue.h"
#include "gtest/gtest.h"
#include "tests/support/class_traffic.h"
#include "tests/support/learners.h"
#include "tests/support/temp_dir.h"

namespace perceptrond::classes_recovery_test {
namespace {

using testing::ClassBatch;
using testing::ClassKind;
using testing::Space;
using testing::StateBytes;
using testing::SvmExample;
namespace v1 = ::perceptron::v1;

constexpr int kClasses = 6;
constexpr uint32_t kDimension = 20;

struct Case {
  std::string kind;
  ClassKind classes;
  Space space;
  // The rule keeps rows beside its weights.
  bool ratchet = false;
};

std::string CaseName(const ::testing::TestParamInfo<Case>& info) {
  return testing::TestName(info.param.kind) + "_" + testing::ClassKindName(info.param.classes) +
         "_" + testing::SpaceName(info.param.space) + (info.param.ratchet ? "_Ratchet" : "");
}

void PrintTo(const Case& c, std::ostream* out) { *out << c.kind; }

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const CatalogueEntry& entry : Catalogue()) {
    if (!entry.has_classes()) continue;
    const auto kind = entry.name;
    for (const ClassKind classes :
         {ClassKind::kFixed, ClassKind::kFixedNamed, ClassKind::kNumbered, ClassKind::kNamed}) {
      for (const Space space : {Space::kDense, Space::kHashed, Space::kNamed})
        cases.push_back({kind, classes, space});
      if (testing::HasSetting(entry.name, "ratchet_examples"))
        cases.push_back({kind, classes, Space::kNamed, /*ratchet=*/true});
    }
  }
  for (const std::string& kind : testing::LogisticWithSteps()) {
    for (const ClassKind classes : {ClassKind::kFixed, ClassKind::kNamed})
      cases.push_back({kind, classes, Space::kNamed});
  }
  return cases;
}

class ClassesRecovery : public ::testing::TestWithParam<Case> {
 protected:
  v1::Model Settings(const std::string& name) const {
    v1::Model settings = testing::SpaceSettings(GetParam().space, name, kDimension);
    testing::SetLearner(*settings.mutable_learner(), GetParam().kind);
    if (GetParam().ratchet) testing::SetCount(*settings.mutable_learner(), "ratchet_examples", 6);
    testing::SetClasses(GetParam().classes, kClasses, settings);
    return settings;
  }
  std::unique_ptr<Store> Open(uint64_t snapshot_bytes, size_t memory = size_t{1} << 30) {
    RocksDbJournal::Options journal;
    journal.directory = directory_.path();
    Store::Options options;
    options.snapshot_bytes = snapshot_bytes;
    options.memory_budget = memory;
    return std::make_unique<Store>(RocksDbJournal::Open(journal).value(), options);
  }
  uint64_t Learn(Store& store, const std::string& name,
                 const std::vector<std::vector<SvmExample>>& messages) const {
    uint64_t updates = 0;
    for (const auto& message : messages) {
      const ClassBatch batch(GetParam().classes, GetParam().space, message);
      const testing::Sent sent = testing::Send(store, name, "p", batch.batch());
      EXPECT_OK(sent.status);
      EXPECT_TRUE(sent.outcome.row_errors.empty());
      updates += sent.outcome.updated_rows.size();
    }
    return updates;
  }
  // Every bit that it answers with.
  std::vector<uint32_t> Answers(Store& store, const std::string& name) const {
    std::vector<uint32_t> bits;
    const std::shared_ptr<Model> model = store.Acquire(name).value();
    for (const auto& message : testing::ClassMessages(2, kClasses, kDimension, 20)) {
      const ClassBatch batch(GetParam().classes, GetParam().space, message);
      Batch asked = batch.batch();
      asked.labels = {};
      asked.label_names = {};
      PredictOutcome outcome;
      EXPECT_OK(model->Predict(asked, {}, 0, outcome, true));
      for (const auto* values : {&outcome.scores, &outcome.distances, &outcome.probabilities,
                                 &outcome.class_scores, &outcome.class_probabilities}) {
        for (const float value : *values) bits.push_back(std::bit_cast<uint32_t>(value));
      }
      for (const int32_t label : outcome.labels) bits.push_back(static_cast<uint32_t>(label));
    }
    return bits;
  }

  const testing::TempDir directory_;
};

TEST_P(ClassesRecovery, WhatWasLearnedIsThereAgainToTheBit) {
  const auto messages = testing::ClassMessages(1, kClasses, kDimension, 50);
  // From records alone, and from snapshots with records after them.
  for (const uint64_t snapshot_bytes : {uint64_t{1} << 30, uint64_t{700}}) {
    const std::string name = "models/m" + std::to_string(snapshot_bytes);
    std::unique_ptr<Store> store = Open(snapshot_bytes);
    ASSERT_OK(store->Create(Settings(name), "", false).status());
    ASSERT_GT(Learn(*store, name, messages), 30U);
    const std::string state = StateBytes(**store->Acquire(name));
    const std::vector<std::string> names = LabelNames(**store->Acquire(name));
    const std::vector<uint32_t> answers = Answers(*store, name);
    EXPECT_EQ(names.size(), testing::ByName(GetParam().classes) ? size_t{kClasses} : 0U);
    store.reset();
    store = Open(snapshot_bytes);
    EXPECT_EQ(StateBytes(**store->Acquire(name)), state);
    EXPECT_EQ(LabelNames(**store->Acquire(name)), names);
    EXPECT_EQ(Answers(*store, name), answers);
    // And it goes on as if it had never been away.
    const auto more = testing::ClassMessages(3, kClasses, kDimension, 10);
    Learn(*store, name, more);
    const std::string later = StateBytes(**store->Acquire(name));
    store.reset();
    store = Open(uint64_t{1} << 30);
    EXPECT_EQ(StateBytes(**store->Acquire(name)), later);
  }
}

TEST_P(ClassesRecovery, AModelThatLeftMemoryBetweenMessagesEndsWithTheSameBits) {
  const auto messages = testing::ClassMessages(4, kClasses, kDimension, 20);
  // No room for any model: the next one that is loaded drives it out, once its commit and its
  // snapshot have let go.
  std::unique_ptr<Store> store = Open(500, 1);
  for (const std::string name : {"models/a", "models/x", "models/y"})
    ASSERT_OK(store->Create(Settings(name), "", false).status());
  for (const auto& message : messages) {
    Learn(*store, "models/a", {message});
    do {
      for (const char* other : {"models/x", "models/y"}) ASSERT_OK(store->Acquire(other).status());
    } while (store->stats().models_in_memory > 1);
  }
  const std::string evicted = StateBytes(**store->Acquire("models/a"));
  store.reset();
  store = Open(uint64_t{1} << 30);
  ASSERT_OK(store->Create(Settings("models/c"), "", false).status());
  Learn(*store, "models/c", messages);
  EXPECT_EQ(StateBytes(**store->Acquire("models/c")), evicted);
}

INSTANTIATE_TEST_SUITE_P(Cases, ClassesRecovery, ::testing::ValuesIn(Cases()), CaseName);

}  // namespace
}  // namespace perceptrond::classes_recovery_test
