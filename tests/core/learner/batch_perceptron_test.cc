// The batch perceptron: worked examples, the bound on its mistakes, and what it has in common with
// the perceptron.
#include <cmath>
#include <random>

#include "gtest/gtest.h"
#include "tests/support/learners.h"
#include "tests/support/models.h"
#include "tests/support/papers_with_rows.h"

namespace perceptrond::batch_perceptron_test {
namespace {

using testing::Columns;
using testing::DenseSettings;
using testing::LoneModel;
namespace v1 = ::perceptron::v1;

v1::Model Settings(uint32_t dimension, uint32_t mini_batch) {
  v1::Model settings = DenseSettings("batch", dimension);
  settings.mutable_learner()->mutable_batch_perceptron();
  testing::SetCount(*settings.mutable_learner(), "mini_batch", mini_batch);
  return settings;
}

struct Worked {
  const char* name;
  Columns data;
  uint32_t mini_batch;
  // The last one has no mistake.
  int64_t passes;
  uint64_t mistakes;
  uint64_t steps;
  std::vector<float> weights;
  double offset;
};

void PrintTo(const Worked& worked, std::ostream* out) {
  *out << worked.name << " by " << worked.mini_batch;
}

class WorkedBatches : public ::testing::TestWithParam<Worked> {};

TEST_P(WorkedBatches, ConvergesAsWorkedOut) {
  const Worked& worked = GetParam();
  LoneModel lone(Settings(static_cast<uint32_t>(worked.weights.size()), worked.mini_batch));
  uint64_t mistakes = 0;
  uint64_t updates = 0;
  for (int64_t pass = 1; pass <= worked.passes; ++pass) {
    const PassSummary summary = *lone.Learn(worked.data.batch(), pass).pass;
    EXPECT_EQ(summary.converged(), pass == worked.passes) << "pass " << pass;
    EXPECT_EQ(summary.mistakes() == 0, pass == worked.passes) << "pass " << pass;
    mistakes += summary.mistakes();
    updates += summary.updates();
  }
  EXPECT_EQ(mistakes, worked.mistakes);
  EXPECT_EQ(updates, worked.mistakes + worked.steps);
  EXPECT_EQ(lone.model->revision(), updates);
  EXPECT_EQ(lone.Weights(worked.weights.size()), worked.weights);
  EXPECT_EQ(lone.Offset(), worked.offset);
}

const Columns& And() {
  static const Columns columns =
      Columns().AddDense({0, 0}, -1).AddDense({0, 1}, -1).AddDense({1, 0}, -1).AddDense({1, 1}, 1);
  return columns;
}
const Columns& Line() {
  static const Columns columns =
      Columns().AddDense({1}, 1).AddDense({2}, 1).AddDense({3}, -1).AddDense({4}, -1);
  return columns;
}

// Found with whole numbers, apart from this project.
INSTANTIATE_TEST_SUITE_P(Seeds, WorkedBatches,
                         ::testing::Values(Worked{"And", And(), 0, 10, 15, 9, {2, 2}, -3},
                                           Worked{"And", And(), 2, 13, 20, 17, {3, 2}, -4},
                                           Worked{"And", And(), 1, 9, 18, 18, {3, 2}, -4},
                                           Worked{"Line", Line(), 0, 14, 23, 13, {-3}, 7},
                                           Worked{"Line", Line(), 2, 10, 23, 14, {-3}, 7},
                                           Worked{"Line", Line(), 1, 11, 25, 25, {-3}, 7}),
                         [](const auto& info) {
                           return std::string(info.param.name) + "_" +
                                  std::to_string(info.param.mini_batch);
                         });

TEST(BatchPerceptron, AMistakeChangesNoScoreBeforeItsBatchEnds) {
  LoneModel lone(Settings(2, 0));
  for (int n = 0; n < 3; ++n) {
    const LearnOutcome outcome = lone.Learn(And().batch());
    EXPECT_EQ(outcome.mistakes, 4U);
    EXPECT_EQ(outcome.scores, std::vector<float>(4));
  }
  EXPECT_EQ(lone.model->revision(), 12U);
  EXPECT_EQ(lone.Weights(2), std::vector<float>(2));
  // Three times the sum of y x: 3 x ((1, 1) - (0, 1) - (1, 0)), offset 3 x (1 - 3).
  lone.Learn(Batch(), 1);
  EXPECT_EQ(lone.model->revision(), 13U);
  EXPECT_EQ(lone.Offset(), -6);
  EXPECT_EQ(lone.Weights(2), std::vector<float>(2));
}

TEST(BatchPerceptron, StepsAreScaledByTheStepSizeAndTheWeights) {
  v1::Model settings = Settings(1, 0);
  testing::SetNumber(*settings.mutable_learner(), "step_size", 0.5);
  settings.mutable_learner()->add_class_weights(1);
  settings.mutable_learner()->add_class_weights(3);
  LoneModel lone(settings);
  const std::vector<float> weights = {1, 2};
  const Columns columns = Columns().AddDense({1}, -1).AddDense({10}, 1);
  Batch batch = columns.batch();
  batch.weights = weights;
  lone.Learn(batch, 1);
  EXPECT_EQ(lone.Weights(1)[0], 0.5F * (-1 + 3 * 2 * 10));
  EXPECT_EQ(lone.Offset(), 0.5 * (-1 + 3 * 2));
}

// With mistakes m_t in step t: eta gamma sum m_t <= w . u <= ||w|| <= eta R sqrt(n sum m_t).
TEST(BatchPerceptron, MakesAtMostTheMistakesThatItsBannerProves) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  for (const double margin : {0.3, 0.1}) {
    for (const uint32_t mini_batch : {0U, 1U, 5U, 16U}) {
      Columns columns;
      constexpr size_t kExamples = 60;
      for (size_t n = 0; n < kExamples;) {
        std::vector<float> x = {normal(random), normal(random), normal(random)};
        const double norm = std::sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);
        for (float& value : x) value = static_cast<float>(value / norm);
        if (std::abs(x[0]) < margin) continue;
        columns.AddDense(x, x[0] > 0 ? 1 : -1);
        ++n;
      }
      v1::Model settings = Settings(3, mini_batch);
      settings.mutable_learner()->set_bias_input(0);
      LoneModel lone(settings);
      int64_t pass = 1;
      while (!lone.Learn(columns.batch(), pass).pass->converged()) ASSERT_LT(++pass, 20'000);
      const auto most = static_cast<double>(mini_batch == 0 ? kExamples : mini_batch);
      EXPECT_LE(static_cast<double>(MakeReport(*lone.model).mistakes()),
                most / (margin * margin) * (1 + 1e-6));
    }
  }
}

TEST(BatchPerceptron, WithBatchesOfOneHasThePerceptronsBits) {
  std::mt19937 random(12);
  std::normal_distribution<float> normal;
  LoneModel batches(Settings(4, 1));
  LoneModel plain(DenseSettings("plain", 4));
  for (int n = 0; n < 300; ++n) {
    const Columns one =
        Columns().AddDense({normal(random), normal(random), normal(random), normal(random)},
                           random() % 2 == 0 ? 1 : -1);
    ASSERT_EQ(batches.Learn(one.batch()).scores, plain.Learn(one.batch()).scores);
  }
  EXPECT_EQ(batches.model->revision(), 2 * plain.model->revision());
  EXPECT_EQ(batches.Weights(4), plain.Weights(4));
}

TEST(BatchPerceptron, ASumThatAStepCouldNotAddIsRefusedWhenItGrows) {
  v1::Model settings = Settings(1, 0);
  testing::SetNumber(*settings.mutable_learner(), "step_size", 4);
  LoneModel lone(settings);
  const Columns columns = Columns().AddDense({6e37F}, 1).AddDense({6e37F}, 1);
  const LearnOutcome outcome = lone.Learn(columns.batch(), 1);
  ASSERT_EQ(outcome.row_errors.size(), 1U);
  EXPECT_EQ(outcome.row_errors[0].row, 1U);
  EXPECT_EQ(outcome.row_errors[0].error.code, ValidationCode::kWeightOverflow);
  EXPECT_EQ(lone.Weights(1)[0], 4 * 6e37F);
}

}  // namespace
}  // namespace perceptrond::batch_perceptron_test
