// Stored examples: which are kept, what survives a restart, and when the sample is complete.
#include "core/ledger/stored_examples.h"

#include <algorithm>
#include <map>
#include <optional>
#include <random>

#include "core/features/names.h"
#include "core/model/model_analysis.h"
#include "gtest/gtest.h"
#include "tests/core/model/analysed_model.h"
#include "tests/support/class_traffic.h"

namespace perceptrond::stored_examples_test {
namespace {

using testing::ClassKind;
using testing::Columns;
using testing::Space;
using testing::SvmExample;
namespace v1 = ::perceptron::v1;

constexpr int kClasses = 6;
constexpr uint32_t kDimension = 24;

// An example as it was sent, in a form that can be compared: label, and values by feature.
using Plain = std::pair<std::string, std::map<std::string, float>>;

Plain PlainOf(const Model& model, const StoredRow& row) {
  const bool named = model.settings().named_classes();
  return {named ? LabelNames(model).at(static_cast<size_t>(row.label)) : absl::StrCat(row.label),
          testing::ValuesByName(model, row)};
}

std::vector<Plain> PlainSample(const Model& model) {
  std::vector<Plain> plain;
  for (const auto& [hash, row] : CopyStoredExamples(model).examples.sample)
    plain.push_back(PlainOf(model, *row));
  std::sort(plain.begin(), plain.end());
  return plain;
}

v1::Model Sampling(Space space, uint32_t dimension, uint32_t sample) {
  v1::Model settings = testing::SpaceSettings(space, "models/m", dimension);
  if (space == Space::kHashed) settings.mutable_feature_space()->mutable_hashed()->set_bits(16);
  settings.mutable_stored_examples()->set_max_sample(sample);
  return settings;
}

// Two labels, or several classes of each kind, in each space.
class StoredExamplesTest
    : public ::testing::TestWithParam<std::tuple<Space, std::optional<ClassKind>>> {
 protected:
  static Space space() { return std::get<0>(GetParam()); }
  static std::optional<ClassKind> classes() { return std::get<1>(GetParam()); }
  static v1::Model Settings(uint32_t sample) {
    v1::Model settings = Sampling(space(), kDimension, sample);
    if (classes().has_value()) testing::SetClasses(*classes(), kClasses, settings);
    return settings;
  }
  // Some hundred examples, many of them several times.
  static std::vector<SvmExample> Examples(uint32_t seed) {
    std::vector<SvmExample> examples;
    for (std::vector<SvmExample>& message :
         testing::ClassMessages(seed, classes().has_value() ? kClasses : 2, kDimension, 80)) {
      for (SvmExample& example : message) {
        if (!classes().has_value()) example.label = example.label > 0 ? 1 : -1;
        examples.push_back(std::move(example));
      }
    }
    const size_t count = examples.size();
    for (size_t i = 0; i < count; i += 3) examples.push_back(examples[i]);
    return examples;
  }
  static LearnOutcome Learn(testing::LoneModel& lone, const std::vector<SvmExample>& examples) {
    return lone.Learn(
        testing::ClassBatch(classes().value_or(ClassKind::kFixed), space(), examples).batch());
  }
  static void LearnAll(testing::LoneModel& lone, const std::vector<SvmExample>& examples) {
    for (size_t at = 0; at < examples.size(); at += 7) {
      const size_t end = std::min(at + 7, examples.size());
      Learn(lone, {examples.begin() + static_cast<std::ptrdiff_t>(at),
                   examples.begin() + static_cast<std::ptrdiff_t>(end)});
    }
  }
  // As the model should hold it.
  static Plain PlainOfSent(const SvmExample& example) {
    const bool named = classes().has_value() && testing::ByName(*classes());
    Plain plain{named ? testing::ClassCalled(example.label) : absl::StrCat(example.label), {}};
    for (size_t i = 0; i < example.indices.size(); ++i) {
      const std::string name = absl::StrCat("f", example.indices[i]);
      const std::string key = space() == Space::kDense    ? absl::StrCat(example.indices[i])
                              : space() == Space::kHashed ? absl::StrCat(NameSlot(name, 1U << 16))
                                                          : name;
      plain.second[key] = example.values[i];
    }
    return plain;
  }
  static std::vector<Plain> Distinct(const std::vector<SvmExample>& examples) {
    std::vector<Plain> plain;
    for (const SvmExample& example : examples) plain.push_back(PlainOfSent(example));
    std::sort(plain.begin(), plain.end());
    plain.erase(std::unique(plain.begin(), plain.end()), plain.end());
    return plain;
  }
};

TEST_P(StoredExamplesTest, ASampleWithRoomHoldsEveryDifferentExampleOnce) {
  const std::vector<SvmExample> examples = Examples(1);
  testing::LoneModel lone(Settings(100'000));
  for (int pass = 0; pass < 2; ++pass) {
    LearnAll(lone, examples);
    EXPECT_EQ(PlainSample(*lone.model), Distinct(examples));
    EXPECT_TRUE(lone.model->ledger().stored_examples().statistics().complete);
  }
}

TEST_P(StoredExamplesTest, AFullSampleIsTheSameWhateverTheOrder) {
  // Classes that are added are numbered as they come.
  if (classes() == ClassKind::kNamed) return;
  std::vector<SvmExample> examples = Examples(2);
  testing::LoneModel one(Settings(50));
  LearnAll(one, examples);
  std::mt19937 random(3);
  std::shuffle(examples.begin(), examples.end(), random);
  testing::LoneModel other(Settings(50));
  LearnAll(other, examples);
  LearnAll(other, examples);
  EXPECT_EQ(PlainSample(*one.model).size(), 50U);
  EXPECT_EQ(PlainSample(*one.model), PlainSample(*other.model));
  EXPECT_FALSE(one.model->ledger().stored_examples().statistics().complete);
}

TEST_P(StoredExamplesTest, TheLatestUpdatesAreKeptWithTheirLabelsRevisionsAndScores) {
  v1::Model settings = Settings(0);
  settings.mutable_stored_examples()->set_max_updates(9);
  testing::LoneModel lone(settings);
  struct Update {
    Plain example;
    uint64_t revision;
    float score;
  };
  std::vector<Update> updates;
  for (const SvmExample& example : Examples(4)) {
    const LearnOutcome outcome = Learn(lone, {example});
    if (!outcome.updated_rows.empty())
      updates.push_back({PlainOfSent(example), outcome.revision, outcome.scores[0]});
  }
  ASSERT_GT(updates.size(), 20U);
  const StoredExamplesCopy stored = CopyStoredExamples(*lone.model).examples;
  ASSERT_EQ(stored.updates.size(), 9U);
  EXPECT_TRUE(stored.sample.empty());
  for (size_t i = 0; i < 9; ++i) {
    const Update& expected = updates[updates.size() - 9 + i];
    EXPECT_EQ(PlainOf(*lone.model, *stored.updates[i].row), expected.example);
    EXPECT_EQ(stored.updates[i].revision, expected.revision);
    EXPECT_EQ(stored.updates[i].score, expected.score);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Forms, StoredExamplesTest,
    ::testing::Combine(::testing::Values(Space::kDense, Space::kHashed, Space::kNamed),
                       ::testing::Values(std::nullopt, ClassKind::kFixed, ClassKind::kFixedNamed,
                                         ClassKind::kNumbered, ClassKind::kNamed)),
    [](const auto& info) {
      const std::optional<ClassKind> classes = std::get<1>(info.param);
      return testing::SpaceName(std::get<0>(info.param)) + "_" +
             (classes.has_value() ? testing::ClassKindName(*classes) : "TwoLabels");
    });

// A crash: what the journal holds, without what a store writes as it closes.
class CrashedSample : public ::testing::Test {
 protected:
  std::shared_ptr<Model> Reload() { return testing::Reload(lone_); }
  void Save() {
    EXPECT_OK(lone_.journal.SaveSnapshot(lone_.model->id(), MakeSnapshot(*lone_.model)));
  }
  bool Complete(Model& model) { return model.ledger().stored_examples().statistics().complete; }

  testing::LoneModel lone_{Sampling(Space::kDense, 2, 10)};
  const Columns update_ = Columns().AddDense({1, 2}, 1);
  const Columns right_ = Columns().AddDense({2, 2}, 1);
  const Columns right_too_ = Columns().AddDense({3, 2}, 1);
};

TEST_F(CrashedSample, ExamplesThatCausedUpdatesComeBackFromTheJournal) {
  lone_.Learn(update_.batch());
  const std::shared_ptr<Model> model = Reload();
  EXPECT_TRUE(Complete(*model));
  EXPECT_EQ(CopyStoredExamples(*model).examples.sample.size(), 1U);
  EXPECT_EQ(CopyStoredExamples(*model).examples.updates.size(), 1U);
}

TEST_F(CrashedSample, ALostRightAnswerEndsTheClaim) {
  lone_.Learn(update_.batch());
  lone_.Learn(right_.batch());
  ASSERT_TRUE(Complete(*lone_.model));
  const std::shared_ptr<Model> model = Reload();
  EXPECT_FALSE(Complete(*model));
  EXPECT_EQ(CopyStoredExamples(*model).examples.sample.size(), 1U);
}

// The number of examples lost and found again adds up; the examples do not.
TEST_F(CrashedSample, AnotherExampleDoesNotStandForTheOneThatWasLost) {
  lone_.Learn(update_.batch());
  lone_.Learn(right_.batch());
  const std::shared_ptr<Model> model = Reload();
  LearnCall call;
  Producer producer("");
  call.batch = right_too_.batch();
  call.producer = &producer;
  LearnOutcome outcome;
  ASSERT_OK(model->Learn(call, outcome));
  EXPECT_EQ(model->ledger().stored_examples().statistics().sampled, 2U);
  EXPECT_FALSE(Complete(*model));
}

TEST_F(CrashedSample, RepetitionsSinceTheSnapshotAreNoLoss) {
  lone_.Learn(update_.batch());
  lone_.Learn(right_.batch());
  Save();
  lone_.Learn(right_.batch());
  lone_.Learn(update_.batch());
  const std::shared_ptr<Model> model = Reload();
  EXPECT_TRUE(Complete(*model));
  EXPECT_EQ(CopyStoredExamples(*model).examples.sample.size(), 2U);
}

TEST_F(CrashedSample, ASecondSnapshotOfTheSameRevisionAddsWhatCameBetween) {
  lone_.Learn(update_.batch());
  Save();
  lone_.Learn(right_.batch());
  Save();
  EXPECT_TRUE(Complete(*Reload()));
}

TEST_F(CrashedSample, AnswersThatAProducerVouchesForEndTheClaim) {
  lone_.Learn(update_.batch());
  lone_.model->ledger().Resume(lone_.producer, 5);
  EXPECT_FALSE(Complete(*lone_.model));
  EXPECT_FALSE(Complete(*Reload()));
}

TEST(StoredExamples, TwoExamplesWithOneHashEndTheClaim) {
  // As if they had collided: the second is offered under the first one's hash.
  StoredExamples stored({10, 10});
  const Dictionary names;
  const float first[] = {1, 2};
  const float second[] = {2, 1};
  const auto candidates = [&](const float* values) {
    std::vector<SampledRow> rows;
    StoredExamples::Sampler(stored).Offer({{nullptr, values, 2}, 1, {}}, names, rows);
    return rows;
  };
  std::vector<SampledRow> rows = candidates(first);
  ASSERT_EQ(rows.size(), 1U);
  stored.Add(rows, names);
  EXPECT_TRUE(candidates(first).empty());
  const uint64_t hash = rows[0].first;
  rows = candidates(second);
  ASSERT_EQ(rows.size(), 1U);
  rows[0].first = hash;
  ASSERT_TRUE(stored.statistics().complete);
  stored.Add(rows, names);
  EXPECT_FALSE(stored.statistics().complete);
  EXPECT_EQ(stored.statistics().sampled, 1U);
}

TEST(StoredExamples, LargeUpdatesArePushedOutByBytes) {
  StoredExamples stored({1'000'000, 0});
  const std::vector<float> values(1 << 20);
  for (uint64_t revision = 1; revision <= 40; ++revision) {
    const SeenExample seen{{nullptr, values.data(), values.size()}, 1, {}};
    stored.AddUpdate({std::make_shared<const StoredRow>(seen), revision, 1, 0});
  }
  EXPECT_LE(stored.statistics().memory_bytes, StoredExamplesSettings().update_bytes);
  const StoredExamplesCopy kept = stored.Copy();
  EXPECT_EQ(kept.updates.size(), 15U);
  EXPECT_EQ(kept.updates.back().revision, 40U);
}

// Every tenth example is large.
TEST(StoredExamples, ASampleThatHasNoRoomForAllKeepsTheLeastHashesAlsoWhenItIsRestored) {
  constexpr size_t kBytes = 2 << 20;
  StoredExamples stored({0, 1'000'000, 0, kBytes});
  const auto add = [&](uint64_t hash) {
    const std::vector<float> values(hash % 10 == 0 ? 1 << 16 : 1);
    const SeenExample seen{{nullptr, values.data(), values.size()}, 1, {}};
    const SampledRow row(hash, std::make_shared<const StoredRow>(seen));
    stored.Add({&row, 1}, Dictionary());
  };
  for (uint64_t hash = 200; hash > 0; --hash) add(hash);
  const auto expect_least = [](const StoredExamples& sample, uint64_t count, size_t bytes) {
    const StoredExamplesCopy kept = sample.Copy();
    EXPECT_EQ(kept.sample.size(), count);
    EXPECT_EQ(kept.sample.back().first, count);
    EXPECT_EQ(kept.hash_limit, count + 1);
    EXPECT_LE(sample.statistics().memory_bytes, bytes);
  };
  expect_least(stored, 79, kBytes);
  EXPECT_FALSE(stored.statistics().complete);
  // By a server with less memory.
  StoredExamples restored({0, 1'000'000, 0, kBytes / 2});
  restored.Restore(stored.Copy());
  expect_least(restored, 39, kBytes / 2);
}

TEST(StoredExamples, TakeAPartOfWhatTheModelMayTakeAndNoMoreThanTheirNumber) {
  constexpr size_t kModelBytes = 12 << 20;
  ModelSettings settings;
  settings.space.size = 1000;
  settings.stored_examples = {10, 100'000};
  const StoredExamplesSettings stored = StoredExamplesWithin(settings, kModelBytes);
  EXPECT_EQ(stored.sample_bytes, kModelBytes / 3);
  EXPECT_GE(stored.update_bytes, 10U * 1000 * (sizeof(uint32_t) + sizeof(float)));
  EXPECT_LE(stored.update_bytes, 10U * 10'000);
  settings.space.kind = FeatureSpace::Kind::kNamed;
  settings.stored_examples = {1, 0};
  EXPECT_EQ(StoredExamplesWithin(settings, kModelBytes).most_bytes(), kModelBytes / 12);
}

// An example of names, right ones too, is analyzed with all of its names, whether or not they have
// weights by then.
TEST(AnalysisInput, NamesThatHaveNoWeightAreFeaturesLikeOthers) {
  v1::Model settings = Sampling(Space::kNamed, 100, 100);
  testing::LoneModel lone(settings);
  const auto learn = [&](std::vector<std::pair<std::string, float>> features, int32_t label) {
    testing::NamedExample example;
    example.features = std::move(features);
    example.label = label;
    lone.Learn(testing::NamedColumns({example}, {}).batch());
  };
  learn({{"a", 1}}, 1);            // an update
  learn({{"a", 1}, {"b", 1}}, 1);  // right; b has no weight
  learn({{"b", 2}}, -1);           // an update: b has one now
  learn({{"a", 3}, {"c", 4}}, 1);  // right; c never gets one
  const AnalysisInput input = AnalysisInput::Make(*lone.model).value();
  EXPECT_TRUE(input.complete());
  ASSERT_EQ(input.rows().size(), 4U);
  EXPECT_EQ(input.new_names(), std::vector<std::string>{"c"});
  std::vector<std::vector<std::pair<uint32_t, float>>> rows;
  for (const LabelledRow& row : input.rows()) {
    auto& one = rows.emplace_back();
    for (size_t i = 0; i < row.row.size; ++i) one.emplace_back(row.row.index(i), row.row.value(i));
  }
  std::sort(rows.begin(), rows.end());
  const std::vector<std::vector<std::pair<uint32_t, float>>> expected = {
      {{1, 1}}, {{1, 1}, {2, 1}}, {{1, 3}, {3, 4}}, {{2, 2}}};
  EXPECT_EQ(rows, expected);
}

}  // namespace
}  // namespace perceptrond::stored_examples_test
