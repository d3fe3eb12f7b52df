// Stored examples: which are kept, what survives a restart, and when the sample is complete.
#include "core/ledger/stored_examples.h"

#include <algorithm>
#include <map>
#include <random>

#include "core/features/names.h"
#include "core/journal/rocksdb_journal.h"
#include "core/model/model_analysis.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"
#include "tests/support/traffic.h"

namespace perceptrond::stored_examples_test {
namespace {

using testing::Columns;
using testing::Message;
using testing::Space;
using testing::SpaceBatch;
using testing::SvmExample;
namespace v1 = ::perceptron::v1;

// An example as it was sent, in a form that can be compared: label, and values by feature.
using Plain = std::pair<int32_t, std::map<std::string, float>>;

Plain PlainOf(const Model& model, const StoredRow& row) {
  return {row.label, testing::ValuesByName(model, row)};
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

class StoredExamplesTest : public ::testing::TestWithParam<Space> {
 protected:
  static constexpr uint32_t kDimension = 24;

  // Some hundred examples, many of them several times.
  static std::vector<SvmExample> Examples(uint32_t seed) {
    testing::TrafficOptions traffic;
    traffic.bad_rows = false;
    std::vector<SvmExample> examples;
    for (const Message& message : MakeTraffic(seed, traffic))
      examples.insert(examples.end(), message.examples.begin(), message.examples.end());
    const size_t count = examples.size();
    for (size_t i = 0; i < count; i += 3) examples.push_back(examples[i]);
    return examples;
  }
  static void LearnAll(testing::LoneModel& lone, const std::vector<SvmExample>& examples) {
    for (size_t at = 0; at < examples.size(); at += 7) {
      const size_t end = std::min(at + 7, examples.size());
      lone.Learn(SpaceBatch(GetParam(), {examples.begin() + static_cast<std::ptrdiff_t>(at),
                                         examples.begin() + static_cast<std::ptrdiff_t>(end)})
                     .batch());
    }
  }
  // The different examples, as the model should hold them.
  static std::vector<Plain> Distinct(const std::vector<SvmExample>& examples) {
    std::vector<Plain> plain;
    for (const SvmExample& example : examples) {
      Plain& one = plain.emplace_back(example.label, std::map<std::string, float>());
      for (size_t i = 0; i < example.indices.size(); ++i) {
        const std::string name = absl::StrCat("f", example.indices[i]);
        const std::string key = GetParam() == Space::kDense ? absl::StrCat(example.indices[i])
                                : GetParam() == Space::kHashed
                                    ? absl::StrCat(NameSlot(name, 1U << 16))
                                    : name;
        one.second[key] = example.values[i];
      }
    }
    std::sort(plain.begin(), plain.end());
    plain.erase(std::unique(plain.begin(), plain.end()), plain.end());
    return plain;
  }
};

TEST_P(StoredExamplesTest, ASampleWithRoomHoldsEveryDifferentExampleOnce) {
  const std::vector<SvmExample> examples = Examples(1);
  testing::LoneModel lone(Sampling(GetParam(), kDimension, 100'000));
  for (int pass = 0; pass < 3; ++pass) {
    LearnAll(lone, examples);
    EXPECT_EQ(PlainSample(*lone.model), Distinct(examples));
    EXPECT_TRUE(lone.model->ledger().stored_examples().statistics().complete);
  }
}

TEST_P(StoredExamplesTest, AFullSampleIsTheSameWhateverTheOrder) {
  std::vector<SvmExample> examples = Examples(2);
  testing::LoneModel one(Sampling(GetParam(), kDimension, 50));
  LearnAll(one, examples);
  std::mt19937 random(3);
  std::shuffle(examples.begin(), examples.end(), random);
  testing::LoneModel other(Sampling(GetParam(), kDimension, 50));
  LearnAll(other, examples);
  LearnAll(other, examples);
  EXPECT_EQ(PlainSample(*one.model).size(), 50U);
  EXPECT_EQ(PlainSample(*one.model), PlainSample(*other.model));
  EXPECT_FALSE(one.model->ledger().stored_examples().statistics().complete);
}

TEST_P(StoredExamplesTest, TheLatestUpdatesAreKeptWithTheirRevisionsAndScores) {
  v1::Model settings = Sampling(GetParam(), kDimension, 0);
  settings.mutable_stored_examples()->set_max_updates(9);
  testing::LoneModel lone(settings);
  std::vector<std::pair<uint64_t, float>> updates;
  for (const SvmExample& example : Examples(4)) {
    const LearnOutcome outcome = lone.Learn(SpaceBatch(GetParam(), {example}).batch());
    if (!outcome.updated_rows.empty()) updates.emplace_back(outcome.revision, outcome.scores[0]);
  }
  ASSERT_GT(updates.size(), 20U);
  const StoredExamplesCopy stored = CopyStoredExamples(*lone.model).examples;
  ASSERT_EQ(stored.updates.size(), 9U);
  EXPECT_TRUE(stored.sample.empty());
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(stored.updates[i].revision, updates[updates.size() - 9 + i].first);
    EXPECT_EQ(stored.updates[i].score, updates[updates.size() - 9 + i].second);
  }
}

// Through a store that comes and goes: nothing is lost, and the claim stands.
TEST_P(StoredExamplesTest, SurvivesTheStoreWithItsClaim) {
  testing::TempDir directory;
  const auto open = [&](uint64_t snapshot_bytes) {
    RocksDbJournal::Options journal;
    journal.directory = directory.path();
    Store::Options options;
    options.snapshot_bytes = snapshot_bytes;
    return std::make_unique<Store>(RocksDbJournal::Open(journal).value(), options);
  };
  const std::vector<SvmExample> examples = Examples(5);
  testing::LoneModel twin(Sampling(GetParam(), kDimension, 100'000));
  LearnAll(twin, examples);
  LearnAll(twin, examples);
  auto store = open(1);
  ASSERT_OK(store->Create(Sampling(GetParam(), kDimension, 100'000), "", false).status());
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t at = 0; at < examples.size(); at += 40) {
      const size_t end = std::min(at + 40, examples.size());
      const std::vector<SvmExample> some(examples.begin() + static_cast<std::ptrdiff_t>(at),
                                         examples.begin() + static_cast<std::ptrdiff_t>(end));
      ASSERT_OK(
          testing::Send(*store, "models/m", "p", SpaceBatch(GetParam(), some).batch()).status);
      if (at % 120 == 0) store = nullptr, store = open(at % 240 == 0 ? 1 : uint64_t{1} << 40);
    }
  }
  store = nullptr;
  store = open(1);
  const std::shared_ptr<Model> model = store->Acquire("models/m").value();
  EXPECT_EQ(PlainSample(*model), Distinct(examples));
  EXPECT_TRUE(model->ledger().stored_examples().statistics().complete);
  EXPECT_EQ(testing::StateBytes(*model), testing::StateBytes(*twin.model));
}

INSTANTIATE_TEST_SUITE_P(Spaces, StoredExamplesTest,
                         ::testing::Values(Space::kDense, Space::kHashed, Space::kNamed),
                         [](const auto& info) { return testing::SpaceName(info.param); });

// A crash: what the journal holds, without what a store writes as it closes.
class CrashedSample : public ::testing::Test {
 protected:
  std::shared_ptr<Model> Reload() {
    JournalEntry entry = lone_.model->ledger().TakePending();
    entry.model_id = lone_.model->id();
    EXPECT_OK(lone_.journal.Commit({&entry, 1}, {}).status());
    return Model::Load(lone_.journal.Find("models/m").value(), lone_.journal, Model::Limits())
        .value();
  }
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
  EXPECT_LE(stored.statistics().memory_bytes, StoredExamples::kMaxUpdateBytes);
  const StoredExamplesCopy kept = stored.Copy();
  EXPECT_EQ(kept.updates.size(), 15U);
  EXPECT_EQ(kept.updates.back().revision, 40U);
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
