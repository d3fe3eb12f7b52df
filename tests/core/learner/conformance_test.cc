// What every learner of the catalogue must do, under each of its settings.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "core/features/mapper.h"
#include "core/learner/catalogue.h"
#include "gtest/gtest.h"
#include "tests/support/columns.h"

namespace perceptrond {
namespace {

using testing::Columns;
using testing::NamedColumns;
using testing::NamedExample;
using testing::SvmExample;

constexpr uint32_t kDimension = 13;

using Setting = std::tuple<const CatalogueEntry*, TieRule, double, double>;

std::vector<const CatalogueEntry*> Entries() {
  std::vector<const CatalogueEntry*> entries;
  for (const CatalogueEntry& entry : Catalogue()) entries.push_back(&entry);
  return entries;
}

std::string SettingName(const ::testing::TestParamInfo<Setting>& info) {
  const auto& [entry, tie, offset, step] = info.param;
  const std::string name = absl::StrCat(entry->name, "_tie", static_cast<int>(tie), "_offset",
                                        offset * 100, "_step", step * 100);
  std::string safe;
  for (const char c : name) safe += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return safe;
}

// Every bit of a learner's state.
std::vector<uint64_t> Bits(const Learner& learner) {
  std::vector<uint64_t> bits;
  const LearnerStateView state = learner.State();
  for (const std::span<const float> array : state.arrays) {
    for (const float value : array) bits.push_back(std::bit_cast<uint32_t>(value));
  }
  for (const double scalar : state.scalars) bits.push_back(std::bit_cast<uint64_t>(scalar));
  return bits;
}

uint64_t BitsOf(double value) { return std::bit_cast<uint64_t>(value); }

class LearnerConformance : public ::testing::TestWithParam<Setting> {
 protected:
  std::unique_ptr<Learner> Make(size_t size = kDimension) const {
    const auto& [entry, tie, offset, step] = GetParam();
    LearnerSettings settings;
    settings.kind = entry->kind;
    settings.tie_rule = tie;
    settings.offset_value = offset;
    settings.step_size = step;
    if (tie == TieRule::kCorrect) {
      settings.start.indices = {1, 4};
      settings.start.values = {0.25F, -1.5F};
    }
    return entry->make(settings, size);
  }

  // As core/model uses a learner. Says whether it was a mistake.
  static bool Learn(Learner& learner, const Row& row, int32_t label) {
    const Judgement judgement = learner.Judge(row, label);
    if (!judgement.mistake || !learner.CanUpdate(row, label, judgement)) return false;
    learner.Update(row, label, judgement);
    return true;
  }
  static size_t LearnAll(Learner& learner, const Batch& batch) {
    size_t updates = 0;
    for (size_t i = 0; i < batch.rows(); ++i)
      updates += Learn(learner, batch.row(i), batch.labels[i]) ? 1 : 0;
    return updates;
  }

  // Labels at random: plenty of mistakes.
  static std::vector<SvmExample> Noise(uint32_t seed, size_t count) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<SvmExample> examples(count);
    for (SvmExample& example : examples) {
      example.label = random() % 2 == 0 ? 1 : -1;
      for (uint32_t i = 0; i < kDimension; ++i) {
        example.indices.push_back(i);
        example.values.push_back(normal(random));
      }
    }
    return examples;
  }
};

TEST_P(LearnerConformance, LeavesItsInputsUnchanged) {
  const std::vector<SvmExample> examples = Noise(1, 40);
  const Columns given(examples);
  const Columns untouched(examples);
  const std::unique_ptr<Learner> learner = Make();
  ASSERT_GT(LearnAll(*learner, given.batch()), 5U);
  EXPECT_TRUE(std::ranges::equal(given.batch().values, untouched.batch().values));
  EXPECT_TRUE(std::ranges::equal(given.batch().indices, untouched.batch().indices));
}

TEST_P(LearnerConformance, JudgingAndScoringChangeNothing) {
  const Columns columns(Noise(2, 40));
  const std::unique_ptr<Learner> learner = Make();
  LearnAll(*learner, columns.batch());
  const std::vector<uint64_t> before = Bits(*learner);
  for (size_t i = 0; i < 40; ++i) {
    const Row row = columns.batch().row(i);
    for (const int32_t label : {-1, 1}) {
      const Judgement judgement = learner->Judge(row, label);
      EXPECT_EQ(BitsOf(judgement.score), BitsOf(learner->Score(row)));
      EXPECT_EQ(judgement.predicted, learner->Predict(judgement.score));
      learner->CanUpdate(row, label, judgement);
    }
  }
  EXPECT_EQ(Bits(*learner), before);
}

TEST_P(LearnerConformance, PredictsOneOfTheTwoLabelsByTheSignOfTheScore) {
  const std::unique_ptr<Learner> learner = Make();
  EXPECT_EQ(learner->Predict(1e-300), 1);
  EXPECT_EQ(learner->Predict(-1e-300), -1);
  EXPECT_EQ(learner->Predict(0.0), learner->Predict(-0.0));
  EXPECT_EQ(learner->Predict(0.0), std::get<TieRule>(GetParam()) == TieRule::kPositive ? 1 : -1);
}

TEST_P(LearnerConformance, AMistakeAtZeroIsWhatTheTieRuleSays) {
  const std::unique_ptr<Learner> learner = Make();
  const float zero = 0;
  const uint32_t place = 0;
  const Row row{&place, &zero, 1};  // scores 0 before anything was learned, whatever the start
  ASSERT_EQ(learner->Score(row), 0);
  const bool minus = learner->Judge(row, -1).mistake;
  const bool plus = learner->Judge(row, 1).mistake;
  switch (std::get<TieRule>(GetParam())) {
    case TieRule::kMistake:
      EXPECT_TRUE(minus && plus);
      break;
    case TieRule::kPositive:
      EXPECT_TRUE(minus && !plus);
      break;
    case TieRule::kCorrect:
      EXPECT_TRUE(!minus && !plus);
      break;
  }
}

TEST_P(LearnerConformance, ReplayingTheSameExamplesGivesTheSameBits) {
  const Columns columns(Noise(3, 200));
  const std::unique_ptr<Learner> one = Make();
  const std::unique_ptr<Learner> other = Make();
  ASSERT_GT(LearnAll(*one, columns.batch()), 20U);
  LearnAll(*other, columns.batch());
  EXPECT_EQ(Bits(*one), Bits(*other));
}

TEST_P(LearnerConformance, TheUpdatesAloneGiveTheSameBits) {
  const Columns columns(Noise(4, 200));
  const Batch batch = columns.batch();
  const std::unique_ptr<Learner> learner = Make();
  std::vector<size_t> updates;
  for (size_t i = 0; i < batch.rows(); ++i) {
    if (Learn(*learner, batch.row(i), batch.labels[i])) updates.push_back(i);
  }
  const std::unique_ptr<Learner> replica = Make();
  for (const size_t i : updates) {
    EXPECT_TRUE(Learn(*replica, batch.row(i), batch.labels[i])) << "row " << i;
  }
  EXPECT_EQ(Bits(*replica), Bits(*learner));
}

TEST_P(LearnerConformance, ARestoredLearnerGoesOnWithTheSameBits) {
  const Columns first(Noise(5, 100));
  const Columns then(Noise(6, 100));
  const std::unique_ptr<Learner> learner = Make();
  LearnAll(*learner, first.batch());
  LearnerState state;
  const LearnerStateView view = learner->State();
  for (const std::span<const float> array : view.arrays)
    state.arrays.emplace_back(array.begin(), array.end());
  state.scalars = view.scalars;
  const std::unique_ptr<Learner> restored = Make();
  ASSERT_TRUE(restored->Restore(state));
  EXPECT_EQ(Bits(*restored), Bits(*learner));
  EXPECT_EQ(BitsOf(restored->offset()), BitsOf(learner->offset()));
  EXPECT_EQ(BitsOf(restored->squared_norm()), BitsOf(learner->squared_norm()));
  EXPECT_EQ(BitsOf(restored->augmented_squared_norm()), BitsOf(learner->augmented_squared_norm()));
  ASSERT_GT(LearnAll(*learner, then.batch()), 5U);
  LearnAll(*restored, then.batch());
  EXPECT_EQ(Bits(*restored), Bits(*learner));
}

TEST_P(LearnerConformance, AStateOfAnotherShapeIsRefusedAndChangesNothing) {
  const std::unique_ptr<Learner> learner = Make();
  LearnAll(*learner, Columns(Noise(7, 20)).batch());
  const std::vector<uint64_t> before = Bits(*learner);
  EXPECT_FALSE(learner->Restore(LearnerState{}));
  LearnerState extra;
  for (const std::span<const float> array : learner->State().arrays)
    extra.arrays.emplace_back(array.begin(), array.end());
  extra.arrays.emplace_back(3);
  extra.scalars = learner->State().scalars;
  EXPECT_FALSE(learner->Restore(extra));
  EXPECT_EQ(Bits(*learner), before);
}

TEST_P(LearnerConformance, DenseAndFullSparseRowsGiveTheSameBits) {
  const std::vector<SvmExample> examples = Noise(8, 100);
  const Columns sparse(examples);
  Columns dense;
  for (const SvmExample& example : examples) dense.AddDense(example.values, example.label);
  const std::unique_ptr<Learner> one = Make();
  const std::unique_ptr<Learner> other = Make();
  for (size_t i = 0; i < examples.size(); ++i) {
    EXPECT_EQ(BitsOf(one->Score(sparse.batch().row(i))),
              BitsOf(other->Score(dense.batch().row(i))));
    EXPECT_EQ(Learn(*one, sparse.batch().row(i), examples[i].label),
              Learn(*other, dense.batch().row(i), examples[i].label));
  }
  EXPECT_EQ(Bits(*one), Bits(*other));
}

TEST_P(LearnerConformance, ZerosLeftOutChangeNoUpdate) {
  // Small integers, steps and offsets of few bits: every sum is exact, in whatever order.
  std::mt19937 random(9);
  Columns sparse;
  Columns dense;
  std::vector<int32_t> labels;
  for (int n = 0; n < 200; ++n) {
    std::vector<uint32_t> indices;
    std::vector<float> values;
    std::vector<float> full(kDimension);
    for (uint32_t i = 0; i < kDimension; ++i) {
      const auto value = static_cast<float>(static_cast<int>(random() % 5) - 2);
      full[i] = value;
      if (value == 0) continue;
      indices.push_back(i);
      values.push_back(value);
    }
    labels.push_back(random() % 2 == 0 ? 1 : -1);
    sparse.Add(indices, values, labels.back());
    dense.AddDense(full, labels.back());
  }
  const std::unique_ptr<Learner> one = Make();
  const std::unique_ptr<Learner> other = Make();
  for (size_t i = 0; i < labels.size(); ++i) {
    EXPECT_EQ(one->Score(sparse.batch().row(i)), other->Score(dense.batch().row(i)));
    EXPECT_EQ(Learn(*one, sparse.batch().row(i), labels[i]),
              Learn(*other, dense.batch().row(i), labels[i]));
  }
  EXPECT_TRUE(std::ranges::equal(one->weights(), other->weights()));
  EXPECT_EQ(one->offset(), other->offset());
}

TEST_P(LearnerConformance, AbsentValuesAreOnes) {
  Columns written;
  written.Add({0, 3, 7}, {1, 1, 1}, 1);
  Batch absent = written.batch();
  absent.values = {};
  const std::unique_ptr<Learner> one = Make();
  const std::unique_ptr<Learner> other = Make();
  Learn(*one, written.batch().row(0), 1);
  Learn(*other, absent.row(0), 1);
  EXPECT_EQ(Bits(*one), Bits(*other));
  EXPECT_EQ(BitsOf(one->Score(written.batch().row(0))), BitsOf(other->Score(absent.row(0))));
}

// Learns named examples, all in one batch or each alone among other names, features in any order.
class NamedOrder {
 public:
  NamedOrder(const FeatureSpace& space, std::unique_ptr<Learner> learner)
      : space_(space), learner_(std::move(learner)) {}

  void Learn(const Batch& batch) {
    Mapper mapper(space_);
    ASSERT_FALSE(mapper.Begin(batch));
    for (size_t i = 0; i < batch.rows(); ++i) {
      mapper.Resolve(dictionary_);
      if (!learner_->Judge(mapper.Map(i), batch.labels[i]).mistake) continue;
      if (space_.kind == FeatureSpace::Kind::kNamed) {
        std::vector<absl::string_view> unknown;
        mapper.UnknownNames(i, unknown);
        for (const absl::string_view name : unknown) dictionary_.Add(name);
        learner_->Grow(dictionary_.size() + 1);
        mapper.Resolve(dictionary_);
      }
      const Row row = mapper.Map(i);
      learner_->Update(row, batch.labels[i], learner_->Judge(row, batch.labels[i]));
    }
  }
  const Learner& learner() const { return *learner_; }

 private:
  const FeatureSpace space_;
  const std::unique_ptr<Learner> learner_;
  Dictionary dictionary_;
};

TEST_P(LearnerConformance, TheOrderFeaturesAreSentInIsIrrelevant) {
  std::mt19937 random(10);
  std::normal_distribution<float> normal;
  std::vector<NamedExample> examples(80);
  for (NamedExample& example : examples) {
    example.label = random() % 2 == 0 ? 1 : -1;
    for (int i = 0; i < 30; ++i) {
      if (random() % 3 == 0) example.features.emplace_back(absl::StrCat("f", i), normal(random));
    }
  }
  std::vector<NamedExample> shuffled = examples;
  for (NamedExample& example : shuffled)
    std::shuffle(example.features.begin(), example.features.end(), random);
  // 16 slots for 30 names: several share one. Room enough for the start's places in the named
  // space.
  for (const FeatureSpace space : {FeatureSpace{FeatureSpace::Kind::kHashed, 16},
                                   FeatureSpace{FeatureSpace::Kind::kNamed, 100}}) {
    NamedOrder one(space, Make(16));
    NamedOrder other(space, Make(16));
    one.Learn(NamedColumns(examples).batch());
    for (const NamedExample& example : shuffled) {
      other.Learn(NamedColumns({example}, {"a name", "f", "f13x", "zzz"}).batch());
    }
    EXPECT_EQ(Bits(one.learner()), Bits(other.learner()));
  }
}

TEST_P(LearnerConformance, NoUpdateLeavesFloat32) {
  const float huge = std::numeric_limits<float>::max();
  std::mt19937 random(11);
  const std::unique_ptr<Learner> learner = Make();
  for (int n = 0; n < 300; ++n) {
    Columns columns;
    std::vector<float> values;
    for (uint32_t i = 0; i < kDimension; ++i)
      values.push_back(huge * (static_cast<float>(static_cast<int>(random() % 9) - 4) / 4));
    columns.AddDense(values, random() % 2 == 0 ? 1 : -1);
    const Row row = columns.batch().row(0);
    const int32_t label = columns.batch().labels[0];
    const Judgement judgement = learner->Judge(row, label);
    ASSERT_TRUE(std::isfinite(judgement.score));
    if (!judgement.mistake) continue;
    if (!learner->CanUpdate(row, label, judgement)) continue;
    learner->Update(row, label, judgement);
    for (const float weight : learner->weights()) ASSERT_TRUE(std::isfinite(weight));
    ASSERT_TRUE(std::isfinite(learner->offset()));
    ASSERT_TRUE(std::isfinite(learner->augmented_squared_norm()));
  }
}

TEST_P(LearnerConformance, RefusesTheUpdateThatWouldOverflow) {
  const float huge = std::numeric_limits<float>::max();
  const auto& [entry, tie, offset, step] = GetParam();
  LearnerSettings settings;
  settings.kind = entry->kind;
  settings.tie_rule = tie;
  settings.offset_value = offset;
  settings.step_size = step;
  settings.start.indices = {0, 1, 2};
  settings.start.values = {huge, huge, huge};
  const std::unique_ptr<Learner> learner = entry->make(settings, 3);
  const Columns columns = Columns().AddDense({huge, -huge, -huge}, 1);
  const Row row = columns.batch().row(0);
  const Judgement judgement = learner->Judge(row, 1);
  ASSERT_TRUE(judgement.mistake);
  EXPECT_FALSE(learner->CanUpdate(row, 1, judgement));
}

TEST_P(LearnerConformance, TheNormIsThatOfTheWeights) {
  const std::unique_ptr<Learner> learner = Make();
  const Columns columns(Noise(12, 300));
  LearnAll(*learner, columns.batch());
  double squared = 0;
  for (const float weight : learner->weights()) squared += static_cast<double>(weight) * weight;
  EXPECT_NEAR(learner->squared_norm(), squared, 1e-9 * squared);
  const double b = std::get<2>(GetParam());
  const double bias = b == 0 ? 0 : learner->offset() / b;
  EXPECT_NEAR(learner->augmented_squared_norm(), squared + bias * bias, 1e-9 * squared);
}

TEST_P(LearnerConformance, GrowingChangesNoScoreAndKeepsNewWeightsZero) {
  const std::unique_ptr<Learner> learner = Make();
  const Columns columns(Noise(13, 60));
  LearnAll(*learner, columns.batch());
  const double before = learner->Score(columns.batch().row(0));
  learner->Grow(100);
  ASSERT_EQ(learner->weights().size(), 100U);
  for (size_t i = kDimension; i < 100; ++i) EXPECT_EQ(learner->weights()[i], 0);
  EXPECT_EQ(BitsOf(learner->Score(columns.batch().row(0))), BitsOf(before));
  learner->Grow(5);
  EXPECT_EQ(learner->weights().size(), 100U);
}

INSTANTIATE_TEST_SUITE_P(
    Catalogue, LearnerConformance,
    ::testing::Combine(::testing::ValuesIn(Entries()),
                       ::testing::Values(TieRule::kMistake, TieRule::kPositive, TieRule::kCorrect),
                       ::testing::Values(0.0, 1.0, 0.25, 7.5), ::testing::Values(1.0, 0.375, 3.0)),
    SettingName);

TEST(Catalogue, HoldsEveryKindInTheOrderOfItsValues) {
  for (size_t i = 0; i < Catalogue().size(); ++i) {
    const CatalogueEntry& entry = Catalogue()[i];
    EXPECT_EQ(static_cast<size_t>(entry.kind), i);
    EXPECT_EQ(&FindLearner(entry.kind), &entry);
    EXPECT_FALSE(entry.name.empty());
  }
}

}  // namespace
}  // namespace perceptrond
