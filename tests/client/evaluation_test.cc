// Figures of predictions, beside those of scikit-learn 1.2.1 for the same rows.
#include "client/ctl/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "client/ctl/prediction.h"

namespace perceptrond::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

namespace v1 = ::perceptron::v1;

struct ScoredRow {
  int label;
  float score;
  float probability;
};
constexpr ScoredRow kRows[] = {
    {1, 2.5F, .95F},  {1, -.5F, .4F},   {-1, -1.25F, .2F}, {1, .75F, .7F},
    {-1, .75F, .7F},  {-1, -3.F, .05F}, {1, 1.5F, .8F},    {-1, .25F, .55F},
    {1, -.25F, .45F}, {-1, -.5F, .4F},  {-1, 1.F, .75F},   {1, 4.F, 1.F},
};

TwoLabelEvaluation EvaluateRows() {
  TwoLabelEvaluation evaluation;
  for (const ScoredRow& row : kRows) {
    evaluation.Add({row.label, row.score > 0 ? 1 : -1, row.score, row.score, row.probability},
                   v1::TIE_RULE_MISTAKE);
  }
  return evaluation;
}

TEST(TwoLabelEvaluation, HasTheFiguresOfScikitLearn) {
  const TwoLabelEvaluation evaluation = EvaluateRows();
  EXPECT_EQ(evaluation.confusion.true_negative, 3U);
  EXPECT_EQ(evaluation.confusion.false_positive, 3U);
  EXPECT_EQ(evaluation.confusion.false_negative, 2U);
  EXPECT_EQ(evaluation.confusion.true_positive, 4U);
  const Retrieval retrieval = evaluation.confusion.retrieval();
  EXPECT_DOUBLE_EQ(*retrieval.precision, 0.5714285714285714);
  EXPECT_DOUBLE_EQ(*retrieval.recall, 0.6666666666666666);
  EXPECT_DOUBLE_EQ(*retrieval.f1, 0.6153846153846153);
  ASSERT_TRUE(evaluation.roc.value().has_value());
  EXPECT_NEAR(evaluation.roc.value()->value, 0.7777777777777779, 1e-15);
  EXPECT_EQ(evaluation.roc.value()->most_error, 0);
  EXPECT_NEAR(evaluation.calibration.brier_score(), 0.1960416676662863, 1e-15);
  EXPECT_NEAR(evaluation.calibration.log_loss(), 0.54332896469407, 1e-7);
  EXPECT_NEAR(evaluation.calibration.expected_error(), 0.24583333265036342, 1e-15);
  // calibration_curve(n_bins=10) has an interval's mean and fraction.
  EXPECT_THAT(
      evaluation.calibration.Json(),
      HasSubstr("{\"from\":0.4,\"to\":0.5,\"examples\":\"3\",\"meanProbability\":0.4166666"));
  EXPECT_THAT(evaluation.calibration.Json(), HasSubstr("\"fraction\":0.6666666666666666}"));
}

TEST(TwoLabelEvaluation, InPartsHasTheSameFigures) {
  TwoLabelEvaluation merged;
  for (const ScoredRow& row : kRows) {
    TwoLabelEvaluation part;
    part.Add({row.label, row.score > 0 ? 1 : -1, row.score, row.score, row.probability},
             v1::TIE_RULE_MISTAKE);
    merged.Merge(part);
  }
  JsonObject whole;
  EvaluateRows().AddTo(whole);
  JsonObject parts;
  merged.AddTo(parts);
  EXPECT_EQ(parts.str(), whole.str());
}

TEST(TwoLabelEvaluation, AScoreOfZeroCountsAsInLearning) {
  const auto evaluate = [](v1::TieRule rule, int predicted) {
    TwoLabelEvaluation evaluation;
    evaluation.Add({1, predicted, 0, std::nullopt, std::nullopt}, rule);
    evaluation.Add({-1, predicted, -0.F, std::nullopt, std::nullopt}, rule);
    evaluation.Add({1, 1, 2, std::nullopt, std::nullopt}, rule);
    return evaluation.confusion;
  };
  EXPECT_EQ(evaluate(v1::TIE_RULE_MISTAKE, -1).errors(), 2U);
  EXPECT_EQ(evaluate(v1::TIE_RULE_MISTAKE, -1).total(), 3U);
  EXPECT_EQ(*evaluate(v1::TIE_RULE_MISTAKE, -1).retrieval().recall, 0.5);
  EXPECT_EQ(evaluate(v1::TIE_RULE_POSITIVE, 1).errors(), 1U);
  EXPECT_EQ(evaluate(v1::TIE_RULE_POSITIVE, 1).false_positive, 1U);
  EXPECT_EQ(evaluate(v1::TIE_RULE_CORRECT, -1).errors(), 0U);
}

TEST(TwoLabelEvaluation, APredictionForALabelThatTheModelDoesNotHaveIsOneTooMany) {
  PredictSummary summary;
  summary.label_names = {"ham", "spam"};
  summary.examples = 5;
  for (const auto& [actual, predicted] :
       {std::pair(1, 1), std::pair(-1, -1), std::pair(kUnknownClass, 1),
        std::pair(kUnknownClass, 1), std::pair(kUnknownClass, -1)})
    summary.AddTwoLabels({actual, predicted, static_cast<float>(predicted), {}, {}});
  EXPECT_EQ(summary.unknown_labels, 3U);
  const Confusion& confusion = summary.labelled.confusion;
  EXPECT_EQ(confusion.errors(), 3U);
  EXPECT_EQ(confusion.total(), 5U);
  // As scikit-learn has it for three classes.
  EXPECT_DOUBLE_EQ(*confusion.retrieval().precision, 1.0 / 3);
  EXPECT_DOUBLE_EQ(*confusion.retrieval().recall, 1);
  EXPECT_DOUBLE_EQ(*confusion.retrieval().f1, 0.5);
  EXPECT_THAT(summary.Text(), HasSubstr("\n  others              1               2\n"));
}

TEST(TwoLabelEvaluation, WithoutADenominatorAFigureIsAbsent) {
  TwoLabelEvaluation evaluation;
  evaluation.Add({-1, -1, -1, std::nullopt, std::nullopt}, v1::TIE_RULE_MISTAKE);
  JsonObject json;
  evaluation.AddTo(json);
  for (const char* absent : {"precision", "recall", "f1", "auc", "brierScore", "margin"})
    EXPECT_THAT(json.str(), Not(HasSubstr(absent)));
}

// The definition: pairs in order, equal scores counting half.
double AreaByPairs(const std::vector<std::pair<bool, float>>& rows) {
  double ordered = 0;
  double pairs = 0;
  for (const auto& [positive, score] : rows) {
    for (const auto& [other_positive, other] : rows) {
      if (!positive || other_positive) continue;
      ++pairs;
      ordered += score > other ? 1 : (score == other ? 0.5 : 0);
    }
  }
  return ordered / pairs;
}

TEST(RocArea, IsTheFractionOfPairsInOrderAlsoWhereScoresAreCounted) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<std::pair<bool, float>> rows;
  for (int i = 0; i < 1000; ++i) {
    const bool positive = i % 3 == 0;
    // Some are equal, and of both signs.
    const float score = normal(random) + (positive ? 0.7F : 0);
    rows.emplace_back(positive, i % 5 == 0 ? std::round(score) : score);
  }
  const double expected = AreaByPairs(rows);
  RocArea held;
  RocArea counted(100);
  RocArea merged(100);
  RocArea second(100);
  for (size_t i = 0; i < rows.size(); ++i) {
    held.Add(rows[i].first, rows[i].second);
    counted.Add(rows[i].first, rows[i].second);
    (i < 50 ? merged : second).Add(rows[i].first, rows[i].second);
  }
  merged.Merge(second);
  EXPECT_NEAR(held.value()->value, expected, 1e-12);
  EXPECT_EQ(held.value()->most_error, 0);
  for (const RocArea* area : {&counted, &merged}) {
    EXPECT_GT(area->value()->most_error, 0);
    EXPECT_LT(area->value()->most_error, 0.01);
    EXPECT_LE(std::abs(area->value()->value - expected), area->value()->most_error + 1e-12);
  }
}

TEST(RocArea, IsAbsentWithoutBothLabelsAndTakesNoNaN) {
  RocArea area(1);
  EXPECT_FALSE(area.value().has_value());
  area.Add(true, 1);
  area.Add(false, std::numeric_limits<float>::quiet_NaN());
  EXPECT_FALSE(area.value().has_value());
  area.Add(true, std::numeric_limits<float>::infinity());
  EXPECT_FALSE(area.value().has_value());
  area.Add(false, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(area.value()->value, 1);
  // Zeros are equal whatever their sign.
  RocArea zeros;
  zeros.Add(true, -0.F);
  zeros.Add(false, 0);
  EXPECT_EQ(zeros.value()->value, 0.5);
}

TEST(ClassConfusion, HasTheFiguresOfScikitLearn) {
  ClassConfusion confusion;
  constexpr int kActual[] = {0, 0, 0, 1, 2, 2, 1, 0};
  constexpr int kPredicted[] = {0, 0, 1, 1, 0, 2, 1, 2};
  for (size_t i = 0; i < std::size(kActual); ++i) confusion.Add(kActual[i], kPredicted[i]);
  const std::map<int, Retrieval> by_class = confusion.ByClass();
  EXPECT_DOUBLE_EQ(*by_class.at(0).precision, 2.0 / 3);
  EXPECT_DOUBLE_EQ(*by_class.at(1).recall, 1);
  EXPECT_DOUBLE_EQ(*by_class.at(1).f1, 0.8);
  EXPECT_NEAR(ClassConfusion::Mean(by_class, &Retrieval::precision), 0.611111111111111, 1e-15);
  EXPECT_NEAR(ClassConfusion::Mean(by_class, &Retrieval::recall), 0.6666666666666666, 1e-15);
  EXPECT_NEAR(ClassConfusion::Mean(by_class, &Retrieval::f1), 0.6238095238095238, 1e-15);
  EXPECT_EQ(confusion.errors(), 3U);
  JsonObject json;
  confusion.AddTo(json, {});
  EXPECT_THAT(json.str(), HasSubstr("{\"actual\":2,\"predicted\":0,\"count\":\"1\"}"));
}

TEST(ClassScores, HasTheFiguresOfScikitLearn) {
  constexpr float kProbabilities[][3] = {
      {.7F, .2F, .1F}, {.25F, .5F, .25F}, {.1F, .1F, .8F}, {.6F, .3F, .1F}, {1, 0, 0}};
  constexpr int kLabels[] = {0, 1, 1, 2, 0};
  ClassScores scores;
  for (size_t i = 0; i < std::size(kLabels); ++i) scores.Add(kProbabilities[i], kLabels[i]);
  // log_loss(labels, p), and the sum over the classes of brier_score_loss(labels == k, p[:, k]).
  EXPECT_NEAR(scores.log_loss(), 1.1309984684835657, 1e-6);
  EXPECT_NEAR(scores.brier_score(), 0.6470000116825105, 1e-6);
}

TEST(ClassScores, AClassWithoutAProbabilityHasZero) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kProbabilities[] = {.5F, .5F, kNan};
  for (const int missing : {2, 7}) {
    ClassScores scores;
    scores.Add(kProbabilities, missing);
    EXPECT_DOUBLE_EQ(scores.brier_score(), 1.5);
    EXPECT_DOUBLE_EQ(scores.log_loss(), 23 * std::log(2));
  }
}

}  // namespace
}  // namespace perceptrond::client
