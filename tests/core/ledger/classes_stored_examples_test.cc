// Stored examples of a model of several classes: its examples with the right classes and names,
// also of those added mid-stream, and all of it again to the bit after the server was away.
#include <algorithm>
#include <map>

#include "core/features/names.h"
#include "core/journal/rocksdb_journal.h"
#include "gtest/gtest.h"
#include "tests/support/class_traffic.h"
#include "tests/support/learners.h"
#include "tests/support/temp_dir.h"

namespace perceptrond::classes_stored_examples_test {
namespace {

using testing::ClassBatch;
using testing::ClassCase;
using testing::ClassKind;
using testing::Space;
using testing::SvmExample;
namespace v1 = ::perceptron::v1;

constexpr int kClasses = 6;
constexpr uint32_t kDimension = 20;
constexpr uint32_t kBits = 16;

// An example as it was sent: what its class is called, and its values by feature.
using Plain = std::pair<std::string, std::map<std::string, float>>;

class ClassesStored : public ::testing::TestWithParam<ClassCase> {
 protected:
  v1::Model Settings(uint32_t updates, uint32_t sample) const {
    v1::Model settings = testing::SpaceSettings(GetParam().space, "models/m", kDimension);
    if (GetParam().space == Space::kHashed)
      settings.mutable_feature_space()->mutable_hashed()->set_bits(kBits);
    testing::SetLearner(*settings.mutable_learner(), GetParam().learner);
    testing::SetClasses(GetParam().classes, kClasses, settings);
    settings.mutable_stored_examples()->set_max_updates(updates);
    settings.mutable_stored_examples()->set_max_sample(sample);
    return settings;
  }
  ClassBatch Batched(const std::vector<SvmExample>& examples) const {
    return ClassBatch(GetParam().classes, GetParam().space, examples);
  }
  // As the model should hold it.
  static Plain PlainOf(const SvmExample& example) {
    Plain plain{testing::ByName(GetParam().classes) ? testing::ClassCalled(example.label)
                                                    : absl::StrCat(example.label),
                {}};
    for (size_t i = 0; i < example.indices.size(); ++i) {
      const std::string name = absl::StrCat("f", example.indices[i]);
      const std::string key = GetParam().space == Space::kDense ? absl::StrCat(example.indices[i])
                              : GetParam().space == Space::kHashed
                                  ? absl::StrCat(NameSlot(name, 1U << kBits))
                                  : name;
      plain.second[key] = example.values[i];
    }
    return plain;
  }
  // As it holds it: what its number for the class is called now.
  static Plain PlainOf(const Model& model, const StoredRow& row) {
    const auto number = static_cast<size_t>(row.label);
    return {
        model.settings().named_classes() ? LabelNames(model).at(number) : absl::StrCat(row.label),
        testing::ValuesByName(model, row)};
  }
  static std::vector<Plain> Sample(const Model& model) {
    std::vector<Plain> plain;
    for (const auto& [hash, row] : CopyStoredExamples(model).examples.sample)
      plain.push_back(PlainOf(model, *row));
    std::sort(plain.begin(), plain.end());
    return plain;
  }
  static std::vector<Plain> Distinct(const std::vector<std::vector<SvmExample>>& messages) {
    std::vector<Plain> plain;
    for (const auto& message : messages) {
      for (const SvmExample& example : message) plain.push_back(PlainOf(example));
    }
    std::sort(plain.begin(), plain.end());
    plain.erase(std::unique(plain.begin(), plain.end()), plain.end());
    return plain;
  }
  std::unique_ptr<Store> Open(uint64_t snapshot_bytes) const {
    RocksDbJournal::Options journal;
    journal.directory = directory_.path();
    Store::Options options;
    options.snapshot_bytes = snapshot_bytes;
    return std::make_unique<Store>(RocksDbJournal::Open(journal).value(), options);
  }

  const testing::TempDir directory_;
};

TEST_P(ClassesStored, ASampleHoldsEveryDifferentExampleWithItsClass) {
  const auto messages = testing::ClassMessages(1, kClasses, kDimension, 60);
  testing::LoneModel lone(Settings(10, 100'000));
  for (int pass = 0; pass < 2; ++pass) {
    for (const auto& message : messages) lone.Learn(Batched(message).batch());
    EXPECT_EQ(Sample(*lone.model), Distinct(messages));
    EXPECT_TRUE(lone.model->ledger().stored_examples().statistics().complete);
  }
}

TEST_P(ClassesStored, TheLatestUpdatesAreThereWithClassRevisionAndMargin) {
  testing::LoneModel lone(Settings(9, 0));
  struct Update {
    Plain example;
    uint64_t revision;
    float score;
  };
  std::vector<Update> updates;
  for (const auto& message : testing::ClassMessages(2, kClasses, kDimension, 60)) {
    for (const SvmExample& example : message) {
      const LearnOutcome outcome = lone.Learn(Batched({example}).batch());
      if (!outcome.updated_rows.empty())
        updates.push_back({PlainOf(example), outcome.revision, outcome.scores[0]});
    }
  }
  ASSERT_GT(updates.size(), 25U);
  const StoredExamplesCopy stored = CopyStoredExamples(*lone.model).examples;
  ASSERT_EQ(stored.updates.size(), 9U);
  for (size_t i = 0; i < 9; ++i) {
    const Update& expected = updates[updates.size() - 9 + i];
    EXPECT_EQ(PlainOf(*lone.model, *stored.updates[i].row), expected.example);
    EXPECT_EQ(stored.updates[i].revision, expected.revision);
    EXPECT_EQ(stored.updates[i].score, expected.score);
  }
}

// From snapshots with records after them, and from records alone.
TEST_P(ClassesStored, IsThereAgainToTheBitAfterTheStoreWasAway) {
  const auto messages = testing::ClassMessages(3, kClasses, kDimension, 60);
  testing::LoneModel twin(Settings(25, 100'000));
  for (const auto& message : messages) twin.Learn(Batched(message).batch());
  std::unique_ptr<Store> store = Open(1);
  ASSERT_OK(store->Create(Settings(25, 100'000), "", false).status());
  for (size_t i = 0; i < messages.size(); ++i) {
    ASSERT_OK(testing::Send(*store, "models/m", "p", Batched(messages[i]).batch()).status);
    if (i % 15 == 14) store = nullptr, store = Open(i % 30 == 14 ? 1 : uint64_t{1} << 40);
  }
  store = nullptr;
  store = Open(1);
  const std::shared_ptr<Model> model = store->Acquire("models/m").value();
  EXPECT_EQ(Sample(*model), Distinct(messages));
  EXPECT_TRUE(model->ledger().stored_examples().statistics().complete);
  EXPECT_EQ(LabelNames(*model), LabelNames(*twin.model));
  // Stored examples are part of it.
  EXPECT_EQ(MakeSnapshot(*model).stored_rows().SerializeAsString(),
            MakeSnapshot(*twin.model).stored_rows().SerializeAsString());
  EXPECT_EQ(testing::StateBytes(*model), testing::StateBytes(*twin.model));
}

// No snapshot was ever taken: the updates are replayed from their records, new classes among them.
TEST_P(ClassesStored, UpdatesComeBackFromTheirRecordsAfterACrash) {
  testing::LoneModel lone(Settings(1000, 0));
  for (const auto& message : testing::ClassMessages(4, kClasses, kDimension, 40))
    lone.Learn(Batched(message).batch());
  JournalEntry entry = lone.model->ledger().TakePending();
  entry.model_id = lone.model->id();
  ASSERT_OK(lone.journal.Commit({&entry, 1}, {}).status());
  const std::shared_ptr<Model> model =
      Model::Load(lone.journal.Find("models/m").value(), lone.journal, Model::Limits()).value();
  const StoredExamplesCopy before = CopyStoredExamples(*lone.model).examples;
  const StoredExamplesCopy after = CopyStoredExamples(*model).examples;
  ASSERT_EQ(after.updates.size(), model->revision());
  ASSERT_EQ(after.updates.size(), before.updates.size());
  EXPECT_EQ(LabelNames(*model), LabelNames(*lone.model));
  for (size_t i = 0; i < after.updates.size(); ++i) {
    EXPECT_EQ(PlainOf(*model, *after.updates[i].row), PlainOf(*lone.model, *before.updates[i].row));
    EXPECT_EQ(after.updates[i].revision, before.updates[i].revision);
    EXPECT_EQ(after.updates[i].score, before.updates[i].score);
  }
}

std::vector<ClassCase> Cases() {
  std::vector<ClassCase> cases;
  // A rule that writes on mistakes, and one that writes on every example.
  for (const std::string kind : {"perceptron", "logistic-regression"}) {
    for (const ClassKind classes :
         {ClassKind::kFixed, ClassKind::kFixedNamed, ClassKind::kNumbered, ClassKind::kNamed}) {
      for (const Space space : {Space::kDense, Space::kHashed, Space::kNamed})
        cases.push_back({kind, classes, space});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Cases, ClassesStored, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return testing::ClassCaseName(info.param); });

}  // namespace
}  // namespace perceptrond::classes_stored_examples_test
