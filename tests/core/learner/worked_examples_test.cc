// The worked examples of the lecture notes: examples small enough to be followed by hand, with the
// updates, passes and weights they come to.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/models.h"

namespace perceptrond::worked_examples_test {
namespace {

using testing::Columns;
using testing::DenseSettings;
using testing::LoneModel;
namespace v1 = ::perceptron::v1;

struct Point {
  std::vector<float> x;
  int32_t y;
};

struct Worked {
  std::string name;
  std::vector<Point> data;
  bool offset = true;
  v1::TieRule tie = v1::TIE_RULE_MISTAKE;
  uint64_t updates = 0;
  // The last one has no mistake.
  int64_t passes = 0;
  std::vector<float> theta;
  double theta0 = 0;
};

void PrintTo(const Worked& worked, std::ostream* out) { *out << worked.name; }

Columns ToColumns(const std::vector<Point>& data) {
  Columns columns;
  for (const Point& point : data) columns.AddDense(point.x, point.y);
  return columns;
}

v1::Model Settings(size_t dimension, bool offset, v1::TieRule tie) {
  v1::Model settings = DenseSettings("worked", static_cast<uint32_t>(dimension));
  settings.mutable_learner()->set_bias_input(offset ? 1 : 0);
  settings.mutable_learner()->set_tie_rule(tie);
  return settings;
}

class WorkedExample : public ::testing::TestWithParam<Worked> {};

TEST_P(WorkedExample, ConvergesAsWorkedOut) {
  const Worked& worked = GetParam();
  LoneModel lone(Settings(worked.data[0].x.size(), worked.offset, worked.tie));
  const Columns columns = ToColumns(worked.data);
  uint64_t updates = 0;
  for (int64_t pass = 1; pass <= worked.passes; ++pass) {
    const LearnOutcome outcome = lone.Learn(columns.batch(), pass);
    ASSERT_TRUE(outcome.pass.has_value());
    EXPECT_EQ(outcome.pass->number(), pass);
    EXPECT_EQ(outcome.pass->examples(), worked.data.size());
    EXPECT_EQ(outcome.pass->updates(), outcome.updated_rows.size());
    EXPECT_EQ(outcome.pass->converged(), pass == worked.passes) << "pass " << pass;
    EXPECT_EQ(outcome.pass->updates() == 0, pass == worked.passes) << "pass " << pass;
    updates += outcome.pass->updates();
  }
  EXPECT_EQ(updates, worked.updates);
  EXPECT_EQ(lone.model->revision(), worked.updates);
  EXPECT_EQ(lone.Weights(worked.theta.size()), worked.theta);
  EXPECT_EQ(lone.Offset(), worked.theta0);
}

const std::vector<Point> kLine = {{{1}, 1}, {{2}, 1}, {{3}, -1}, {{4}, -1}};
const std::vector<Point> kAnd = {{{0, 0}, -1}, {{0, 1}, -1}, {{1, 0}, -1}, {{1, 1}, 1}};
const std::vector<Point> kOr = {{{0, 0}, -1}, {{0, 1}, 1}, {{1, 0}, 1}, {{1, 1}, 1}};
const std::vector<Point> kNand = {{{0, 0}, 1}, {{0, 1}, 1}, {{1, 0}, 1}, {{1, 1}, -1}};
const std::vector<Point> kXor = {{{-1, -1}, 1}, {{1, 1}, 1}, {{-1, 1}, -1}, {{1, -1}, -1}};

INSTANTIATE_TEST_SUITE_P(
    Seeds, WorkedExample,
    ::testing::Values(
        Worked{"OneDimension", kLine, true, v1::TIE_RULE_MISTAKE, 25, 11, {-3}, 7},
        Worked{"Augmented",
               {{{1, 1}, 1}, {{2, 1}, 1}, {{3, 1}, -1}, {{4, 1}, -1}},
               false,
               v1::TIE_RULE_MISTAKE,
               25,
               11,
               {-3, 7},
               0},
        Worked{"And", kAnd, true, v1::TIE_RULE_MISTAKE, 18, 9, {3, 2}, -4},
        Worked{"AndTiePositive", kAnd, true, v1::TIE_RULE_POSITIVE, 11, 6, {2, 1}, -3},
        Worked{"Or", kOr, true, v1::TIE_RULE_MISTAKE, 9, 6, {2, 2}, -1},
        Worked{"OrTiePositive", kOr, true, v1::TIE_RULE_POSITIVE, 5, 4, {1, 1}, -1},
        Worked{"Nand", kNand, true, v1::TIE_RULE_MISTAKE, 18, 9, {-3, -2}, 4},
        Worked{"NandTiePositive", kNand, true, v1::TIE_RULE_POSITIVE, 10, 6, {-2, -1}, 2},
        Worked{"Not", {{{0}, 1}, {{1}, -1}}, true, v1::TIE_RULE_MISTAKE, 5, 4, {-2}, 1},
        Worked{"XorWithProduct",
               {{{-1, -1, 1}, 1}, {{1, 1, 1}, 1}, {{-1, 1, -1}, -1}, {{1, -1, -1}, -1}},
               true,
               v1::TIE_RULE_MISTAKE,
               4,
               2,
               {0, 0, 4},
               0}),
    [](const auto& info) { return info.param.name; });

void SetStepSize(double step_size, v1::Model& settings) {
  settings.mutable_learner()->mutable_perceptron()->set_step_size(step_size);
}

TEST(WorkedExamples, StepSizesThatDifferByAPowerOfTwoGiveTheSamePredictions) {
  std::mt19937 random(26);
  std::normal_distribution<float> normal;
  std::vector<Point> data;
  for (int i = 0; i < 300; ++i)
    data.push_back({{normal(random), normal(random)}, random() % 2 == 0 ? 1 : -1});
  for (const double step_size : {1.0, 0.1}) {
    v1::Model settings = Settings(2, true, v1::TIE_RULE_MISTAKE);
    SetStepSize(step_size, settings);
    LoneModel lone(settings);
    const LearnOutcome expected = lone.Learn(ToColumns(data).batch());
    EXPECT_GT(expected.mistakes, 50U);
    for (const float factor : {0x1p-40F, 0.5F, 1024.0F}) {
      SetStepSize(step_size * factor, settings);
      LoneModel scaled(settings);
      const LearnOutcome outcome = scaled.Learn(ToColumns(data).batch());
      EXPECT_EQ(outcome.updated_rows, expected.updated_rows);
      EXPECT_EQ(outcome.predicted, expected.predicted);
      for (size_t i = 0; i < data.size(); ++i)
        ASSERT_EQ(outcome.scores[i], factor * expected.scores[i]);
    }
  }
}

// docs/convergence.md: 0.2 - 0.2, each a sum of steps in float32. With a step of 1 AND takes 18 updates.
TEST(WorkedExamples, AStepSizeThatFloat32RoundsLeavesNoTieOnTheBoundary) {
  v1::Model settings = Settings(2, true, v1::TIE_RULE_MISTAKE);
  SetStepSize(0.1, settings);
  LoneModel lone(settings);
  int64_t pass = 1;
  while (!lone.Learn(ToColumns(kAnd).batch(), pass).pass->converged()) ASSERT_LT(++pass, 20);
  EXPECT_EQ(lone.model->revision(), 10U);
  EXPECT_NEAR(lone.Predict(ToColumns(kAnd).unlabelled()).scores[2], -1.5e-8, 1e-10);
  EXPECT_NEAR(MakeReport(*lone.model).margin_floor(), 5e-8, 1e-9);
}

// The batch perceptron's mistakes and steps; found with whole numbers, apart from this project.
struct WorkedBatches {
  std::vector<Point> data;
  uint32_t mini_batch;
  // The last one has no mistake.
  int64_t passes;
  uint64_t mistakes;
  uint64_t steps;
  std::vector<float> theta;
  double theta0;
};

TEST(WorkedExamples, OfTheBatchPerceptron) {
  for (const WorkedBatches& worked :
       {WorkedBatches{kAnd, 0, 10, 15, 9, {2, 2}, -3},
        WorkedBatches{kAnd, 2, 13, 20, 17, {3, 2}, -4},
        WorkedBatches{kAnd, 1, 9, 18, 18, {3, 2}, -4}, WorkedBatches{kLine, 0, 14, 23, 13, {-3}, 7},
        WorkedBatches{kLine, 2, 10, 23, 14, {-3}, 7},
        WorkedBatches{kLine, 1, 11, 25, 25, {-3}, 7}}) {
    v1::Model settings = Settings(worked.theta.size(), true, v1::TIE_RULE_MISTAKE);
    settings.mutable_learner()->mutable_batch_perceptron()->set_mini_batch(worked.mini_batch);
    LoneModel lone(settings);
    uint64_t mistakes = 0;
    for (int64_t pass = 1; pass <= worked.passes; ++pass) {
      const PassSummary summary = *lone.Learn(ToColumns(worked.data).batch(), pass).pass;
      EXPECT_EQ(summary.converged(), pass == worked.passes) << "pass " << pass;
      EXPECT_EQ(summary.mistakes() == 0, pass == worked.passes) << "pass " << pass;
      mistakes += summary.mistakes();
    }
    EXPECT_EQ(mistakes, worked.mistakes);
    EXPECT_EQ(lone.model->revision(), worked.mistakes + worked.steps);
    EXPECT_EQ(lone.Weights(worked.theta.size()), worked.theta);
    EXPECT_EQ(lone.Offset(), worked.theta0);
  }
}

TEST(WorkedExamples, TheAveragedPerceptronOnAnd) {
  v1::Model settings = Settings(2, true, v1::TIE_RULE_MISTAKE);
  settings.mutable_learner()->mutable_averaged();
  LoneModel lone(settings);
  for (int64_t pass = 1; pass <= 9; ++pass) lone.Learn(ToColumns(kAnd).batch(), pass);
  EXPECT_EQ(MakeReport(*lone.model).examples(), 36U);
  EXPECT_NEAR(lone.Weights(2)[0], 25.0 / 12, 1e-6);
  EXPECT_NEAR(lone.Weights(2)[1], 4.0 / 3, 1e-6);
  EXPECT_NEAR(lone.Offset(), -23.0 / 9, 1e-6);
}

// Each hypothesis for as many votes as the examples that it survived.
TEST(WorkedExamples, TheVotedPerceptronOnTwoPoints) {
  v1::Model settings = Settings(1, false, v1::TIE_RULE_MISTAKE);
  settings.mutable_learner()->mutable_voted();
  LoneModel lone(settings);
  // 1 on (1); then -1 on (2), after which the weight is -1, right on both of the others.
  const std::vector<Point> data = {{{1}, 1}, {{2}, -1}, {{-1}, 1}, {{3}, -1}};
  lone.Learn(ToColumns(data).batch());
  EXPECT_EQ(lone.model->revision(), 2U);
  const PredictOutcome outcome = lone.Predict(ToColumns(data).unlabelled());
  EXPECT_EQ(outcome.scores, (std::vector<float>{-0.5F, -0.5F, 0.5F, -0.5F}));
  EXPECT_TRUE(outcome.distances.empty());
}

TEST(WorkedExamples, StartingWeightsOfWords) {
  v1::Model settings = testing::NamedSettings("named");
  v1::WeightVector& start = *settings.mutable_learner()->mutable_starting_weights()->add_vectors();
  start.add_names("spam");
  start.add_names("ham");
  start.add_values(2);
  start.add_values(-3);
  start.set_bias(0.5);
  const LoneModel lone(settings);
  const testing::NamedColumns columns(
      {{{{"spam", 1}}, 0}, {{{"ham", 2}}, 0}, {{{"ham", 1}, {"spam", 1}, {"other", 9}}, 0}});
  Batch batch = columns.batch();
  batch.labels = {};
  EXPECT_EQ(lone.Predict(batch).scores, (std::vector<float>{2.5, -5.5, -0.5}));
}

// theta = (1, -1), theta_0 = 1
v1::Model Started() {
  v1::Model settings = DenseSettings("worked", 2);
  v1::WeightVector& start = *settings.mutable_learner()->mutable_starting_weights()->add_vectors();
  start.add_indices(0);
  start.add_indices(1);
  start.add_values(1);
  start.add_values(-1);
  start.set_bias(1);
  return settings;
}

TEST(WorkedExamples, OneUpdate) {
  LoneModel lone(Started());
  const LearnOutcome outcome = lone.Learn(Columns().AddDense({1, 3}, 1).batch());
  EXPECT_EQ(outcome.scores, std::vector<float>{-1});
  EXPECT_EQ(outcome.predicted, std::vector<int32_t>{-1});
  EXPECT_EQ(outcome.mistakes, 1U);
  EXPECT_EQ(outcome.updated_rows, std::vector<uint32_t>{0});
  EXPECT_EQ(lone.Weights(2), (std::vector<float>{2, 2}));
  EXPECT_EQ(lone.Offset(), 2);
}

TEST(WorkedExamples, Margins) {
  const LoneModel lone(Started());
  const std::vector<Point> data = {{{1, 3}, 1}, {{2.5, 1.5}, 1}, {{-1.5, 1.5}, -1}};
  const PredictOutcome outcome = lone.Predict(ToColumns(data).unlabelled());
  const double root = std::sqrt(2.0);
  const std::vector<double> margins = {-root / 2, root, root};
  ASSERT_EQ(outcome.distances.size(), data.size());
  double smallest = 1e9;
  for (size_t i = 0; i < data.size(); ++i) {
    const double margin = data[i].y * outcome.distances[i];
    EXPECT_NEAR(margin, margins[i], 1e-6);
    smallest = std::min(smallest, margin);
  }
  EXPECT_NEAR(smallest, -root / 2, 1e-6);
}

}  // namespace
}  // namespace perceptrond::worked_examples_test
