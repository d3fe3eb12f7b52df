// What every learner must do, under each of its settings: state, updates, predictions.
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

TEST_P(LearnerConformance, LeavesItsInputsUnchanged) {
  const std::vector<SvmExample> examples = Noise(1, 40);
  const Columns given(examples);
  const Columns untouched(examples);
  const std::unique_ptr<Learner> learner = Make();
  ASSERT_GT(LearnAll(*learner, given.batch()), 5U);
  EXPECT_TRUE(std::ranges::equal(given.batch().values, untouched.batch().values));
  EXPECT_TRUE(std::ranges::equal(given.batch().indices, untouched.batch().indices));
}

// A learner that predicts by what it learns with does so at every age.
TEST_P(LearnerConformance, PredictsByWhatItLearnsWithUnlessTheCatalogueSaysOtherwise) {
  const CatalogueEntry& entry = *std::get<0>(GetParam());
  const std::vector<SvmExample> examples = Noise(21, 60);
  const Columns asked(Noise(22, 60));
  const std::unique_ptr<Learner> learner = Make();
  bool otherwise = false;
  for (size_t i = 0; i < 60; ++i) {
    LearnAll(*learner, Columns(examples, i, i + 1).batch(), i);
    for (size_t j = 0; j < 60; ++j) {
      const Row row = asked.batch().row(j);
      otherwise |= PredictedScore(*learner, row, i + 1) != ScoreOf(*learner, row);
    }
  }
  EXPECT_EQ(otherwise, entry.separate_prediction_weights);
}

TEST_P(LearnerConformance, ItsWeightsTakeWhatIsEstimated) {
  const CatalogueEntry& entry = *std::get<0>(GetParam());
  LearnerSettings settings = TightSettings(entry);
  settings.steps = std::get<StepSchedule>(GetParam());
  for (const size_t size : {1, 64, 999, 4096}) {
    const uint32_t classes = size % 2 == 0 && entry.has_classes() ? 3 : 0;
    settings.classes.max = settings.classes.initial = classes;
    size_t bytes = 0;
    const std::unique_ptr<Learner> learner = MakeLearner(settings, size);
    for (const std::span<const float> array : learner->State().arrays) bytes += array.size_bytes();
    EXPECT_EQ(EstimateWeightBytes(settings, size), bytes) << size;
  }
}

TEST_P(LearnerConformance, EvaluatingAndPredictingChangeNothing) {
  const Columns columns(Noise(2, 40));
  const std::unique_ptr<Learner> learner = Make();
  LearnAll(*learner, columns.batch());
  const std::vector<uint64_t> before = Bits(*learner);
  for (size_t i = 0; i < 40; ++i) {
    const Row row = columns.batch().row(i);
    for (const int32_t label : {-1, 1}) {
      const Evaluation evaluation = learner->Evaluate(row, label);
      EXPECT_EQ(BitsOf(evaluation.score), BitsOf(ScoreOf(*learner, row)));
      EXPECT_EQ(evaluation.predicted, learner->predictor().Label({&evaluation.score, 1}));
      learner->CanUpdate(row, {label, 1, 40}, evaluation);
      PredictedScore(*learner, row, 40);
    }
  }
  EXPECT_EQ(Bits(*learner), before);
}

TEST_P(LearnerConformance, PredictsOneOfTheTwoLabelsByTheSignOfTheScore) {
  const std::unique_ptr<Learner> learner = Make();
  const auto predict = [&](double score) { return learner->predictor().Label({&score, 1}); };
  EXPECT_EQ(predict(1e-300), 1);
  EXPECT_EQ(predict(-1e-300), -1);
  EXPECT_EQ(predict(0.0), predict(-0.0));
  EXPECT_EQ(predict(0.0), std::get<TieRule>(GetParam()) == TieRule::kPositive ? 1 : -1);
}

TEST_P(LearnerConformance, AMistakeAtZeroIsWhatTheTieRuleSays) {
  const std::unique_ptr<Learner> learner = Make();
  const float zero = 0;
  const uint32_t index = 0;
  const Row row{&index, &zero, 1};  // scores 0 before anything was learned, whatever the start
  ASSERT_EQ(ScoreOf(*learner, row), 0);
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
  EndFullBatch(*learner, batch.rows());
  const std::unique_ptr<Learner> replica = Make();
  for (const size_t i : updates) {
    EXPECT_TRUE(Learn(*replica, batch.row(i), {batch.labels[i], 1, i})) << "row " << i;
  }
  EndFullBatch(*replica, batch.rows());
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
  EXPECT_EQ(PredictionBits(*restored, 100), PredictionBits(*learner, 100));
  EXPECT_EQ(BitsOf(restored->augmented_squared_norm()), BitsOf(learner->augmented_squared_norm()));
  ASSERT_GT(LearnAll(*learner, then.batch(), 100), 5U);
  LearnAll(*restored, then.batch(), 100);
  EXPECT_EQ(Bits(*restored), Bits(*learner));
  EXPECT_EQ(PredictionBits(*restored, 200), PredictionBits(*learner, 200));
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
    for (const std::span<const float> array : learner->State().arrays) {
      for (const float weight : array) ASSERT_TRUE(std::isfinite(weight));
    }
    ASSERT_TRUE(std::isfinite(learner->augmented_squared_norm()));
    if (learner->feature_weights() == nullptr) continue;
    const Hypothesis hypothesis = learner->feature_weights()->MakeHypothesis(0, n + 1);
    for (const float weight : hypothesis.weights) ASSERT_TRUE(std::isfinite(weight));
    ASSERT_TRUE(std::isfinite(hypothesis.bias));
  }
}

TEST_P(LearnerConformance, GrowingChangesNoScoreAndKeepsNewWeightsZero) {
  const std::unique_ptr<Learner> learner = Make();
  const Columns columns(Noise(13, 60));
  LearnAll(*learner, columns.batch());
  const double before = ScoreOf(*learner, columns.batch().row(0));
  learner->Grow(100);
  ASSERT_EQ(learner->size(), 100U);
  for (uint32_t i = kDimension; i < 100 && learner->learned_weights() != nullptr; ++i)
    EXPECT_TRUE(learner->learned_weights()->AreZero(i));
  if (learner->feature_weights() != nullptr) {
    const FloatArray weights = learner->feature_weights()->MakeHypothesis(0, 60).weights;
    ASSERT_EQ(weights.size(), 100U);
    for (size_t i = kDimension; i < weights.size(); ++i) EXPECT_EQ(weights[i], 0);
  }
  EXPECT_EQ(BitsOf(ScoreOf(*learner, columns.batch().row(0))), BitsOf(before));
  learner->Grow(5);
  EXPECT_EQ(learner->size(), 100U);
}

TEST_P(LearnerConformance, RowsEvaluatedOrScoredTogetherAreAsEachAlone) {
  const Columns columns(Noise(23, 150));
  Batch batch = columns.batch();
  const std::unique_ptr<Learner> learner = Make();
  LearnAll(*learner, batch);
  std::vector<ValidationCode> codes(147);
  std::vector<double> scores(147);
  learner->predictor().ScoreRows(batch, 3, kDimension, 150, codes, scores);
  for (size_t i = 0; i < scores.size(); ++i) {
    ASSERT_EQ(codes[i], ValidationCode::kNone);
    EXPECT_EQ(BitsOf(scores[i]), BitsOf(PredictedScore(*learner, batch.row(i + 3), 150)));
  }
  ASSERT_EQ(learner->batch_evaluation() == nullptr, learner->learned_weights() == nullptr);
  if (learner->batch_evaluation() == nullptr) return;
  std::vector<EvaluatedRow> evaluated(147);
  learner->batch_evaluation()->EvaluateRows(batch, 3, kDimension, evaluated);
  for (size_t i = 0; i < evaluated.size(); ++i) {
    const Row row = batch.row(i + 3);
    const Evaluation alone = learner->Evaluate(row, batch.labels[i + 3]);
    const Evaluation& together = evaluated[i].evaluation;
    ASSERT_EQ(evaluated[i].code, ValidationCode::kNone);
    EXPECT_EQ(BitsOf(evaluated[i].squared_norm), BitsOf(SquaredNorm(row)));
    EXPECT_EQ(BitsOf(together.score), BitsOf(alone.score));
    EXPECT_EQ(BitsOf(together.loss), BitsOf(alone.loss));
    EXPECT_EQ(together.predicted, alone.predicted);
    EXPECT_EQ(together.mistake, alone.mistake);
    EXPECT_EQ(together.update, alone.update);
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

INSTANTIATE_TEST_SUITE_P(Catalogue, LearnerConformance,
                         ::testing::ValuesIn(BinarySettings([](const CatalogueEntry&) {
                           return true;
                         })),
                         BinarySettingName);

TEST(Catalogue, NamesEachRuleAndWrapperAsTheApisFields) {
  for (const CatalogueEntry& entry : Catalogue()) {
    v1::Learner learner;
    SetLearner(learner, entry.name);
    EXPECT_EQ(LearnerName(learner), entry.name);
    EXPECT_EQ(FindLearner(entry.name), &entry);
  }
  EXPECT_EQ(FindLearner("pocket-logistic-regression"), nullptr);
}

TEST(Catalogue, HoldsEveryRuleOfTheApi) {
  const auto* const rules = v1::Learner::descriptor()->FindOneofByName("rule");
  for (int i = 0; i < rules->field_count(); ++i) {
    const std::string name = absl::StrReplaceAll(rules->field(i)->name(), {{"_", "-"}});
    EXPECT_NE(FindLearner(name), nullptr) << name;
  }
}

}  // namespace
}  // namespace perceptrond::testing::conformance_test
