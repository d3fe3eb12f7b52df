// Every learner, under each of its settings, with two labels and with several classes, there from the
// start or appearing mid-stream: state, evaluations, updates, predictions.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "core/report/learner_text.h"
#include "perceptron/v1/model.pb.h"
#include "tests/core/learner/conformance.h"
#include "tests/support/learners.h"

namespace perceptrond::testing::conformance_test {
namespace {

// A learner that predicts by what it learns with does so at every age.
TEST_P(LearnerConformance, PredictsByWhatItLearnsWithUnlessTheCatalogueSaysOtherwise) {
  const std::vector<SvmExample> examples = Noise(21, 60);
  const Columns asked(Noise(22, 60));
  const std::unique_ptr<Learner> learner = Make();
  bool otherwise = false;
  for (size_t i = 0; i < 60; ++i) {
    LearnAll(*learner, Columns(examples, i, i + 1).batch(), i);
    for (size_t j = 0; j < 60; ++j) {
      const Row row = asked.batch().row(j);
      const std::vector<double> learned = LearnedScores(*learner, row);
      if (learned.empty()) return;
      otherwise |= BitsOf(PredictedScores(*learner, row, i + 1)) != BitsOf(learned);
    }
  }
  EXPECT_EQ(otherwise, GetParam().entry->separate_prediction_weights);
}

TEST_P(LearnerConformance, ItsWeightsTakeWhatIsEstimated) {
  // But for starting weights; each class has room.
  if (GetParam().tie == TieRule::kCorrect || (!binary() && GetParam().initial == 0)) return;
  for (const size_t size : {1, 64, 999, 4096}) {
    size_t bytes = 0;
    const std::unique_ptr<Learner> learner = Make(size);
    for (const std::span<const float> array : learner->State().arrays) bytes += array.size_bytes();
    EXPECT_EQ(EstimateWeightBytes(Settings(), size), bytes) << size;
  }
}

TEST_P(LearnerConformance, EvaluatingAndPredictingChangeNeitherStateNorInputs) {
  const std::vector<SvmExample> examples = Noise(2, 60);
  const Columns columns(examples);
  const Columns untouched(examples);
  const std::unique_ptr<Learner> learner = Make();
  ASSERT_GT(LearnAll(*learner, columns.batch()), 5U);
  const std::vector<uint64_t> before = Bits(*learner);
  for (size_t i = 0; i < 60; ++i) {
    const Row row = columns.batch().row(i);
    for (const int32_t label : Labels()) {
      const Evaluation evaluation = learner->Evaluate(row, label);
      EXPECT_TRUE(binary() || evaluation.rival != label);
      learner->CanUpdate(row, {label, 1, 60}, evaluation);
    }
    PredictedScores(*learner, row, 60);
  }
  EXPECT_EQ(Bits(*learner), before);
  EXPECT_TRUE(std::ranges::equal(columns.batch().values, untouched.batch().values));
  EXPECT_TRUE(std::ranges::equal(columns.batch().indices, untouched.batch().indices));
}

TEST_P(LearnerConformance, TheEvaluationIsThatOfTheScores) {
  const Columns columns(Noise(3, 120));
  const std::unique_ptr<Learner> learner = Make();
  LearnAll(*learner, columns.batch());
  const TieRule tie = GetParam().tie;
  const auto is_mistake = [tie](double margin, bool is_predicted) {
    return tie == TieRule::kPositive  ? !is_predicted
           : tie == TieRule::kCorrect ? margin < 0
                                      : margin <= 0;
  };
  for (size_t i = 0; i < 120; ++i) {
    const Row row = columns.batch().row(i);
    std::vector<double> scores = LearnedScores(*learner, row);
    if (scores.empty()) scores = PredictedScores(*learner, row, 120);
    for (const int32_t label : Labels()) {
      ASSERT_TRUE(learner->predictor().HasLabel(label));
      const Evaluation evaluation = learner->Evaluate(row, label);
      EXPECT_GE(evaluation.loss, 0);
      if (binary()) {
        EXPECT_EQ(evaluation.predicted,
                  scores[0] > 0 || (scores[0] == 0 && tie == TieRule::kPositive) ? 1 : -1);
        EXPECT_EQ(evaluation.predicted, learner->predictor().Label({&evaluation.score, 1}));
        EXPECT_EQ(evaluation.mistake, is_mistake(label * scores[0], evaluation.predicted == label));
        continue;
      }
      double best = -std::numeric_limits<double>::infinity();
      int32_t rival = -1;
      int32_t predicted = 0;
      for (int32_t k = 0; k < kClasses; ++k) {
        if (scores[k] > scores[predicted]) predicted = k;
        if (k != label && scores[k] > best) best = scores[rival = k];
      }
      EXPECT_EQ(evaluation.predicted, predicted);
      EXPECT_EQ(evaluation.rival, rival);
      EXPECT_EQ(evaluation.score, scores[label] - best);
      EXPECT_EQ(evaluation.mistake, is_mistake(evaluation.score, predicted == label));
    }
  }
}

// A row of zeros scores 0 before anything was learned, whatever the start. Of classes that appear one
// after the other with nothing to learn by the lowest wins.
TEST_P(LearnerConformance, ATieIsWhatTheTieRuleSays) {
  const std::unique_ptr<Learner> learner = Make();
  const Columns columns = Columns().AddDense(std::vector<float>(kDimension), 0);
  const Row zero = columns.batch().row(0);
  const bool positive = GetParam().tie == TieRule::kPositive;
  if (binary()) {
    const double nothing[] = {1e-300, -1e-300, 0.0, -0.0};
    for (const double& score : nothing)
      EXPECT_EQ(learner->predictor().Label({&score, 1}),
                score > 0 || (score == 0 && positive) ? 1 : -1);
    const bool correct = GetParam().tie == TieRule::kCorrect;
    EXPECT_EQ(learner->Evaluate(zero, -1).mistake, !correct);
    EXPECT_EQ(learner->Evaluate(zero, 1).mistake, !correct && !positive);
    return;
  }
  for (int32_t k = 0; k < 3; ++k) {
    if (learner->predictor().HasLabel(k)) continue;
    const Evaluation evaluation = learner->Evaluate(zero, k);
    EXPECT_TRUE(evaluation.mistake) << "a new class";
    learner->Update(zero, {k}, evaluation);
  }
  if (GetParam().bias != 0) return;
  for (int32_t label = 0; label < 3; ++label) {
    const Evaluation evaluation = learner->Evaluate(zero, label);
    EXPECT_EQ(evaluation.predicted, 0);
    EXPECT_EQ(evaluation.mistake, !positive || label != 0);
  }
}

TEST_P(LearnerConformance, AnExampleOfANewClassIsAMistakeAndItsUpdateAddsTheClass) {
  const std::unique_ptr<Learner> learner = Make();
  const std::vector<SvmExample> examples = Noise(4, 200);
  const Columns columns(examples);
  EXPECT_FALSE(learner->predictor().HasLabel(kClasses));
  EXPECT_EQ(learner->predictor().HasLabel(-1), binary());
  if (binary()) return;
  std::vector<bool> seen(kClasses, GetParam().initial > 0);
  for (size_t i = 0; i < 200; ++i) {
    const int32_t label = examples[i].label;
    for (int32_t k = 0; k < kClasses; ++k) ASSERT_EQ(learner->predictor().HasLabel(k), seen[k]);
    const Evaluation evaluation = learner->Evaluate(columns.batch().row(i), label);
    EXPECT_TRUE(evaluation.predicted < 0 || seen[evaluation.predicted]);
    EXPECT_TRUE(evaluation.rival < 0 || seen[evaluation.rival]);
    if (!seen[label]) {
      EXPECT_TRUE(evaluation.mistake);
      ASSERT_TRUE(evaluation.update);
    }
    if (Learn(*learner, columns.batch().row(i), {label, 1, i})) seen[label] = true;
  }
}

TEST_P(LearnerConformance, ClassesThatDoNotExistScoreNothing) {
  if (binary() || GetParam().initial > 0) return;
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
  EXPECT_EQ(scores[3], GetParam().entry->form == Form::kVotes ? 1 : 0);
  EXPECT_FALSE(learner->Evaluate(row, 3).mistake) << "while it is the only one it is right";
}

TEST_P(LearnerConformance, TheUpdatesAloneGiveTheSameBits) {
  const Columns columns(Noise(6, 300));
  const Batch batch = columns.batch();
  const std::unique_ptr<Learner> learner = Make();
  std::vector<size_t> updates;
  for (size_t i = 0; i < batch.rows(); ++i) {
    if (Learn(*learner, batch.row(i), {batch.labels[i], 1, i})) updates.push_back(i);
  }
  EndFullBatch(*learner, batch.rows());
  ASSERT_GT(updates.size(), 20U);
  const std::unique_ptr<Learner> replica = Make();
  for (const size_t i : updates)
    EXPECT_TRUE(Learn(*replica, batch.row(i), {batch.labels[i], 1, i})) << "row " << i;
  EndFullBatch(*replica, batch.rows());
  EXPECT_EQ(Bits(*replica), Bits(*learner));
}

TEST_P(LearnerConformance, ARestoredLearnerGoesOnWithTheSameBits) {
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
    EXPECT_EQ(PredictionBits(*restored, count), PredictionBits(*learner, count));
    ASSERT_GT(LearnAll(*learner, then.batch(), count), 5U);
    LearnAll(*restored, then.batch(), count);
    EXPECT_EQ(Bits(*restored), Bits(*learner));
    EXPECT_EQ(PredictionBits(*restored, count + 100), PredictionBits(*learner, count + 100));
    const Row row = then.batch().row(0);
    EXPECT_EQ(BitsOf(PredictedScores(*restored, row, count + 100)),
              BitsOf(PredictedScores(*learner, row, count + 100)));
    EXPECT_EQ(BitsOf(restored->augmented_squared_norm()),
              BitsOf(learner->augmented_squared_norm()));
  }
}

TEST_P(LearnerConformance, AStateOfAnotherShapeIsRefusedAndChangesNothing) {
  const std::unique_ptr<Learner> learner = Make();
  LearnAll(*learner, Columns(Noise(9, 50)).batch());
  const std::vector<uint64_t> before = Bits(*learner);
  EXPECT_FALSE(learner->Restore(LearnerState{}));
  const auto refuses = [&](auto change) {
    LearnerState state = CopyOfState(*learner);
    change(state);
    return !learner->Restore(std::move(state));
  };
  EXPECT_TRUE(refuses([](LearnerState& state) { state.arrays.emplace_back(kDimension); }));
  EXPECT_TRUE(refuses([](LearnerState& state) { state.scalars.push_back(0); }));
  // More rows than it keeps, whether it keeps any or not.
  EXPECT_TRUE(refuses([](LearnerState& state) {
    while (state.rows.size() <= 20) state.rows.Push({kNoIndices, nullptr, 0}, 1);
  }));
  if (GetParam().entry->form != Form::kKernel) {
    EXPECT_TRUE(refuses([](LearnerState& state) { state.arrays.pop_back(); }));
    EXPECT_TRUE(refuses(
        [](LearnerState& state) { state.arrays[0][0] = std::numeric_limits<float>::quiet_NaN(); }));
  }
  if (!binary()) {
    EXPECT_TRUE(refuses([](LearnerState& state) {
      for (auto& array : state.arrays) array.push_back(0);
    }));
    // The number of classes.
    EXPECT_TRUE(refuses([](LearnerState& state) { state.scalars[1] = 1e9; }));
  }
  EXPECT_EQ(Bits(*learner), before);
}

TEST_P(LearnerConformance, NoUpdateLeavesFloat32) {
  const float huge = std::numeric_limits<float>::max();
  std::mt19937 random(11);
  const std::unique_ptr<Learner> learner = Make();
  for (int n = 0; n < 300; ++n) {
    std::vector<float> values;
    for (uint32_t i = 0; i < kDimension; ++i)
      values.push_back(huge * (static_cast<float>(static_cast<int>(random() % 9) - 4) / 4));
    const Columns columns = Columns().AddDense(values, Label(random, 299, 300));
    const Row row = columns.batch().row(0);
    const int32_t label = columns.batch().labels[0];
    // Infinite: of the first class, which has no rival.
    const double score = learner->Evaluate(row, label).score;
    ASSERT_TRUE(std::isfinite(score) || (!binary() && score > 0)) << n;
    Learn(*learner, row, {label, 1, static_cast<uint64_t>(n)});
    for (const std::span<const float> array : learner->State().arrays) {
      for (const float weight : array) ASSERT_TRUE(std::isfinite(weight));
    }
    for (const double scalar : learner->State().scalars) ASSERT_TRUE(std::isfinite(scalar));
    ASSERT_TRUE(std::isfinite(learner->augmented_squared_norm()));
    if (learner->feature_weights() == nullptr) continue;
    for (size_t k = 0; k < learner->predictor().scores(); ++k) {
      const Hypothesis hypothesis = learner->feature_weights()->MakeHypothesis(k, n + 1);
      for (const float weight : hypothesis.weights) ASSERT_TRUE(std::isfinite(weight));
      ASSERT_TRUE(std::isfinite(hypothesis.bias));
    }
  }
}

TEST_P(LearnerConformance, GrowingChangesNoScoreAndKeepsNewWeightsZero) {
  const std::unique_ptr<Learner> learner = Make();
  const Columns columns(Noise(13, 80));
  LearnAll(*learner, columns.batch());
  const Row row = columns.batch().row(0);
  const std::vector<uint64_t> learned = BitsOf(LearnedScores(*learner, row));
  const std::vector<uint64_t> predicted = BitsOf(PredictedScores(*learner, row, 80));
  learner->Grow(100);
  ASSERT_EQ(learner->size(), 100U);
  for (uint32_t i = kDimension; i < 100 && learner->learned_weights() != nullptr; ++i)
    EXPECT_TRUE(learner->learned_weights()->AreZero(i));
  for (size_t k = 0; k < scores() && learner->feature_weights() != nullptr; ++k) {
    const FloatArray weights = learner->feature_weights()->MakeHypothesis(k, 80).weights;
    ASSERT_EQ(weights.size(), 100U);
    for (size_t i = kDimension; i < weights.size(); ++i) EXPECT_EQ(weights[i], 0);
  }
  EXPECT_EQ(BitsOf(LearnedScores(*learner, row)), learned);
  EXPECT_EQ(BitsOf(PredictedScores(*learner, row, 80)), predicted);
  learner->Grow(5);
  EXPECT_EQ(learner->size(), 100U);
}

TEST_P(LearnerConformance, RowsEvaluatedOrScoredTogetherAreAsEachAlone) {
  const Columns columns(Noise(23, 150));
  const Batch batch = columns.batch();
  const std::unique_ptr<Learner> learner = Make();
  LearnAll(*learner, batch);
  std::vector<ValidationCode> codes(147);
  std::vector<double> together(147 * scores());
  learner->predictor().ScoreRows(batch, 3, kDimension, 150, codes, together);
  for (size_t i = 0; i < codes.size(); ++i) {
    ASSERT_EQ(codes[i], ValidationCode::kNone);
    const std::vector<double> alone = PredictedScores(*learner, batch.row(i + 3), 150);
    for (size_t k = 0; k < scores(); ++k)
      EXPECT_EQ(BitsOf(together[i * scores() + k]), BitsOf(alone[k]));
  }
  ASSERT_EQ(learner->batch_evaluation() != nullptr,
            binary() && learner->learned_weights() != nullptr);
  if (learner->batch_evaluation() == nullptr) return;
  std::vector<EvaluatedRow> evaluated(147);
  learner->batch_evaluation()->EvaluateRows(batch, 3, kDimension, evaluated);
  for (size_t i = 0; i < evaluated.size(); ++i) {
    const Row row = batch.row(i + 3);
    const Evaluation alone = learner->Evaluate(row, batch.labels[i + 3]);
    const Evaluation& one = evaluated[i].evaluation;
    ASSERT_EQ(evaluated[i].code, ValidationCode::kNone);
    EXPECT_EQ(BitsOf(evaluated[i].squared_norm), BitsOf(SquaredNorm(row)));
    EXPECT_EQ(BitsOf(one.score), BitsOf(alone.score));
    EXPECT_EQ(BitsOf(one.loss), BitsOf(alone.loss));
    EXPECT_EQ(one.predicted, alone.predicted);
    EXPECT_EQ(one.rival, alone.rival);
    EXPECT_EQ(one.mistake, alone.mistake);
    EXPECT_EQ(one.update, alone.update);
  }
}

TEST_P(LearnerConformance, NormsAndPredictedScoresAreThoseOfTheHypothesesItShows) {
  if (GetParam().entry->form != Form::kLinear) return;
  const std::unique_ptr<Learner> learner = Make();
  const Columns columns(Noise(12, 300));
  LearnAll(*learner, columns.batch());
  double squared = 0;
  for (size_t k = 0; k < scores(); ++k) {
    const Hypothesis shown = learner->feature_weights()->MakeHypothesis(k, 300);
    for (const float weight : shown.weights) squared += static_cast<double>(weight) * weight;
    for (size_t i = 0; i < 40; ++i) {
      const Row row = columns.batch().row(i);
      double score = shown.bias;
      for (size_t j = 0; j < row.size; ++j)
        score += static_cast<double>(shown.weights[row.index(j)]) * row.value(j);
      EXPECT_NEAR(PredictedScores(*learner, row, 300)[k], score, 1e-4 * (1 + std::abs(score)));
    }
  }
  EXPECT_NEAR(learner->predictor().squared_norm(300), squared, 1e-5 * squared);
}

TEST_P(LearnerConformance, TheWeightsOfAllClassesAddUpToNothing) {
  // Each step gives one class what it takes from others; second-order rules weigh them by
  // variances, adaptive steps by past gradients.
  const std::string& name = GetParam().entry->name;
  if (binary() || GetParam().steps == StepSchedule::kAdaptive ||
      HasSetting(name, "regularization") || HasSetting(name, "confidence"))
    return;
  const std::unique_ptr<Learner> learner = Make();
  if (VectorsOf(*learner) == nullptr) return;
  LearnAll(*learner, Columns(Noise(13, 300)).batch());
  for (uint32_t i = 0; i < kDimension; ++i) {
    double sum = 0;
    double size = 0;
    for (size_t k = 0; k < scores(); ++k) {
      sum += (*VectorsOf(*learner))[k].weights[i];
      size += std::abs((*VectorsOf(*learner))[k].weights[i]);
    }
    EXPECT_NEAR(sum, 0, 1e-5 * (1 + size));
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, LearnerConformance,
                         ::testing::ValuesIn(Conformers([](const Conformer&) { return true; })),
                         ConformerName);

TEST(StateReader, ACountWithAFractionIsNoCount) {
  for (const double count : {3.5, -1.0, 0x1p63}) {
    StateReader reader(LearnerState{{}, {count}, {}});
    reader.Count();
    EXPECT_FALSE(reader.Done()) << count;
  }
  StateReader reader(LearnerState{{}, {3}, {}});
  EXPECT_EQ(reader.Count(), 3U);
  EXPECT_TRUE(reader.Done());
}

TEST(WeightFigures, OneBelowZeroIsNoState) {
  for (const RuleKind rule :
       {RuleKind::kLogisticRegression, RuleKind::kArow, RuleKind::kSoftConfidenceWeighted}) {
    LearnerSettings settings;
    settings.rule = rule;
    if (rule == RuleKind::kLogisticRegression) settings.steps = StepSchedule::kAdaptive;
    const std::unique_ptr<Learner> learner = MakeLearner(settings, 3);
    EXPECT_TRUE(learner->Restore(CopyOfState(*learner)));
    LearnerState feature = CopyOfState(*learner);
    feature.arrays.back()[1] = -1;
    EXPECT_FALSE(learner->Restore(feature));
    LearnerState bias = CopyOfState(*learner);
    bias.scalars.back() = -1;
    EXPECT_FALSE(learner->Restore(bias));
  }
}

// Under a large bias input the first example takes all of the bias's variance, up to rounding.
TEST(ConfidenceRules, RoundingTakesNoVarianceOfTheBiasBelowZero) {
  for (const RuleKind rule : {RuleKind::kArow, RuleKind::kSoftConfidenceWeighted}) {
    for (double bias_input = 1e9; bias_input < 1e10; bias_input += 1.37e8) {
      LearnerSettings settings;
      settings.rule = rule;
      settings.bias_input = bias_input;
      const std::unique_ptr<Learner> learner = MakeLearner(settings, 1);
      for (int n = 0; n < 50; ++n) {
        Columns columns;
        columns.AddDense({static_cast<float>(n % 7)}, n % 2 == 0 ? 1 : -1);
        LearnAll(*learner, columns.batch(), static_cast<uint64_t>(n));
        // The last part of the state.
        ASSERT_GE(learner->State().scalars.back(), 0) << bias_input << ", example " << n;
        ASSERT_TRUE(std::isfinite(learner->Evaluate(columns.batch().row(0), 1).loss));
      }
    }
  }
}

TEST(Catalogue, SaysWhatItsLearnersCan) {
  for (const CatalogueEntry& entry : Catalogue()) {
    for (const uint32_t classes : {0U, 3U}) {
      if (classes > 0 && !entry.has_classes()) continue;
      LearnerSettings settings = TightSettings(entry);
      settings.classes = {classes, classes, {}};
      const std::unique_ptr<Learner> learner = MakeLearner(settings, 20);
      const bool keeps_examples = learner->support_expansion() != nullptr;
      EXPECT_EQ(entry.form == Form::kLinear, learner->feature_weights() != nullptr) << entry.name;
      EXPECT_EQ(entry.form == Form::kKernel, keeps_examples) << entry.name;
      EXPECT_EQ(entry.form == Form::kKernel, learner->learned_weights() == nullptr) << entry.name;
      const bool gives_reason =
          !entry.no_dual.empty() || (classes > 0 && !entry.no_class_dual.empty());
      EXPECT_EQ(gives_reason, learner->dual_form() == nullptr && !keeps_examples) << entry.name;
    }
  }
}

TEST(Catalogue, NamesEachRuleAndWrapperAsTheApisFieldsAndHasEachRuleOfTheApi) {
  for (const CatalogueEntry& entry : Catalogue()) {
    v1::Learner learner;
    SetLearner(learner, entry.name);
    EXPECT_EQ(LearnerName(learner), entry.name);
    EXPECT_EQ(FindLearner(entry.name), &entry);
  }
  EXPECT_EQ(FindLearner("pocket-logistic-regression"), nullptr);
  const auto* const rules = v1::Learner::descriptor()->FindOneofByName("rule");
  for (int i = 0; i < rules->field_count(); ++i) {
    const std::string name = absl::StrReplaceAll(rules->field(i)->name(), {{"_", "-"}});
    EXPECT_NE(FindLearner(name), nullptr) << name;
  }
}

}  // namespace
}  // namespace perceptrond::testing::conformance_test
