// Forms of one rule that must come to the same: the offset and a constant column; step sizes;
// starting weights and the updates that lead to them; two classes and two labels; batches of one; the
// linear kernel.
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

// Two classes, with labels 0 and 1, beside a two-class model with labels -1 and +1 and other numbers.
struct Twins {
  std::string learner;
  // The setting, of several classes and of two labels.
  std::string setting;
  double several;
  double two;
  // The two-class rule's w is factor x w_1, and w_0 = -w_1: then s_1 - s_0 = 2 s / factor.
  double factor;
  double tolerance;
};

const Twins kTwins[] = {
    // w_1 moves as w does, and w_0 as -w: so the margin is 2 y s, of one sign with y s.
    {"perceptron", "step_size", 1, 1, 1, 0},
    {"averaged-perceptron", "step_size", 1, 1, 1, 0},
    {"pocket-perceptron", "step_size", 1, 1, 1, 0},
    // With w = 2 w_1: l is the same, and 2 t = 2 l / 2N = l / N.
    {"passive-aggressive", "", 0, 0, 2, 1e-4},
    // 2 min(C, l / 2N) = min(2C, l / N), and 2 l / (2N + 1 / 2C) = l / (N + 1 / 4C).
    {"passive-aggressive-i", "aggressiveness", 0.1, 0.2, 2, 1e-4},
    {"passive-aggressive-ii", "aggressiveness", 0.1, 0.2, 2, 1e-4},
    // P(1) = 1 / (1 + e^-(s_1 - s_0)) with s_1 - s_0 = 2 w_1 x; w = 2 w_1 moves by 2 eta.
    {"logistic-regression", "step_size", 0.1, 0.2, 2, 1e-3},
};

TEST(TwoClasses, AreTwoLabelsAtAnotherScale) {
  for (const Twins& twins : kTwins) {
    SCOPED_TRACE(twins.learner);
    v1::Model settings = DenseSettings("twins", kDimension);
    testing::SetLearner(*settings.mutable_learner(), twins.learner);
    if (!twins.setting.empty())
      testing::SetNumber(*settings.mutable_learner(), twins.setting, twins.two);
    LoneModel labels(settings);
    if (!twins.setting.empty())
      testing::SetNumber(*settings.mutable_learner(), twins.setting, twins.several);
    settings.mutable_learner()->mutable_classes()->set_max_classes(2);
    LoneModel classes(settings);
    size_t updates = 0;
    for (SvmExample example : Noise(5, 800, /*integers=*/false)) {
      const LearnOutcome two = labels.Learn(Columns({example}).batch());
      example.label = example.label > 0 ? 1 : 0;
      const LearnOutcome several = classes.Learn(Columns({example}).batch());
      ASSERT_EQ(several.mistakes, two.mistakes);
      ASSERT_EQ(several.updated_rows, two.updated_rows);
      updates += two.updated_rows.size();
    }
    EXPECT_GT(updates, 50U);
    const std::vector<WeightList> lists = ListWeights(*classes.model);
    const std::vector<float> two = labels.Weights(kDimension);
    for (size_t k = 0; k < 2; ++k) {
      const double factor = k == 1 ? twins.factor : -twins.factor;
      ASSERT_EQ(lists[k].values.size(), kDimension);
      for (uint32_t i = 0; i < kDimension; ++i)
        EXPECT_NEAR(factor * lists[k].values[i], two[i], twins.tolerance * (1 + std::abs(two[i])));
      EXPECT_NEAR(factor * lists[k].bias, labels.Offset(),
                  twins.tolerance * (1 + std::abs(labels.Offset())));
    }
  }
}

TEST(Perceptron, IsTheBatchPerceptronWithBatchesOfOneAndTheKernelPerceptronWithTheLinearKernel) {
  v1::Model settings = DenseSettings("batch", kDimension);
  settings.mutable_learner()->mutable_batch_perceptron()->set_mini_batch(1);
  LoneModel batches(settings);
  settings.mutable_learner()->mutable_kernel_perceptron()->mutable_kernel()->mutable_linear();
  LoneModel kernel(settings);
  LoneModel plain(DenseSettings("plain", kDimension));
  // Whole numbers: all are exact.
  for (const SvmExample& example : Noise(6, 400, /*integers=*/true)) {
    const Columns one({example});
    const std::vector<float> scores = plain.Learn(one.batch()).scores;
    ASSERT_EQ(batches.Learn(one.batch()).scores, scores);
    ASSERT_EQ(kernel.Learn(one.batch()).scores, scores);
  }
  EXPECT_EQ(batches.Weights(kDimension), plain.Weights(kDimension));
  EXPECT_EQ(batches.model->revision(), 2 * plain.model->revision());
  EXPECT_EQ(kernel.model->revision(), plain.model->revision());
  const double norm = MakeReport(*plain.model).weight_norm();
  EXPECT_NEAR(MakeReport(*kernel.model).weight_norm(), norm, 1e-9 * norm);
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
