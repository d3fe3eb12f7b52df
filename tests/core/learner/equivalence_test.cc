// Forms of one perceptron that must come to the same: the offset and a constant column; step sizes;
// starting weights and the updates that lead to them.
#include <bit>
#include <random>

#include "gtest/gtest.h"
#include "tests/support/learners.h"
#include "tests/support/models.h"

namespace perceptrond::equivalence_test {
namespace {

using testing::Columns;
using testing::DenseSettings;
using testing::LoneModel;
using testing::SvmExample;
namespace v1 = ::perceptron::v1;

constexpr uint32_t kDimension = 7;

std::vector<SvmExample> Noise(uint32_t seed, size_t count, bool integers) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<SvmExample> examples(count);
  for (SvmExample& example : examples) {
    example.label = random() % 2 == 0 ? 1 : -1;
    for (uint32_t i = 0; i < kDimension; ++i) {
      example.indices.push_back(i);
      example.values.push_back(integers ? static_cast<float>(static_cast<int>(random() % 9) - 4)
                                        : normal(random));
    }
  }
  return examples;
}

class OffsetEquivalence : public ::testing::TestWithParam<double> {};

// Sums of small multiples of powers of two are exact, so the two forms must agree to the bit.
TEST_P(OffsetEquivalence, AnOffsetIsAConstantColumn) {
  const double b = GetParam();
  const std::vector<SvmExample> plain = Noise(1, 400, /*integers=*/true);
  std::vector<SvmExample> augmented = plain;
  for (SvmExample& example : augmented) {
    example.indices.push_back(kDimension);
    example.values.push_back(static_cast<float>(b));
  }
  v1::Model with_offset = DenseSettings("offset", kDimension);
  with_offset.mutable_learner()->set_bias_input(b);
  v1::Model with_column = DenseSettings("column", kDimension + 1);
  with_column.mutable_learner()->set_bias_input(0);
  LoneModel offset(with_offset);
  LoneModel column(with_column);
  const LearnOutcome one = offset.Learn(Columns(plain).batch(), 1);
  const LearnOutcome other = column.Learn(Columns(augmented).batch(), 1);
  EXPECT_GT(one.updated_rows.size(), 50U);
  EXPECT_EQ(one.updated_rows, other.updated_rows);
  EXPECT_EQ(one.scores, other.scores);
  EXPECT_EQ(one.predicted, other.predicted);
  std::vector<float> weights = offset.Weights(kDimension);
  weights.push_back(static_cast<float>(offset.Offset() / b));
  EXPECT_EQ(weights, column.Weights(kDimension + 1));
  const ConvergenceReport a = MakeReport(*offset.model);
  const ConvergenceReport c = MakeReport(*column.model);
  EXPECT_EQ(a.radius(), c.radius());
  EXPECT_EQ(a.weight_norm(), c.weight_norm());
  EXPECT_EQ(a.margin_ceiling(), c.margin_ceiling());
  EXPECT_EQ(a.bound_in_use(), c.bound_in_use());
}

INSTANTIATE_TEST_SUITE_P(Values, OffsetEquivalence, ::testing::Values(1.0, 0.25, 2.0, 3.0, 10.0));

TEST(StepSize, PowersOfTwoScaleTheWeightsAndChangeNoPrediction) {
  const Columns columns(Noise(2, 500, /*integers=*/false));
  LoneModel one(DenseSettings("one", kDimension));
  const LearnOutcome reference = one.Learn(columns.batch());
  ASSERT_GT(reference.updated_rows.size(), 100U);
  for (const double step : {0.25, 0.5, 2.0, 1024.0}) {
    v1::Model settings = DenseSettings("scaled", kDimension);
    testing::SetNumber(*settings.mutable_learner(), "step_size", step);
    LoneModel scaled(settings);
    const LearnOutcome outcome = scaled.Learn(columns.batch());
    EXPECT_EQ(outcome.updated_rows, reference.updated_rows);
    EXPECT_EQ(outcome.predicted, reference.predicted);
    const std::vector<float> expected = one.Weights(kDimension);
    const std::vector<float> weights = scaled.Weights(kDimension);
    for (uint32_t i = 0; i < kDimension; ++i) {
      EXPECT_EQ(std::bit_cast<uint32_t>(weights[i]),
                std::bit_cast<uint32_t>(static_cast<float>(step * expected[i])));
    }
    EXPECT_EQ(scaled.Offset(), step * one.Offset());
  }
}

TEST(StepSize, OtherStepsChangeNoUpdateOnExactData) {
  // With a step of 3 integers stay integers.
  const Columns columns(Noise(3, 500, /*integers=*/true));
  LoneModel one(DenseSettings("one", kDimension));
  v1::Model settings = DenseSettings("three", kDimension);
  testing::SetNumber(*settings.mutable_learner(), "step_size", 3);
  LoneModel three(settings);
  EXPECT_EQ(one.Learn(columns.batch()).updated_rows, three.Learn(columns.batch()).updated_rows);
}

// Learning on from weights is learning on from the examples that made them.
TEST(StartingWeights, GoOnAsIfTheyHadBeenLearned) {
  const std::vector<SvmExample> examples = Noise(4, 400, /*integers=*/true);
  const Columns first(examples, 0, 200);
  const Columns second(examples, 200, 400);
  for (const double b : {0.0, 1.0, 2.0}) {
    v1::Model settings = DenseSettings("whole", kDimension);
    settings.mutable_learner()->set_bias_input(b);
    LoneModel whole(settings);
    whole.Learn(first.batch());
    const std::vector<float> weights = whole.Weights(kDimension);
    v1::WeightVector& start =
        *settings.mutable_learner()->mutable_starting_weights()->add_vectors();
    for (uint32_t i = 0; i < kDimension; ++i) {
      start.add_indices(i);
      start.add_values(weights[i]);
    }
    start.set_bias(whole.Offset());
    LoneModel started(settings);
    const LearnOutcome one = whole.Learn(second.batch());
    const LearnOutcome other = started.Learn(second.batch());
    EXPECT_GT(one.updated_rows.size(), 20U);
    EXPECT_EQ(one.updated_rows, other.updated_rows);
    EXPECT_EQ(one.scores, other.scores);
    EXPECT_EQ(whole.Weights(kDimension), started.Weights(kDimension));
    EXPECT_EQ(whole.Offset(), started.Offset());
  }
}

TEST(StartingWeights, TakeWordsInANamedSpace) {
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

}  // namespace
}  // namespace perceptrond::equivalence_test
