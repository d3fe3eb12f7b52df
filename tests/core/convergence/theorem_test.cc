// The convergence report against data whose margin is known because they were built with it.
#include <cmath>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/learners.h"
#include "tests/support/models.h"
#include "tests/support/separable.h"

namespace perceptrond {
namespace {

using testing::Columns;
using testing::DenseSettings;
using testing::LoneModel;
using testing::MakeSeparable;
using testing::SeparableData;
namespace v1 = ::perceptron::v1;

// Float32 weights round: by so much may a figure miss what the theorem says of exact ones.
constexpr double kSlack = 1e-5;

struct Setup {
  uint32_t dimension;
  double margin;
  double bias_input;
  double step_size;
};

void PrintTo(const Setup& setup, std::ostream* out) {
  *out << "d=" << setup.dimension << " margin=" << setup.margin << " b=" << setup.bias_input
       << " eta=" << setup.step_size;
}

class Theorem : public ::testing::TestWithParam<Setup> {
 protected:
  static v1::Model Settings() {
    v1::Model settings = DenseSettings("separable", GetParam().dimension);
    settings.mutable_learner()->set_bias_input(GetParam().bias_input);
    testing::SetNumber(*settings.mutable_learner(), "step_size", GetParam().step_size);
    return settings;
  }
  static SeparableData Data(uint32_t seed) {
    return MakeSeparable(seed, 300, GetParam().dimension, GetParam().margin, GetParam().bias_input);
  }
};

TEST_P(Theorem, HoldsAtEveryMomentOfTheRun) {
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    const SeparableData data = Data(seed);
    LoneModel lone(Settings());
    const double bound = data.squared_radius / (data.margin * data.margin);
    bool converged = false;
    for (int64_t pass = 1; !converged; ++pass) {
      ASSERT_LE(pass, static_cast<int64_t>(bound) + 1) << "seed " << seed;
      // Ten stretches a pass, so that the report is looked at in the middle of things.
      for (size_t at = 0; at < 300; at += 30) {
        const bool last = at + 30 == 300;
        const LearnOutcome outcome =
            lone.Learn(Columns(data.examples, at, at + 30).batch(), last ? pass : 0);
        const ConvergenceReport report = MakeReport(*lone.model);
        ASSERT_LE(report.updates(), bound);
        ASSERT_TRUE(report.has_margin_ceiling());
        ASSERT_GE(report.margin_ceiling(), data.margin * (1 - kSlack));
        ASSERT_TRUE(report.has_bound_in_use());
        ASSERT_GT(report.bound_in_use(), 0);
        ASSERT_LE(report.bound_in_use(), 1 + kSlack);
        if (last) converged = outcome.pass->converged();
      }
    }
    const ConvergenceReport report = MakeReport(*lone.model);
    EXPECT_DOUBLE_EQ(report.radius() * report.radius(), data.squared_radius);
    ASSERT_TRUE(report.has_margin_floor());
    EXPECT_GT(report.margin_floor(), 0);
    EXPECT_LE(report.margin_floor(), report.margin_ceiling() * (1 + kSlack));
    ASSERT_TRUE(report.has_update_bound());
    EXPECT_GE(report.update_bound(), report.updates());
    EXPECT_NEAR(report.update_bound(),
                data.squared_radius / (report.margin_floor() * report.margin_floor()),
                1e-9 * report.update_bound());
  }
}

// Steps that float32 cannot hold prove nothing.
TEST(TheoremLimits, TheLeastStepsRefuteNothing) {
  for (const double step : {1.1754944e-38, 1.2e-38}) {
    v1::Model settings = DenseSettings("tiny", 1);
    testing::SetNumber(*settings.mutable_learner(), "step_size", step);
    settings.mutable_learner()->set_bias_input(0);
    settings.set_margin_of_interest(0.1);
    LoneModel lone(settings);
    const Columns columns = Columns().AddDense({1}, 1).AddDense({-1}, -1);
    for (int64_t pass = 1; pass <= 3; ++pass) lone.Learn(columns.batch(), pass);
    const ConvergenceReport report = MakeReport(*lone.model);
    EXPECT_NE(report.margin_refuted(), true) << step;
    EXPECT_GE((report.has_margin_ceiling() ? report.margin_ceiling() : 1), 1) << step;
    EXPECT_FALSE(report.not_separable()) << step;
    if (report.has_bound_in_use()) {
      EXPECT_GT(report.bound_in_use(), 0);
      EXPECT_LE(report.bound_in_use(), 1);
    }
  }
}

TEST(TheoremLimits, XorIsProvenNotSeparableAndStaysSo) {
  v1::Model settings = DenseSettings("xor", 2);
  settings.set_margin_of_interest(0.1);
  LoneModel lone(settings);
  const Columns columns = Columns()
                              .AddDense({-1, -1}, 1)
                              .AddDense({1, 1}, 1)
                              .AddDense({-1, 1}, -1)
                              .AddDense({1, -1}, -1);
  bool proven = false;
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < 4; ++i) {
      lone.Learn(Columns()
                     .AddDense({columns.batch().values[2 * i], columns.batch().values[2 * i + 1]},
                               columns.batch().labels[i])
                     .batch());
      const ConvergenceReport report = MakeReport(*lone.model);
      EXPECT_TRUE(!proven || report.not_separable());
      EXPECT_TRUE(!proven || report.margin_refuted());
      proven = report.not_separable();
    }
    EXPECT_TRUE(proven);
  }
}

TEST_P(Theorem, TheFloorIsTheSmallestMarginOfTheFinalWeights) {
  const SeparableData data = Data(6);
  LoneModel lone(Settings());
  const Columns columns(data.examples);
  int64_t pass = 1;
  while (!lone.Learn(columns.batch(), pass).pass->converged()) ++pass;
  const std::vector<float> weights = lone.Weights(data.dimension);
  const double b = GetParam().bias_input;
  const double bias = b == 0 ? 0 : lone.Offset() / b;
  double squared = bias * bias;
  for (const float weight : weights) squared += static_cast<double>(weight) * weight;
  double smallest = 1e300;
  for (const testing::SvmExample& example : data.examples) {
    double score = bias * b;
    for (size_t i = 0; i < weights.size(); ++i)
      score += static_cast<double>(weights[i]) * example.values[i];
    smallest = std::min(smallest, example.label * score);
  }
  const ConvergenceReport report = MakeReport(*lone.model);
  EXPECT_NEAR(report.margin_floor(), smallest / std::sqrt(squared), 1e-9);
  EXPECT_NEAR(report.weight_norm(), std::sqrt(squared), 1e-9 * std::sqrt(squared));
}

TEST_P(Theorem, RefutesOnlyMarginsThatNoSeparatorHas) {
  const SeparableData data = Data(7);
  for (const double factor : {0.5, 1.0, 100.0}) {
    v1::Model settings = Settings();
    settings.set_margin_of_interest(data.margin * factor);
    LoneModel lone(settings);
    for (int64_t pass = 1; pass <= 5; ++pass) {
      lone.Learn(Columns(data.examples).batch(), pass);
      const ConvergenceReport report = MakeReport(*lone.model);
      ASSERT_TRUE(report.has_margin_refuted());
      // The set has at least data.margin.
      if (factor <= 1) {
        ASSERT_FALSE(report.margin_refuted());
      }
      ASSERT_EQ(report.margin_refuted(), report.margin_ceiling() < data.margin * factor);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Separable, Theorem,
                         ::testing::Values(Setup{2, 0.1, 1, 1}, Setup{2, 0.05, 0, 1},
                                           Setup{5, 0.1, 1, 0.1}, Setup{5, 0.1, 0, 8},
                                           Setup{20, 0.05, 0.25, 1}, Setup{20, 0.05, 4, 0.003}));

TEST(Refutation, ComesAtTheLatestWhenTheBoundIsExceeded) {
  // Exclusive or has no separator at all: any margin is refuted before (R / margin)^2 updates.
  v1::Model settings = DenseSettings("xor", 2);
  settings.set_margin_of_interest(0.5);
  LoneModel lone(settings);
  const Columns columns = Columns()
                              .AddDense({-1, -1}, 1)
                              .AddDense({1, 1}, 1)
                              .AddDense({-1, 1}, -1)
                              .AddDense({1, -1}, -1);
  const double bound = 3 / (0.5 * 0.5);
  while (lone.model->revision() <= bound) lone.Learn(columns.batch());
  EXPECT_TRUE(MakeReport(*lone.model).margin_refuted());
}

TEST(Report, SaysNothingTheTheoremDoesNotSayOfStartingWeights) {
  v1::Model settings = DenseSettings("started", 2);
  settings.set_margin_of_interest(0.1);
  v1::WeightVector& start = *settings.mutable_learner()->mutable_starting_weights()->add_vectors();
  start.add_indices(0);
  start.add_values(1);
  LoneModel lone(settings);
  const Columns columns = Columns().AddDense({1, 0.5}, 1).AddDense({-1, 0.25}, 1);
  for (int64_t pass = 1; pass <= 20; ++pass) lone.Learn(columns.batch(), pass);
  const ConvergenceReport report = MakeReport(*lone.model);
  EXPECT_GT(report.updates(), 0U);
  EXPECT_TRUE(report.last_pass().converged());
  EXPECT_FALSE(report.has_margin_ceiling());
  EXPECT_FALSE(report.has_bound_in_use());
  EXPECT_FALSE(report.has_margin_floor());
  EXPECT_FALSE(report.has_update_bound());
  EXPECT_FALSE(report.has_margin_refuted());
}

TEST(Report, OfAFreshModelClaimsNothing) {
  const LoneModel lone(DenseSettings("fresh", 2));
  const ConvergenceReport report = MakeReport(*lone.model);
  EXPECT_FALSE(report.has_progressive_error());
  EXPECT_FALSE(report.has_window_error());
  EXPECT_FALSE(report.has_margin_ceiling());
  EXPECT_FALSE(report.has_bound_in_use());
  EXPECT_FALSE(report.has_margin_floor());
  EXPECT_FALSE(report.has_margin_refuted());
  EXPECT_EQ(report.weight_norm(), 0);
}

}  // namespace
}  // namespace perceptrond
