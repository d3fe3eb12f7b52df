// The bounds that the papers prove of their rules, on data that are built to test them; and formulas of
// the API that can be followed by hand. The theorem itself: tests/core/convergence/theorem_test.cc, the
// Forgetron's bound on a budget: forgetron_bound_test.cc, the vote's: weighted_majority_test.cc.
#include <algorithm>
#include <cmath>
#include <random>

#include "gtest/gtest.h"
#include "tests/support/learners.h"
#include "tests/support/models.h"
#include "tests/support/reference_learner.h"

namespace perceptrond::bounds_test {
namespace {

using testing::Columns;
using testing::DenseSettings;
using testing::LoneModel;
using testing::SetCount;
using testing::SetNumber;
namespace v1 = ::perceptron::v1;

// Through the origin, since the data are separated so.
v1::Model Settings(const std::string& learner, uint32_t dimension, double b = 0) {
  v1::Model settings = DenseSettings("bounds", dimension);
  testing::SetLearner(*settings.mutable_learner(), learner);
  settings.mutable_learner()->set_bias_input(b);
  return settings;
}

// Points of norm 1 that a vector of norm 1 separates with at least this margin: with two labels the
// first axis, with several classes, of which each has an axis, the identity / sqrt(classes).
Columns Separable(std::mt19937& random, uint32_t classes, size_t dimension, double margin,
                  size_t count) {
  std::normal_distribution<float> normal;
  Columns columns;
  for (size_t n = 0; n < count;) {
    std::vector<float> x(classes > 0 ? classes : dimension);
    double square = 0;
    for (float& value : x) square += std::pow(value = normal(random), 2);
    for (float& value : x) value = static_cast<float>(value / std::sqrt(square));
    std::vector<float> sorted = x;
    std::sort(sorted.rbegin(), sorted.rend());
    const double attained =
        classes > 0 ? (sorted[0] - sorted[1]) / std::sqrt(classes) : std::abs(x[0]);
    if (attained < margin) continue;
    const auto best = std::max_element(x.begin(), x.end()) - x.begin();
    columns.AddDense(x, classes > 0 ? static_cast<int32_t>(best) : (x[0] > 0 ? 1 : -1));
    ++n;
  }
  return columns;
}

void Converge(LoneModel& lone, const Columns& columns) {
  int64_t pass = 1;
  while (!lone.Learn(columns.batch(), pass).pass->converged()) ASSERT_LT(++pass, 20'000);
}

TEST(MarginPerceptron, KeepsToItsBoundAndEndsWithItsMargin) {
  std::mt19937 random(7);
  for (const double alpha : {0.2, 0.5, 0.9}) {
    for (const double margin : {0.3, 0.1}) {
      const Columns columns = Separable(random, 0, 5, margin, 60);
      v1::Model settings = Settings("margin-perceptron", 5);
      SetNumber(*settings.mutable_learner(), "margin_slack", alpha);
      LoneModel lone(settings);
      Converge(lone, columns);
      const double bound = 2 / (margin * margin) * std::pow(2 / alpha - 1, 2) + 8 / alpha - 4;
      EXPECT_LE(static_cast<double>(lone.model->revision()), bound) << alpha << " " << margin;
      double attained = 1;
      const std::vector<float> distances = lone.Predict(columns.unlabelled()).distances;
      for (size_t i = 0; i < distances.size(); ++i)
        attained = std::min<double>(attained, distances[i] * columns.batch().labels[i]);
      EXPECT_GE(attained, (1 - alpha) * margin);
    }
  }
}

TEST(PassiveAggressive, MakesAtMostTheMistakesItsTheoremAllows) {
  std::mt19937 random(8);
  for (const double margin : {0.3, 0.1, 0.03}) {
    const Columns columns = Separable(random, 0, 8, margin, 2000);
    LoneModel lone(Settings("passive-aggressive", 8));
    EXPECT_LE(static_cast<double>(lone.Learn(columns.batch()).mistakes), 1 / (margin * margin));
  }
}

// With mistakes m_t in step t: eta gamma sum m_t <= w . u <= ||w|| <= eta R sqrt(n sum m_t).
TEST(BatchPerceptron, MakesAtMostTheMistakesThatItsBannerProves) {
  std::mt19937 random(11);
  constexpr size_t kExamples = 60;
  for (const double margin : {0.3, 0.1}) {
    for (const uint32_t mini_batch : {0U, 1U, 5U, 16U}) {
      v1::Model settings = Settings("batch-perceptron", 3);
      SetCount(*settings.mutable_learner(), "mini_batch", mini_batch);
      LoneModel lone(settings);
      Converge(lone, Separable(random, 0, 3, margin, kExamples));
      const auto most = static_cast<double>(mini_batch == 0 ? kExamples : mini_batch);
      EXPECT_LE(static_cast<double>(MakeReport(*lone.model).mistakes()),
                most / (margin * margin) * (1 + 1e-6));
    }
  }
}

// With two labels the logistic function of the score; with several classes the softmax.
TEST(LogisticRegression, ItsProbabilitiesAreThoseOfItsScoresAndAddUpToOne) {
  std::mt19937 random(6);
  for (const uint32_t classes : {0U, 4U}) {
    v1::Model settings = Settings("logistic-regression", 4, 1);
    if (classes > 0) settings.mutable_learner()->mutable_classes()->set_max_classes(classes);
    LoneModel lone(settings);
    lone.Learn(Separable(random, classes, 4, 0, 300).batch());
    PredictOutcome outcome;
    ASSERT_OK(lone.model->Predict(Separable(random, classes, 4, 0, 50).unlabelled(), {}, 0, outcome,
                                  classes > 0));
    ASSERT_EQ(outcome.probabilities.size(), 50U);
    ASSERT_EQ(outcome.class_probabilities.size(), 50U * classes);
    for (size_t i = 0; i < 50; ++i) {
      double sum = 0;
      double exps = classes == 0 ? 1 + std::exp(outcome.scores[i]) : 0;
      for (size_t k = 0; k < classes; ++k) {
        sum += outcome.class_probabilities[classes * i + k];
        exps += std::exp(outcome.class_scores[classes * i + k]);
        EXPECT_LE(outcome.class_scores[classes * i + k], outcome.scores[i]);
      }
      EXPECT_NEAR(outcome.probabilities[i], std::exp(outcome.scores[i]) / exps, 1e-5);
      if (classes == 0) continue;
      EXPECT_NEAR(sum, 1, 1e-6);
      const size_t winner = classes * i + static_cast<size_t>(outcome.labels[i]);
      EXPECT_EQ(outcome.class_scores[winner], outcome.scores[i]);
      EXPECT_EQ(outcome.class_probabilities[winner], outcome.probabilities[i]);
    }
  }
}

v1::Model Kernel(uint32_t dimension, double b, const std::function<void(v1::Kernel&)>& set_kernel) {
  v1::Model settings = Settings("kernel-perceptron", dimension, b);
  set_kernel(*settings.mutable_learner()->mutable_kernel_perceptron()->mutable_kernel());
  return settings;
}
void SetLinear(v1::Kernel& kernel) { kernel.mutable_linear(); }
void SetCubic(v1::Kernel& kernel) { kernel.mutable_polynomial()->set_degree(3); }
void SetGaussian(v1::Kernel& kernel) { kernel.mutable_rbf()->set_gamma(0.05); }

TEST(KernelPerceptron, ItsNormIsThatOfItsFunction) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  v1::Model settings = Kernel(3, 1, &SetGaussian);
  SetCount(*settings.mutable_learner(), "budget", 9);
  LoneModel lone(settings);
  testing::ReferenceLearner reference(settings.learner(), 3);
  for (int n = 0; n < 300; ++n) {
    const std::vector<float> x = {normal(random), normal(random), normal(random)};
    const int label = random() % 2 == 0 ? 1 : -1;
    lone.Learn(Columns().AddDense(x, label).batch());
    reference.Learn({x[0], x[1], x[2], 1}, label, 1);
    const double square = reference.forgetron().SquaredNorm();
    ASSERT_NEAR(std::pow(MakeReport(*lone.model).weight_norm(), 2), square, 1e-9 * (1 + square));
  }
  ASSERT_GT(lone.model->revision(), 100U);
}

// Novikoff's bound in the kernel's space: separable there with a margin known by construction.
TEST(KernelPerceptron, MakesAtMostTheUpdatesOfTheTheoremWhileNothingIsForgotten) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  // g = sum of +-K(c_i, .) over far centres: a point near c_i has y g(x) near 1.
  const double centres[4][2] = {{0, 0}, {30, 0}, {0, 30}, {30, 30}};
  const auto gaussian = [](double x, double y, const double* centre) {
    return std::exp(-0.05 * (std::pow(x - centre[0], 2) + std::pow(y - centre[1], 2)));
  };
  Columns columns;
  double margin = 1e9;
  for (int n = 0; n < 400; ++n) {
    const int c = n % 4;
    const float x = static_cast<float>(centres[c][0]) + normal(random);
    const float y = static_cast<float>(centres[c][1]) + normal(random);
    columns.AddDense({x, y}, c % 2 == 0 ? 1 : -1);
    double g = 0;
    for (int i = 0; i < 4; ++i) g += (i % 2 == 0 ? 1 : -1) * gaussian(x, y, centres[i]);
    margin = std::min(margin, g * (c % 2 == 0 ? 1 : -1));
  }
  double square = 0;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j)
      square += ((i + j) % 2 == 0 ? 1 : -1) * gaussian(centres[i][0], centres[i][1], centres[j]);
  }
  LoneModel lone(Kernel(2, 0, &SetGaussian));
  Converge(lone, columns);
  ASSERT_GT(margin, 0);
  EXPECT_LE(static_cast<double>(lone.model->revision()), square / (margin * margin));
  // Rounding may add an unknown amount to a score in the kernel's space: no margin is claimed.
  EXPECT_FALSE(MakeReport(*lone.model).last_pass().has_margin());
  EXPECT_FALSE(MakeReport(*lone.model).has_margin_floor());
}

// The theorem's first half, ||f||^2 <= k R^2, holds in one space and not between two.
TEST(KernelPerceptron, NormAndRadiusAreOfItsKernelsSpace) {
  for (const auto kernel : {&SetLinear, &SetCubic, &SetGaussian}) {
    for (unsigned seed = 1; seed <= 20; ++seed) {
      std::mt19937 random(seed);
      std::normal_distribution<float> normal(0, 2);
      LoneModel lone(Kernel(2, 1, kernel));
      Columns columns;
      for (int n = 0; n < 60; ++n)
        columns.AddDense({normal(random), normal(random)}, random() % 2 == 0 ? 1 : -1);
      lone.Learn(columns.batch());
      const ConvergenceReport report = MakeReport(*lone.model);
      ASSERT_GT(report.updates(), 0U);
      EXPECT_LE(report.weight_norm(),
                std::sqrt(static_cast<double>(report.updates())) * report.radius() * 1.000001);
    }
  }
}

// A row that no weight can hold the sum of is refused, and changes nothing.
TEST(Overflow, IsRefusedWhereItWouldHappen) {
  for (const auto kernel : {&SetLinear, &SetCubic}) {
    LoneModel lone(Kernel(2, 1, kernel));
    const Columns huge = Columns().AddDense({3e38F, 3e38F}, 1);
    const LearnOutcome outcome = lone.Learn(huge.batch());
    ASSERT_EQ(outcome.row_errors.size(), 1U);
    EXPECT_EQ(outcome.row_errors[0].error.code, ValidationCode::kWeightOverflow);
    EXPECT_EQ(lone.model->revision(), 0U);
    lone.Learn(Columns().AddDense({1, -1}, -1).AddDense({1, 1}, 1).batch());
    EXPECT_TRUE(std::isfinite(lone.Predict(huge.unlabelled()).scores[0]));
  }
  // The batch perceptron: when the sum grows that its step could not add.
  v1::Model settings = Settings("batch-perceptron", 1, 1);
  SetNumber(*settings.mutable_learner(), "step_size", 4);
  LoneModel lone(settings);
  const Columns columns = Columns().AddDense({6e37F}, 1).AddDense({6e37F}, 1);
  const LearnOutcome outcome = lone.Learn(columns.batch(), 1);
  ASSERT_EQ(outcome.row_errors.size(), 1U);
  EXPECT_EQ(outcome.row_errors[0].row, 1U);
  EXPECT_EQ(outcome.row_errors[0].error.code, ValidationCode::kWeightOverflow);
  EXPECT_EQ(lone.Weights(1)[0], 4 * 6e37F);
}

// No theorem speaks of weighted examples.
TEST(Weights, OfClassesAndExamplesScaleTheStepAndEndTheTheorem) {
  v1::Model settings = Settings("perceptron", 1, 1);
  const std::vector<float> weights = {1, 2.5F};
  const Columns columns = Columns().AddDense({1}, 1).AddDense({3}, -1);
  Batch batch = columns.batch();
  batch.weights = weights;
  LoneModel examples(settings);
  examples.Learn(batch);
  EXPECT_EQ(examples.Weights(1)[0], 1 - 2.5F * 3);
  EXPECT_FALSE(MakeReport(*examples.model).has_margin_ceiling());
  settings.mutable_learner()->add_class_weights(1);
  settings.mutable_learner()->add_class_weights(5);
  LoneModel classes(settings);
  classes.Learn(batch);
  EXPECT_EQ(classes.Weights(1)[0], 5 - 2.5F * 3);
  EXPECT_FALSE(MakeReport(*classes.model).has_margin_ceiling());
}

}  // namespace
}  // namespace perceptrond::bounds_test
