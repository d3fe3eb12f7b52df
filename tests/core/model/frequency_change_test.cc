// Inverse document frequencies of texts come into force at counts of texts, and the journal and snapshots have them.
// replay_test.cc shows that they come back as they were.
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/features/names.h"
#include "core/journal/memory_journal.h"
#include "core/model/model.h"
#include "core/store/model_history.h"
#include "core/store/store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/learners.h"
#include "tests/support/models.h"

namespace perceptrond::frequency_change_test {
namespace {

using ::testing::IsEmpty;
using testing::TextColumns;
namespace v1 = ::perceptron::v1;

constexpr char kName[] = "models/m";

v1::Model Settings(const std::string& rule = "perceptron") {
  v1::Model settings;
  settings.set_name(kName);
  v1::FeatureSpace::Text& text = *settings.mutable_feature_space()->mutable_text();
  text.set_bits(10);
  text.set_max_words(1);
  text.set_inverse_document_frequency(true);
  settings.mutable_stored_examples()->set_max_updates(100);
  settings.mutable_stored_examples()->set_max_sample(100);
  testing::SetLearner(*settings.mutable_learner(), rule);
  return settings;
}

class FrequencyChange : public ::testing::Test {
 protected:
  FrequencyChange() {
    auto journal = std::make_unique<MemoryJournal>(MemoryJournal::Options{.tail_bytes = 64 << 20});
    others_ = journal->OpenAgain();
    store_ = std::make_unique<Store>(std::move(journal), Store::Options());
  }
  void Create(const v1::Model& settings) {
    ASSERT_OK(store_->Create(settings, "", false).status());
    header_ = others_->Find(kName).value();
  }
  std::shared_ptr<Model> Get() { return store_->Acquire(kName).value(); }
  void Learn(const std::string& text, int32_t label) {
    const TextColumns columns(text, label, Get()->settings().space);
    ASSERT_OK(testing::Send(*store_, kName, "p", columns.batch()).status);
  }
  // "free prize" and "free home", one after the other.
  void LearnPairs(int count) {
    for (int i = 0; i < count; ++i) {
      Learn("free prize", 1);
      Learn("free home", -1);
    }
  }
  float Score(const Model& model, const std::string& text) {
    const TextColumns columns(text, 1, model.settings().space);
    Batch batch = columns.batch();
    batch.labels = {};
    PredictOutcome outcome;
    EXPECT_OK(model.Predict(batch, {}, 0, outcome));
    return outcome.scores.at(0);
  }
  static storage::Snapshot State(const Model& model) {
    storage::Snapshot state = MakeSnapshot(model);
    state.clear_learning_curve();
    return state;
  }
  std::vector<storage::UpdateRecord> Records() {
    std::vector<storage::UpdateRecord> records;
    EXPECT_OK(others_->Replay(header_.id(), 0, [&](const storage::UpdateRecord& record, size_t) {
      records.push_back(record);
      return absl::OkStatus();
    }));
    return records;
  }

  std::unique_ptr<MemoryJournal> others_;
  std::unique_ptr<Store> store_;
  storage::ModelHeader header_;
};

TEST_F(FrequencyChange, ComesAfter64TextsAndWheneverTheirNumberHasDoubledAndIsTheOnlyWrite) {
  Create(Settings());
  LearnPairs(32);
  const uint64_t revision = Get()->revision();
  const size_t records = Records().size();
  const std::vector<float> weights = ListWeights(*Get()).at(0).values;
  EXPECT_EQ(State(*Get()).document_counts().documents(), 64U);
  EXPECT_FALSE(State(*Get()).has_document_frequencies());
  // Each is right, before and after.
  for (const uint64_t documents : {64, 128, 256}) {
    LearnPairs(1);
    const storage::UpdateRecord record = Records().back();
    EXPECT_EQ(record.document_frequencies().documents(), documents);
    EXPECT_EQ(record.document_frequencies().counts_size(), 3);
    LearnPairs(static_cast<int>(documents) / 2 - 1);
  }
  EXPECT_EQ(Get()->revision(), revision + 3);
  EXPECT_EQ(Records().size(), records + 3);
  EXPECT_EQ(ListWeights(*Get()).at(0).values, weights);
}

TEST_F(FrequencyChange, ScalesRowsAsScikitLearnDoes) {
  Create(Settings());
  LearnPairs(33);
  const WeightList list = ListWeights(*Get()).at(0);
  std::map<uint32_t, double> weights;
  for (size_t i = 0; i < list.indices.size(); ++i) weights[list.indices[i]] = list.values[i];
  const double prize = std::log(65.0 / 33) + 1;
  const auto weight = [&](const char* name) { return weights[NameSlot(name, 1U << 10)]; };
  EXPECT_NEAR(Score(*Get(), "free prize"),
              (weight("free") + weight("prize") * prize) / std::hypot(1, prize) + list.bias, 1e-6);
  EXPECT_NEAR(Score(*Get(), "prize unknown"),
              weight("prize") * prize / std::hypot(prize, 1) + list.bias, 1e-6);
}

TEST_F(FrequencyChange, BeginsTheFiguresAgainAndDropsStoredExamples) {
  Create(Settings());
  LearnPairs(32);
  const ConvergenceReport before = MakeReport(*Get());
  EXPECT_GT(before.streak(), 32U);
  EXPECT_TRUE(before.has_margin_ceiling());
  EXPECT_GT(CopyStoredExamples(*Get()).examples.sample.size(), 0U);
  Learn("free prize", 1);
  const ConvergenceReport after = MakeReport(*Get());
  EXPECT_EQ(after.examples(), 65U);
  EXPECT_EQ(after.updates(), before.updates() + 1);
  EXPECT_EQ(after.mistakes(), before.mistakes());
  EXPECT_EQ(after.streak(), 1U);
  EXPECT_EQ(after.window_examples(), 1U);
  EXPECT_FALSE(after.has_margin_ceiling());
  EXPECT_FALSE(after.has_bound_in_use());
  const StoredExamplesView stored = CopyStoredExamples(*Get());
  EXPECT_THAT(stored.examples.updates, IsEmpty());
  EXPECT_FALSE(stored.examples.complete);
}

TEST_F(FrequencyChange, ARollbackBeforeItHasTheExamplesThatItFound) {
  Create(Settings("averaged-perceptron"));
  ASSERT_OK(ModelHistory(*store_).Keep(kName, "empty").status());
  // The last of them are right, as are those after the change.
  LearnPairs(32);
  const uint64_t before = Get()->revision();
  LearnPairs(1);
  ASSERT_EQ(Get()->revision(), before + 1);
  ASSERT_OK(ModelHistory(*store_).RollBack(kName, {"", before}, std::nullopt));
  EXPECT_EQ(Get()->ledger().examples(), 64U);
}

TEST_F(FrequencyChange, ADamagedRecordIsDataLoss) {
  Create(Settings());
  LearnPairs(33);
  storage::UpdateRecord record = Records().back();
  ASSERT_TRUE(record.has_document_frequencies());
  record.mutable_document_frequencies()->set_slot_distances(1, 1 << 10);
  JournalEntry entry;
  entry.model_id = header_.id();
  entry.counters = others_->LoadCounters(header_.id()).value();
  entry.records = {record};
  ASSERT_OK(others_->Commit({&entry, 1}, {}).status());
  EXPECT_TRUE(absl::IsDataLoss(Model::Load(header_, *others_, ModelLimits()).status()));
}

}  // namespace
}  // namespace perceptrond::frequency_change_test
