// The convergence report of the perceptron of several classes, against data built with a known
// margin and against sums made here.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/learners.h"
#include "tests/support/models.h"

namespace perceptrond::multiclass_theorem_test {
namespace {

using testing::Columns;
using testing::DenseSettings;
using testing::LoneModel;
using testing::SvmExample;
namespace v1 = ::perceptron::v1;

constexpr int kClasses = 4;
constexpr uint32_t kDimension = 6;
// Float32 weights round: by so much may a figure miss what the theorem says of exact ones.
constexpr double kMulticlassSlack = 1e-5;

using Matrix = std::vector<std::vector<double>>;

// (x, b) by row; the last weight is the bias weight.
double Score(const std::vector<double>& weights, const SvmExample& example, double b) {
  double score = weights.back() * b;
  for (size_t i = 0; i < example.values.size(); ++i) score += weights[i] * example.values[i];
  return score;
}

double Margin(const Matrix& weights, const SvmExample& example, double b) {
  double rival = -std::numeric_limits<double>::infinity();
  for (int k = 0; k < kClasses; ++k) {
    if (k != example.label) rival = std::max(rival, Score(weights[k], example, b));
  }
  return Score(weights[example.label], example, b) - rival;
}

double SquaredNorm(const Matrix& weights) {
  double sum = 0;
  for (const auto& row : weights) {
    for (const double weight : row) sum += weight * weight;
  }
  return sum;
}

struct Data {
  std::vector<SvmExample> examples;
  // What a W of norm 1 separates them with at least.
  double margin = 0;
  // Max ||x||^2 + b^2.
  double squared_radius = 0;
};

// Examples that a random W of norm 1 separates with this margin.
Data MakeSeparableClasses(uint32_t seed, double margin, double b, size_t count) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Matrix truth(kClasses, std::vector<double>(kDimension + 1));
  for (auto& row : truth) {
    for (double& weight : row) weight = normal(random);
  }
  const double norm = std::sqrt(SquaredNorm(truth));
  for (auto& row : truth) {
    for (double& weight : row) weight /= norm;
  }
  Data data{{}, margin, 0};
  while (data.examples.size() < count) {
    SvmExample example;
    double square = b * b;
    for (uint32_t i = 0; i < kDimension; ++i) {
      example.indices.push_back(i);
      example.values.push_back(normal(random));
      square += static_cast<double>(example.values[i]) * example.values[i];
    }
    for (example.label = 0; example.label < kClasses; ++example.label) {
      if (Margin(truth, example, b) >= margin) break;
    }
    if (example.label == kClasses) continue;
    data.squared_radius = std::max(data.squared_radius, square);
    data.examples.push_back(example);
  }
  return data;
}

v1::Model Settings(const std::string& kind, double b) {
  v1::Model settings = DenseSettings("classes", kDimension);
  testing::SetLearner(*settings.mutable_learner(), kind);
  settings.mutable_learner()->set_bias_input(b);
  settings.mutable_learner()->mutable_classes()->set_max_classes(kClasses);
  return settings;
}

// What the model predicts with, the plain perceptron's weights.
Matrix WeightsOf(const LoneModel& lone, double b) {
  Matrix weights;
  for (const WeightList& list : ListWeights(*lone.model)) {
    auto& row = weights.emplace_back(kDimension + 1);
    for (size_t i = 0; i < list.indices.size(); ++i) row[list.indices[i]] = list.values[i];
    row.back() = b == 0 ? 0 : list.bias / b;
  }
  return weights;
}

class MulticlassTheorem : public ::testing::TestWithParam<double> {};

TEST_P(MulticlassTheorem, HoldsAtEveryMomentOfTheRun) {
  const double b = GetParam();
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    const Data data = MakeSeparableClasses(seed, 0.2, b, 240);
    for (const std::string kind :
         {"perceptron", "averaged-perceptron", "pocket-perceptron", "voted-perceptron"}) {
      LoneModel lone(Settings(kind, b));
      const double bound = 2 * data.squared_radius / (data.margin * data.margin);
      bool converged = false;
      for (int64_t pass = 1; !converged; ++pass) {
        ASSERT_LE(pass, static_cast<int64_t>(bound) + 1) << "seed " << seed;
        for (size_t at = 0; at < 240; at += 24) {
          const bool last = at + 24 == 240;
          const LearnOutcome outcome =
              lone.Learn(Columns(data.examples, at, at + 24).batch(), last ? pass : 0);
          const ConvergenceReport report = MakeReport(*lone.model);
          const auto k = static_cast<double>(report.updates());
          ASSERT_LE(k, bound);
          ASSERT_TRUE(report.has_margin_ceiling());
          ASSERT_GE(report.margin_ceiling(), data.margin * (1 - kMulticlassSlack));
          ASSERT_LE(report.margin_ceiling(), report.weight_norm() / k * (1 + kMulticlassSlack));
          ASSERT_TRUE(report.has_bound_in_use());
          ASSERT_NEAR(report.bound_in_use(),
                      report.weight_norm() * report.weight_norm() /
                          (k * 2 * report.radius() * report.radius()),
                      1e-9);
          ASSERT_LE(report.bound_in_use(), 1);
          if (last) converged = outcome.pass->converged();
        }
      }
      const ConvergenceReport report = MakeReport(*lone.model);
      EXPECT_NEAR(report.radius() * report.radius(), data.squared_radius,
                  1e-9 * data.squared_radius);
      ASSERT_TRUE(report.has_margin_floor());
      EXPECT_LE(report.margin_floor(), report.margin_ceiling() * (1 + kMulticlassSlack));
      ASSERT_TRUE(report.has_update_bound());
      EXPECT_NEAR(report.update_bound(),
                  2 * data.squared_radius / (report.margin_floor() * report.margin_floor()),
                  1e-9 * report.update_bound());
      EXPECT_GE(report.update_bound(), static_cast<double>(report.updates()));
      if (kind != "perceptron") continue;
      const Matrix weights = WeightsOf(lone, b);
      double margin = std::numeric_limits<double>::infinity();
      for (const SvmExample& example : data.examples)
        margin = std::min(margin, Margin(weights, example, b));
      const double norm = std::sqrt(SquaredNorm(weights));
      EXPECT_NEAR(report.weight_norm(), norm, 1e-6 * norm);
      EXPECT_NEAR(report.margin_floor(), margin / norm, 1e-6);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(BiasInputs, MulticlassTheorem, ::testing::Values(0.0, 1.0, 0.5));

// XOR as two of three classes: each pass makes updates whose sum is exactly zero.
TEST(MulticlassTheoremLimits, ExactUpdatesThatComeBackToZeroProveThatNothingSeparates) {
  v1::Model settings = DenseSettings("xor", 2);
  settings.mutable_learner()->mutable_classes()->set_max_classes(2);
  settings.set_margin_of_interest(0.01);
  LoneModel lone(settings);
  const Columns columns =
      Columns().AddDense({-1, -1}, 1).AddDense({1, 1}, 1).AddDense({-1, 1}, 0).AddDense({1, -1}, 0);
  lone.Learn(columns.batch(), 1);
  const ConvergenceReport report = MakeReport(*lone.model);
  EXPECT_EQ(report.updates(), 4U);
  EXPECT_EQ(report.weight_norm(), 0);
  EXPECT_EQ(report.not_separable(), true);
  EXPECT_EQ(report.margin_refuted(), true);
  EXPECT_EQ(report.state(), ::perceptron::v1::CONVERGENCE_STATE_NOT_SEPARABLE);
  EXPECT_FALSE(report.has_margin_floor());
}

TEST(MulticlassTheoremLimits, IsNotClaimedWhereClassesAppearMidStreamOrCountUnequally) {
  const Data data = MakeSeparableClasses(9, 0.2, 1, 100);
  v1::Model appearing = Settings("perceptron", 1);
  appearing.mutable_learner()->mutable_classes()->set_new_classes(
      v1::Classes::NEW_CLASSES_NUMBERED);
  v1::Model weighted = Settings("perceptron", 1);
  for (int k = 0; k < kClasses; ++k) weighted.mutable_learner()->add_class_weights(1 + k);
  v1::Model other = Settings("passive-aggressive", 1);
  for (const v1::Model& settings : {appearing, weighted, other}) {
    LoneModel lone(settings);
    for (int64_t pass = 1; pass <= 3; ++pass) lone.Learn(Columns(data.examples).batch(), pass);
    const ConvergenceReport report = MakeReport(*lone.model);
    EXPECT_FALSE(report.has_margin_ceiling());
    EXPECT_FALSE(report.has_bound_in_use());
    EXPECT_FALSE(report.has_update_bound());
    EXPECT_FALSE(report.has_not_separable());
  }
}

}  // namespace
}  // namespace perceptrond::multiclass_theorem_test
