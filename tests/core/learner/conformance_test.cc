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
#include "perceptron/v1/model.pb.h"
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
  for (size_t i = 0; state.rows != nullptr && i < state.rows->size(); ++i) {
    const Row row = state.rows->row(i);
    bits.push_back(std::bit_cast<uint64_t>(state.rows->coefficient(i)));
    for (size_t j = 0; j < row.size; ++j) {
      bits.push_back(row.index(j));
      bits.push_back(std::bit_cast<uint32_t>(row.value(j)));
    }
  }
  return bits;
}

// As a snapshot would keep it.
LearnerState CopyOfState(const Learner& learner) {
  const LearnerStateView view = learner.State();
  LearnerState state;
  for (const std::span<const float> array : view.arrays)
    state.arrays.emplace_back(array.begin(), array.end());
  state.scalars = view.scalars;
  if (view.rows != nullptr) state.rows = *view.rows;
  return state;
}

uint64_t BitsOf(double value) { return std::bit_cast<uint64_t>(value); }

// Every bit of what it answers with.
std::vector<uint64_t> AnswerBits(const Learner& learner, uint64_t age) {
  const Hypothesis hypothesis = learner.AnswerHypothesis(age);
  std::vector<uint64_t> bits = {BitsOf(hypothesis.offset),
                                BitsOf(learner.answer_squared_norm(age))};
  for (const float weight : hypothesis.weights) bits.push_back(std::bit_cast<uint32_t>(weight));
  return bits;
}

class LearnerConformance : public ::testing::TestWithParam<Setting> {
 protected:
  std::unique_ptr<Learner> Make(size_t size = kDimension) const {
    const auto& [entry, tie, offset, step] = GetParam();
    LearnerSettings settings;
    settings.kind = entry->kind;
    settings.tie_rule = tie;
    settings.offset_value = offset;
    settings.step_size = step;
    // Small enough that batches end and rows are let go of.
    settings.mini_batch = 7;
    settings.budget = 20;
    settings.ratchet_examples = 10;
    settings.kernel.gamma = 0.05;
    if (tie == TieRule::kCorrect) {
      settings.start.indices = {1, 4};
      settings.start.values = {0.25F, -1.5F};
    }
    return entry->make(settings, size);
  }

  // As core/model uses a learner. Says whether it was updated.
  static bool Learn(Learner& learner, const Row& row, const Target& target) {
    if (learner.BatchIsFull(target.age)) learner.EndBatch();
    const Evaluation evaluation = learner.Evaluate(row, target.label);
    EXPECT_TRUE(evaluation.update || !evaluation.mistake);
    if (!evaluation.update || !learner.CanUpdate(row, target, evaluation)) return false;
    learner.Update(row, target, evaluation);
    return true;
  }
  // The rows after `age` others.
  static size_t LearnAll(Learner& learner, const Batch& batch, uint64_t age = 0) {
    size_t updates = 0;
    for (size_t i = 0; i < batch.rows(); ++i)
      updates += Learn(learner, batch.row(i), {batch.labels[i], 1, age + i}) ? 1 : 0;
    if (learner.BatchIsFull(age + batch.rows())) learner.EndBatch();
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

// CatalogueEntry::answers_otherwise: who answers by what it learns with does so at every age.
TEST_P(LearnerConformance, AnswersByWhatItLearnsWithUnlessTheCatalogueSaysOtherwise) {
  const CatalogueEntry& entry = *std::get<0>(GetParam());
  const std::vector<SvmExample> examples = Noise(21, 60);
  const Columns asked(Noise(22, 60));
  const std::unique_ptr<Learner> learner = Make();
  bool otherwise = false;
  for (size_t i = 0; i < 60; ++i) {
    LearnAll(*learner, Columns(examples, i, i + 1).batch(), i);
    for (size_t j = 0; j < 60; ++j) {
      const Row row = asked.batch().row(j);
      otherwise |= learner->Answer(row, i + 1) != learner->Score(row);
    }
  }
  EXPECT_EQ(otherwise, entry.separate_prediction_weights);
}

TEST_P(LearnerConformance, JudgingAndScoringChangeNothing) {
  const Columns columns(Noise(2, 40));
  const std::unique_ptr<Learner> learner = Make();
  LearnAll(*learner, columns.batch());
  const std::vector<uint64_t> before = Bits(*learner);
  for (size_t i = 0; i < 40; ++i) {
    const Row row = columns.batch().row(i);
    for (const int32_t label : {-1, 1}) {
      const Evaluation evaluation = learner->Evaluate(row, label);
      EXPECT_EQ(BitsOf(evaluation.score), BitsOf(learner->Score(row)));
      EXPECT_EQ(evaluation.predicted, learner->Predict(evaluation.score));
      learner->CanUpdate(row, {label, 1, 40}, evaluation);
      learner->Answer(row, 40);
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
  const bool minus = learner->Evaluate(row, -1).mistake;
  const bool plus = learner->Evaluate(row, 1).mistake;
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
    if (Learn(*learner, batch.row(i), {batch.labels[i], 1, i})) updates.push_back(i);
  }
  if (learner->BatchIsFull(batch.rows())) learner->EndBatch();
  const std::unique_ptr<Learner> replica = Make();
  for (const size_t i : updates) {
    EXPECT_TRUE(Learn(*replica, batch.row(i), {batch.labels[i], 1, i})) << "row " << i;
  }
  if (replica->BatchIsFull(batch.rows())) replica->EndBatch();
  EXPECT_EQ(Bits(*replica), Bits(*learner));
}

TEST_P(LearnerConformance, ARestoredLearnerGoesOnWithTheSameBits) {
  const Columns first(Noise(5, 100));
  const Columns then(Noise(6, 100));
  const std::unique_ptr<Learner> learner = Make();
  LearnAll(*learner, first.batch());
  const std::unique_ptr<Learner> restored = Make();
  ASSERT_TRUE(restored->Restore(CopyOfState(*learner)));
  EXPECT_EQ(Bits(*restored), Bits(*learner));
  EXPECT_EQ(AnswerBits(*restored, 100), AnswerBits(*learner, 100));
  EXPECT_EQ(BitsOf(restored->squared_norm()), BitsOf(learner->squared_norm()));
  EXPECT_EQ(BitsOf(restored->augmented_squared_norm()), BitsOf(learner->augmented_squared_norm()));
  ASSERT_GT(LearnAll(*learner, then.batch(), 100), 5U);
  LearnAll(*restored, then.batch(), 100);
  EXPECT_EQ(Bits(*restored), Bits(*learner));
  EXPECT_EQ(AnswerBits(*restored, 200), AnswerBits(*learner, 200));
}

TEST_P(LearnerConformance, AStateOfAnotherShapeIsRefusedAndChangesNothing) {
  const std::unique_ptr<Learner> learner = Make();
  LearnAll(*learner, Columns(Noise(7, 20)).batch());
  const std::vector<uint64_t> before = Bits(*learner);
  EXPECT_FALSE(learner->Restore(LearnerState{}));
  LearnerState extra = CopyOfState(*learner);
  extra.arrays.emplace_back(3);
  EXPECT_FALSE(learner->Restore(extra));
  LearnerState longer = CopyOfState(*learner);
  longer.scalars.push_back(0);
  EXPECT_FALSE(learner->Restore(longer));
  // More rows than it keeps, whether it keeps any or not.
  LearnerState crowded = CopyOfState(*learner);
  while (crowded.rows.size() <= 20) crowded.rows.Push({kNoIndices, nullptr, 0}, 1);
  EXPECT_FALSE(learner->Restore(crowded));
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
    EXPECT_EQ(Learn(*one, sparse.batch().row(i), {examples[i].label, 1, i}),
              Learn(*other, dense.batch().row(i), {examples[i].label, 1, i}));
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
    const Row row = sparse.batch().row(i);
    const Row full = dense.batch().row(i);
    EXPECT_NEAR(one->Score(row), other->Score(full), 1e-4 * (1 + std::abs(one->Score(row))));
    EXPECT_EQ(Learn(*one, row, {labels[i], 1, i}), Learn(*other, full, {labels[i], 1, i}));
  }
  const Hypothesis a = one->AnswerHypothesis(labels.size());
  const Hypothesis b = other->AnswerHypothesis(labels.size());
  ASSERT_EQ(a.weights.size(), b.weights.size());
  for (size_t i = 0; i < a.weights.size(); ++i)
    EXPECT_NEAR(a.weights[i], b.weights[i], 1e-4 * (1 + std::abs(a.weights[i])));
  EXPECT_NEAR(a.offset, b.offset, 1e-4 * (1 + std::abs(a.offset)));
}

TEST_P(LearnerConformance, AbsentValuesAreOnes) {
  Columns written;
  written.Add({0, 3, 7}, {1, 1, 1}, 1);
  Batch absent = written.batch();
  absent.values = {};
  const std::unique_ptr<Learner> one = Make();
  const std::unique_ptr<Learner> other = Make();
  Learn(*one, written.batch().row(0), {1});
  Learn(*other, absent.row(0), {1});
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
      const Target target{batch.labels[i], 1, age_++};
      if (learner_->BatchIsFull(target.age)) learner_->EndBatch();
      if (!learner_->Evaluate(mapper.Map(i), target.label).update) continue;
      if (space_.kind == FeatureSpace::Kind::kNamed) {
        std::vector<absl::string_view> unknown;
        mapper.UnknownNames(i, unknown);
        for (const absl::string_view name : unknown) dictionary_.Add(name);
        learner_->Grow(dictionary_.size() + 1);
        mapper.Resolve(dictionary_);
      }
      const Row row = mapper.Map(i);
      learner_->Update(row, target, learner_->Evaluate(row, target.label));
    }
  }
  const Learner& learner() const { return *learner_; }

 private:
  const FeatureSpace space_;
  const std::unique_ptr<Learner> learner_;
  uint64_t age_ = 0;
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
  for (const FeatureSpace& space : {FeatureSpace{FeatureSpace::Kind::kHashed, 16},
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
    const Evaluation evaluation = learner->Evaluate(row, label);
    ASSERT_TRUE(std::isfinite(evaluation.score));
    if (!evaluation.update) continue;
    const Target target{label, 1, static_cast<uint64_t>(n)};
    if (!learner->CanUpdate(row, target, evaluation)) continue;
    learner->Update(row, target, evaluation);
    const Hypothesis hypothesis = learner->AnswerHypothesis(n + 1);
    for (const float weight : hypothesis.weights) ASSERT_TRUE(std::isfinite(weight));
    ASSERT_TRUE(std::isfinite(hypothesis.offset));
    ASSERT_TRUE(std::isfinite(learner->augmented_squared_norm()));
  }
}

// Of rules that answer by one vector of weights.
class LinearConformance : public LearnerConformance {};

TEST_P(LinearConformance, TheNormIsThatOfTheWeights) {
  const std::unique_ptr<Learner> learner = Make();
  const Columns columns(Noise(12, 300));
  LearnAll(*learner, columns.batch());
  double squared = 0;
  for (const float weight : learner->AnswerHypothesis(300).weights)
    squared += static_cast<double>(weight) * weight;
  EXPECT_NEAR(learner->answer_squared_norm(300), squared, 1e-5 * squared);
  EXPECT_GE(learner->augmented_squared_norm(), learner->squared_norm());
}

TEST_P(LinearConformance, AnswersAreTheScoresOfTheHypothesisItShows) {
  const std::unique_ptr<Learner> learner = Make();
  const Columns columns(Noise(14, 300));
  LearnAll(*learner, columns.batch());
  const Hypothesis shown = learner->AnswerHypothesis(300);
  for (size_t i = 0; i < 40; ++i) {
    const Row row = columns.batch().row(i);
    double score = shown.offset;
    for (size_t j = 0; j < row.size; ++j)
      score += static_cast<double>(shown.weights[row.index(j)]) * row.value(j);
    EXPECT_NEAR(learner->Answer(row, 300), score, 1e-4 * (1 + std::abs(score)));
  }
}

// Of rules that take weights of examples.
class WeightConformance : public LearnerConformance {};

TEST_P(WeightConformance, AnExampleOfWeightTwoCountsAsMuchAsItsRuleSays) {
  const Columns columns(Noise(15, 60));
  const std::unique_ptr<Learner> learner = Make();
  LearnAll(*learner, columns.batch());
  const Row row = columns.batch().row(7);
  for (const int32_t label : {-1, 1}) {
    const Evaluation evaluation = learner->Evaluate(row, label);
    if (!evaluation.update) continue;
    std::vector<double> moved;
    for (const double weight : {1.0, 2.0}) {
      const std::unique_ptr<Learner> copy = Make();
      ASSERT_TRUE(copy->Restore(CopyOfState(*learner)));
      copy->Update(row, {label, weight, 60}, evaluation);
      moved.push_back(std::abs(copy->Score(row) - evaluation.score));
    }
    // At least as far, and at most twice: passive steps end where the example is right.
    const double rounding = 1e-5 * (1 + std::abs(evaluation.score));
    EXPECT_GE(moved[1], moved[0] - rounding);
    EXPECT_LE(moved[1], 2 * moved[0] + rounding);
  }
}

TEST_P(LearnerConformance, GrowingChangesNoScoreAndKeepsNewWeightsZero) {
  const std::unique_ptr<Learner> learner = Make();
  const Columns columns(Noise(13, 60));
  LearnAll(*learner, columns.batch());
  const double before = learner->Score(columns.batch().row(0));
  learner->Grow(100);
  ASSERT_EQ(learner->size(), 100U);
  const FloatArray weights = learner->AnswerHypothesis(60).weights;
  ASSERT_EQ(weights.size(), std::get<0>(GetParam())->form == Form::kKernel ? 0U : 100U);
  for (size_t i = kDimension; i < weights.size(); ++i) EXPECT_EQ(weights[i], 0);
  EXPECT_EQ(BitsOf(learner->Score(columns.batch().row(0))), BitsOf(before));
  learner->Grow(5);
  EXPECT_EQ(learner->size(), 100U);
}

// Every setting of every learner, or of those that a test is about.
std::vector<Setting> Settings(bool (*chosen)(const CatalogueEntry&)) {
  std::vector<Setting> settings;
  for (const CatalogueEntry* const entry : Entries()) {
    if (!chosen(*entry)) continue;
    for (const TieRule tie : {TieRule::kMistake, TieRule::kPositive, TieRule::kCorrect}) {
      // Needs weights to start from.
      if (tie == TieRule::kCorrect && entry->form == Form::kKernel) continue;
      for (const double offset : {0.0, 1.0, 0.25, 7.5}) {
        settings.emplace_back(entry, tie, offset, 1.0);
        if ((entry->options & kTakesStepSize) == 0) continue;
        settings.emplace_back(entry, tie, offset, 0.375);
        settings.emplace_back(entry, tie, offset, 3.0);
      }
    }
  }
  return settings;
}

INSTANTIATE_TEST_SUITE_P(Catalogue, LearnerConformance,
                         ::testing::ValuesIn(Settings([](const CatalogueEntry&) { return true; })),
                         SettingName);
INSTANTIATE_TEST_SUITE_P(Catalogue, LinearConformance,
                         ::testing::ValuesIn(Settings([](const CatalogueEntry& entry) {
                           return entry.form == Form::kLinear;
                         })),
                         SettingName);
INSTANTIATE_TEST_SUITE_P(Catalogue, WeightConformance,
                         ::testing::ValuesIn(Settings([](const CatalogueEntry& entry) {
                           return entry.takes_weights;
                         })),
                         SettingName);

// LEARNER_KIND_AVERAGED_PERCEPTRON as perceptronctl says it.
std::string ApiName(const CatalogueEntry& entry) {
  std::string name = ::perceptron::v1::LearnerKind_Name(static_cast<int>(entry.kind) + 1);
  name.erase(0, sizeof("LEARNER_KIND_") - 1);
  for (char& c : name) c = c == '_' ? '-' : static_cast<char>(std::tolower(c));
  return name;
}

TEST(Catalogue, HoldsEveryKindInTheOrderOfItsValues) {
  for (size_t i = 0; i < Catalogue().size(); ++i) {
    const CatalogueEntry& entry = Catalogue()[i];
    EXPECT_EQ(static_cast<size_t>(entry.kind), i);
    EXPECT_EQ(&FindLearner(entry.kind), &entry);
    EXPECT_EQ(entry.name, ApiName(entry));
  }
}

}  // namespace
}  // namespace perceptrond
