// What every learner of several classes must do, with classes that exist from the start and with
// classes that appear mid-stream.
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <tuple>

#include "core/learner/score_vectors.h"
#include "tests/core/learner/conformance.h"

#include "tests/support/learners.h"

namespace perceptrond::testing::multiclass_conformance_test {
namespace {

constexpr uint32_t kDimension = 11;
constexpr uint32_t kClasses = 5;

// Learner, classes from the start, tie rule, offset, steps.
using Setting = std::tuple<const CatalogueEntry*, uint32_t, TieRule, double, StepSchedule>;

std::string SettingName(const ::testing::TestParamInfo<Setting>& info) {
  const auto& [entry, initial, tie, bias, steps] = info.param;
  return SafeName(absl::StrCat(entry->name, "_from", initial, "_tie", static_cast<int>(tie),
                               "_bias", bias * 100, "_steps", static_cast<int>(steps)));
}

std::vector<uint64_t> ScoreBits(const Learner& learner, const Row& row, uint64_t age) {
  std::vector<uint64_t> bits;
  for (const double score : PredictedScores(learner, row, age)) bits.push_back(BitsOf(score));
  return bits;
}

class MulticlassConformance : public ::testing::TestWithParam<Setting> {
 protected:
  static std::unique_ptr<Learner> Make(size_t size = kDimension) {
    const auto& [entry, initial, tie, bias, steps] = GetParam();
    LearnerSettings settings = TightSettings(*entry);
    settings.steps = steps;
    settings.tie_rule = tie;
    settings.bias_input = bias;
    settings.classes = {kClasses, initial, {}};
    return MakeLearner(settings, size);
  }
  // Labels at random, the later ones only after a while: plenty of mistakes.
  static std::vector<SvmExample> Noise(uint32_t seed, size_t count) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<SvmExample> examples(count);
    for (size_t n = 0; n < count; ++n) {
      const auto most = static_cast<uint32_t>(1 + n * kClasses / count);
      // The highest number first, so that there are gaps.
      examples[n].label = static_cast<int>((kClasses - 1 - random() % most) % kClasses);
      for (uint32_t i = 0; i < kDimension; ++i) {
        examples[n].indices.push_back(i);
        examples[n].values.push_back(normal(random));
      }
    }
    return examples;
  }
};

TEST_P(MulticlassConformance, EvaluatingAndPredictingChangeNothing) {
  const Columns columns(Noise(2, 60));
  const std::unique_ptr<Learner> learner = Make();
  LearnAll(*learner, columns.batch());
  const std::vector<uint64_t> before = Bits(*learner);
  for (size_t i = 0; i < 60; ++i) {
    const Row row = columns.batch().row(i);
    for (int32_t label = 0; label < static_cast<int32_t>(kClasses); ++label) {
      const Evaluation evaluation = learner->Evaluate(row, label);
      EXPECT_NE(evaluation.rival, label);
      learner->CanUpdate(row, {label, 1, 60}, evaluation);
    }
    PredictedScores(*learner, row, 60);
  }
  EXPECT_EQ(Bits(*learner), before);
}

TEST_P(MulticlassConformance, TheEvaluationIsThatOfTheScores) {
  const Columns columns(Noise(3, 120));
  const std::unique_ptr<Learner> learner = Make();
  LearnAll(*learner, columns.batch());
  const TieRule tie = std::get<TieRule>(GetParam());
  for (size_t i = 0; i < 120; ++i) {
    const Row row = columns.batch().row(i);
    std::vector<double> scores(kClasses);
    // Wrapped, a rule evaluates by what it learns with.
    if (const ScoreVectors* const vectors = VectorsOf(*learner)) {
      vectors->Scores(row, scores);
    } else {
      scores = PredictedScores(*learner, row, 120);
    }
    for (int32_t label = 0; label < static_cast<int32_t>(kClasses); ++label) {
      ASSERT_TRUE(learner->predictor().HasLabel(label));
      double best = -std::numeric_limits<double>::infinity();
      int32_t rival = -1;
      int32_t predicted = 0;
      for (int32_t k = 0; k < static_cast<int32_t>(kClasses); ++k) {
        if (scores[k] > scores[predicted]) predicted = k;
        if (k != label && scores[k] > best) best = scores[rival = k];
      }
      const Evaluation evaluation = learner->Evaluate(row, label);
      EXPECT_EQ(evaluation.predicted, predicted);
      EXPECT_EQ(evaluation.rival, rival);
      EXPECT_EQ(evaluation.score, scores[label] - best);
      EXPECT_EQ(evaluation.mistake,
                tie == TieRule::kPositive ? predicted != label : evaluation.score <= 0);
      EXPECT_GE(evaluation.loss, 0);
    }
  }
}

TEST_P(MulticlassConformance, ATieIsWhatTheTieRuleSaysAndTheLowestClassWins) {
  const std::unique_ptr<Learner> learner = Make();
  const Columns columns = Columns().AddDense(std::vector<float>(kDimension), 0);
  const Row zero = columns.batch().row(0);
  // Classes that appear one after the other with nothing to learn by.
  for (int32_t k = 0; k < 3; ++k) {
    if (learner->predictor().HasLabel(k)) continue;
    const Evaluation evaluation = learner->Evaluate(zero, k);
    EXPECT_TRUE(evaluation.mistake) << "a new class";
    learner->Update(zero, {k}, evaluation);
  }
  if (std::get<double>(GetParam()) != 0) return;
  const bool positive = std::get<TieRule>(GetParam()) == TieRule::kPositive;
  for (int32_t label = 0; label < 3; ++label) {
    const Evaluation evaluation = learner->Evaluate(zero, label);
    EXPECT_EQ(evaluation.predicted, 0);
    EXPECT_EQ(evaluation.mistake, !positive || label != 0);
  }
}

TEST_P(MulticlassConformance, AnExampleOfANewClassIsAMistakeAndItsUpdateAddsTheClass) {
  const std::unique_ptr<Learner> learner = Make();
  const std::vector<SvmExample> examples = Noise(4, 200);
  const Columns columns(examples);
  std::vector<bool> seen(kClasses, std::get<1>(GetParam()) == kClasses);
  for (size_t i = 0; i < 200; ++i) {
    const int32_t label = examples[i].label;
    for (int32_t k = 0; k < static_cast<int32_t>(kClasses); ++k)
      ASSERT_EQ(learner->predictor().HasLabel(k), seen[k]);
    const Evaluation evaluation = learner->Evaluate(columns.batch().row(i), label);
    EXPECT_TRUE(evaluation.predicted < 0 || seen[evaluation.predicted]);
    EXPECT_TRUE(evaluation.rival < 0 || seen[evaluation.rival]);
    if (!seen[label]) {
      EXPECT_TRUE(evaluation.mistake);
      ASSERT_TRUE(evaluation.update);
    }
    if (Learn(*learner, columns.batch().row(i), {label, 1, i})) seen[label] = true;
  }
  EXPECT_FALSE(learner->predictor().HasLabel(kClasses));
  EXPECT_FALSE(learner->predictor().HasLabel(-1));
}

TEST_P(MulticlassConformance, ClassesThatDoNotExistScoreNothing) {
  if (std::get<1>(GetParam()) == kClasses) return;
  const std::unique_ptr<Learner> learner = Make();
  const Columns columns(Noise(5, 1));
  const Row row = columns.batch().row(0);
  ASSERT_TRUE(Learn(*learner, row, {3}));
  if (VectorsOf(*learner) != nullptr) {
    EXPECT_EQ(VectorsOf(*learner)->Score(3, row), 0) << "the first class alone moves nothing";
  }
  const std::vector<double> scores = PredictedScores(*learner, row, 1);
  ASSERT_EQ(scores.size(), 4U);
  for (size_t k = 0; k < 3; ++k) EXPECT_TRUE(std::isnan(scores[k]));
  // All votes there are.
  EXPECT_EQ(scores[3], std::get<0>(GetParam())->form == Form::kVotes ? 1 : 0);
  EXPECT_FALSE(learner->Evaluate(row, 3).mistake) << "while it is the only one it is right";
}

TEST_P(MulticlassConformance, TheUpdatesAloneGiveTheSameBits) {
  const Columns columns(Noise(6, 300));
  const Batch batch = columns.batch();
  const std::unique_ptr<Learner> learner = Make();
  std::vector<size_t> updates;
  for (size_t i = 0; i < batch.rows(); ++i) {
    if (Learn(*learner, batch.row(i), {batch.labels[i], 1, i})) updates.push_back(i);
  }
  EndFullBatch(*learner, batch.rows());
  ASSERT_GT(updates.size(), 50U);
  const std::unique_ptr<Learner> replica = Make();
  for (const size_t i : updates)
    EXPECT_TRUE(Learn(*replica, batch.row(i), {batch.labels[i], 1, i})) << "row " << i;
  EndFullBatch(*replica, batch.rows());
  EXPECT_EQ(Bits(*replica), Bits(*learner));
}

TEST_P(MulticlassConformance, ARestoredLearnerGoesOnWithTheSameBits) {
  // As it was after no example, a few, and many.
  for (const size_t count : {0, 3, 150}) {
    const Columns first(Noise(7, count));
    const Columns then(Noise(8, 100));
    const std::unique_ptr<Learner> learner = Make();
    LearnAll(*learner, first.batch());
    ASSERT_LE(learner->State().arrays.size(), learner->max_arrays());
    const std::unique_ptr<Learner> restored = Make();
    ASSERT_TRUE(restored->Restore(CopyOfState(*learner)));
    EXPECT_EQ(Bits(*restored), Bits(*learner));
    EXPECT_EQ(restored->size(), learner->size());
    LearnAll(*learner, then.batch(), count);
    LearnAll(*restored, then.batch(), count);
    EXPECT_EQ(Bits(*restored), Bits(*learner));
    const Row row = then.batch().row(0);
    EXPECT_EQ(ScoreBits(*restored, row, count + 100), ScoreBits(*learner, row, count + 100));
    EXPECT_EQ(restored->augmented_squared_norm(), learner->augmented_squared_norm());
    EXPECT_EQ(restored->predictor().squared_norm(count + 100),
              learner->predictor().squared_norm(count + 100));
  }
}

TEST_P(MulticlassConformance, AStateOfAnotherShapeIsRefusedAndChangesNothing) {
  const std::unique_ptr<Learner> learner = Make();
  LearnAll(*learner, Columns(Noise(9, 50)).batch());
  const std::vector<uint64_t> before = Bits(*learner);
  EXPECT_FALSE(learner->Restore(LearnerState{}));
  LearnerState state = CopyOfState(*learner);
  state.arrays.emplace_back(kDimension);
  EXPECT_FALSE(learner->Restore(state));
  state = CopyOfState(*learner);
  state.arrays.pop_back();
  EXPECT_FALSE(learner->Restore(state));
  state = CopyOfState(*learner);
  for (auto& array : state.arrays) array.push_back(0);
  EXPECT_FALSE(learner->Restore(state));
  state = CopyOfState(*learner);
  state.scalars[1] = 1e9;  // classes
  EXPECT_FALSE(learner->Restore(state));
  state = CopyOfState(*learner);
  state.arrays[0][0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(learner->Restore(state));
  EXPECT_EQ(Bits(*learner), before);
}

TEST_P(MulticlassConformance, DenseAndFullSparseRowsGiveTheSameBits) {
  const std::vector<SvmExample> examples = Noise(10, 120);
  const Columns sparse(examples);
  Columns dense;
  for (const SvmExample& example : examples) dense.AddDense(example.values, example.label);
  const std::unique_ptr<Learner> one = Make();
  const std::unique_ptr<Learner> other = Make();
  LearnAll(*one, sparse.batch());
  LearnAll(*other, dense.batch());
  EXPECT_EQ(Bits(*one), Bits(*other));
}

TEST_P(MulticlassConformance, NoUpdateLeavesFloat32) {
  const float huge = std::numeric_limits<float>::max();
  std::mt19937 random(11);
  const std::unique_ptr<Learner> learner = Make();
  for (int n = 0; n < 300; ++n) {
    std::vector<float> values;
    for (uint32_t i = 0; i < kDimension; ++i)
      values.push_back(huge * (static_cast<float>(static_cast<int>(random() % 9) - 4) / 4));
    const Columns columns = Columns().AddDense(values, static_cast<int32_t>(random() % kClasses));
    Learn(*learner, columns.batch().row(0),
          {columns.batch().labels[0], 1, static_cast<uint64_t>(n)});
    for (const std::span<const float> array : learner->State().arrays) {
      for (const float weight : array) ASSERT_TRUE(std::isfinite(weight));
    }
    for (const double scalar : learner->State().scalars) ASSERT_TRUE(std::isfinite(scalar));
    ASSERT_TRUE(std::isfinite(learner->augmented_squared_norm()));
  }
}

TEST_P(MulticlassConformance, NormsAndPredictedScoresAreThoseOfTheHypothesesItShows) {
  if (std::get<0>(GetParam())->form == Form::kVotes) return;
  const std::unique_ptr<Learner> learner = Make();
  const Columns columns(Noise(12, 300));
  LearnAll(*learner, columns.batch());
  double squared = 0;
  for (size_t k = 0; k < kClasses; ++k) {
    const Hypothesis shown = learner->feature_weights()->MakeHypothesis(k, 300);
    for (const float weight : shown.weights) squared += static_cast<double>(weight) * weight;
    for (size_t i = 0; i < 20; ++i) {
      const Row row = columns.batch().row(i);
      double score = shown.bias;
      for (size_t j = 0; j < row.size; ++j)
        score += static_cast<double>(shown.weights[row.index(j)]) * row.value(j);
      EXPECT_NEAR(PredictedScores(*learner, row, 300)[k], score, 1e-4 * (1 + std::abs(score)));
    }
  }
  EXPECT_NEAR(learner->predictor().squared_norm(300), squared, 1e-5 * squared);
}

TEST_P(MulticlassConformance, TheWeightsOfAllClassesAddUpToNothing) {
  // Each step gives one class what it takes from others; second-order rules weigh them by
  // variances, adaptive steps by past gradients.
  if (std::get<StepSchedule>(GetParam()) == StepSchedule::kAdaptive) return;
  const std::string& learner_name = std::get<0>(GetParam())->name;
  if (HasSetting(learner_name, "regularization") || HasSetting(learner_name, "confidence")) return;
  const std::unique_ptr<Learner> learner = Make();
  if (VectorsOf(*learner) == nullptr) return;
  LearnAll(*learner, Columns(Noise(13, 300)).batch());
  for (uint32_t i = 0; i < kDimension; ++i) {
    double sum = 0;
    double size = 0;
    for (size_t k = 0; k < kClasses; ++k) {
      sum += (*VectorsOf(*learner))[k].weights[i];
      size += std::abs((*VectorsOf(*learner))[k].weights[i]);
    }
    EXPECT_NEAR(sum, 0, 1e-5 * (1 + size));
  }
}

TEST_P(MulticlassConformance, GrowingChangesNoScoreAndKeepsNewWeightsZero) {
  const std::unique_ptr<Learner> learner = Make();
  const Columns columns(Noise(14, 80));
  LearnAll(*learner, columns.batch());
  const Row row = columns.batch().row(0);
  const std::vector<uint64_t> before = ScoreBits(*learner, row, 80);
  learner->Grow(100);
  ASSERT_EQ(learner->size(), 100U);
  for (uint32_t i = kDimension; i < 100; ++i) EXPECT_TRUE(learner->learned_weights()->AreZero(i));
  for (size_t k = 0; k < kClasses && learner->feature_weights() != nullptr; ++k) {
    const FloatArray weights = learner->feature_weights()->MakeHypothesis(k, 80).weights;
    ASSERT_EQ(weights.size(), 100U);
    for (size_t i = kDimension; i < 100; ++i) EXPECT_EQ(weights[i], 0);
  }
  EXPECT_EQ(ScoreBits(*learner, row, 80), before);
  learner->Grow(5);
  EXPECT_EQ(learner->size(), 100U);
}

std::vector<Setting> Settings() {
  std::vector<Setting> settings;
  for (const CatalogueEntry& entry : Catalogue()) {
    if (!entry.has_classes()) continue;
    for (const uint32_t initial : {0U, kClasses}) {
      for (const TieRule tie : {TieRule::kMistake, TieRule::kPositive}) {
        for (const double bias : {0.0, 1.0, 0.25})
          for (const StepSchedule steps : StepsOf(entry))
            settings.emplace_back(&entry, initial, tie, bias, steps);
      }
    }
  }
  return settings;
}

INSTANTIATE_TEST_SUITE_P(Catalogue, MulticlassConformance, ::testing::ValuesIn(Settings()),
                         SettingName);

}  // namespace
}  // namespace perceptrond::testing::multiclass_conformance_test
