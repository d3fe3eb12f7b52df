// The convergence theorem, for two labels and for several classes: the report of each rule that it
// holds of, on data whose margin is known because they were built with it.
#include <cmath>
#include <limits>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/class_examples.h"
#include "tests/support/learners.h"
#include "tests/support/models.h"
#include "tests/support/separable.h"

namespace perceptrond::theorem_test {
namespace {

using testing::Columns;
using testing::DenseSettings;
using testing::LoneModel;
using testing::SvmExample;
namespace v1 = ::perceptron::v1;

// Float32 weights round: by so much may a figure miss what the theorem says of exact ones.
constexpr double kSlack = 1e-5;
constexpr size_t kExamples = 300;

struct Built {
  // 0: two labels.
  uint32_t classes;
  uint32_t dimension;
  double margin;
  double bias_input;
  double step_size;
};

void PrintTo(const Built& setup, std::ostream* out) {
  *out << "K=" << setup.classes << " d=" << setup.dimension << " margin=" << setup.margin
       << " b=" << setup.bias_input << " eta=" << setup.step_size;
}

class Theorem : public ::testing::TestWithParam<Built> {
 protected:
  static v1::Model Settings(const std::string& learner = "perceptron") {
    v1::Model settings = DenseSettings("separable", GetParam().dimension);
    testing::SetLearner(*settings.mutable_learner(), learner);
    settings.mutable_learner()->set_bias_input(GetParam().bias_input);
    testing::SetNumber(*settings.mutable_learner(), "step_size", GetParam().step_size);
    if (GetParam().classes > 0)
      settings.mutable_learner()->mutable_classes()->set_max_classes(GetParam().classes);
    return settings;
  }
  // A vector of norm 1 separates them with the margin at least.
  static std::vector<SvmExample> Data(uint32_t seed) {
    const Built& setup = GetParam();
    if (setup.classes > 0)
      return testing::DrawClasses(
          seed, {setup.classes, setup.dimension, kExamples, setup.bias_input, setup.margin});
    return testing::MakeSeparable(seed, kExamples, setup.dimension, setup.margin, setup.bias_input)
        .examples;
  }
  // Max ||x||^2 + b^2.
  static double SquaredRadius(const std::vector<SvmExample>& examples) {
    double largest = 0;
    for (const SvmExample& example : examples) {
      double square = GetParam().bias_input * GetParam().bias_input;
      for (const float value : example.values) square += static_cast<double>(value) * value;
      largest = std::max(largest, square);
    }
    return largest;
  }
  // The long vectors of several classes have twice the square.
  static double Blocks() { return GetParam().classes > 0 ? 2 : 1; }
};

TEST_P(Theorem, HoldsAtEveryMomentOfTheRun) {
  const double margin = GetParam().margin;
  for (const std::string learner :
       {"perceptron", "averaged-perceptron", "pocket-perceptron", "voted-perceptron"}) {
    for (uint32_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE(learner + ", seed " + std::to_string(seed));
      const std::vector<SvmExample> examples = Data(seed);
      const double squared_radius = SquaredRadius(examples);
      const double bound = Blocks() * squared_radius / (margin * margin);
      LoneModel lone(Settings(learner));
      bool converged = false;
      for (int64_t pass = 1; !converged; ++pass) {
        ASSERT_LE(pass, static_cast<int64_t>(bound) + 1);
        // Ten stretches a pass, so that the report is looked at in the middle of things.
        for (size_t at = 0; at < kExamples; at += 30) {
          const bool last = at + 30 == kExamples;
          const LearnOutcome outcome =
              lone.Learn(Columns(examples, at, at + 30).batch(), last ? pass : 0);
          const ConvergenceReport report = MakeReport(*lone.model);
          const auto k = static_cast<double>(report.updates());
          const double norm = report.weight_norm() / GetParam().step_size;
          ASSERT_LE(k, bound);
          ASSERT_TRUE(report.has_margin_ceiling());
          ASSERT_GE(report.margin_ceiling(), margin * (1 - kSlack));
          // A ceiling allows for the rounding of steps that float32 does not hold.
          ASSERT_LE(report.margin_ceiling(), norm / k * (1 + 10 * kSlack));
          ASSERT_TRUE(report.has_bound_in_use());
          ASSERT_GT(report.bound_in_use(), 0);
          ASSERT_LE(report.bound_in_use(), 1 + kSlack);
          ASSERT_NEAR(report.bound_in_use(),
                      norm * norm / (k * Blocks() * report.radius() * report.radius()), kSlack);
          if (last) converged = outcome.pass->converged();
        }
      }
      const ConvergenceReport report = MakeReport(*lone.model);
      EXPECT_NEAR(report.radius() * report.radius(), squared_radius, 1e-9 * squared_radius);
      ASSERT_TRUE(report.has_margin_floor());
      EXPECT_GT(report.margin_floor(), 0);
      EXPECT_LE(report.margin_floor(), report.margin_ceiling() * (1 + kSlack));
      ASSERT_TRUE(report.has_update_bound());
      EXPECT_GE(report.update_bound(), report.updates());
      EXPECT_NEAR(report.update_bound(),
                  Blocks() * squared_radius / (report.margin_floor() * report.margin_floor()),
                  1e-9 * report.update_bound());
    }
  }
}

TEST_P(Theorem, TheFloorIsTheSmallestMarginOfTheFinalWeights) {
  const std::vector<SvmExample> examples = Data(6);
  LoneModel lone(Settings());
  int64_t pass = 1;
  while (!lone.Learn(Columns(examples).batch(), pass).pass->converged()) ++pass;
  const double b = GetParam().bias_input;
  // By class, the bias weight last; of two labels one, the other's score is 0.
  std::vector<std::vector<double>> weights;
  double squared = 0;
  for (const WeightList& list : ListWeights(*lone.model)) {
    std::vector<double>& w = weights.emplace_back(GetParam().dimension + 1);
    for (size_t i = 0; i < list.indices.size(); ++i) w[list.indices[i]] = list.values[i];
    w.back() = b == 0 ? 0 : list.bias / b;
    for (const double weight : w) squared += weight * weight;
  }
  double smallest = std::numeric_limits<double>::infinity();
  for (const SvmExample& example : examples) {
    std::vector<double> scores;
    for (const std::vector<double>& w : weights) {
      scores.push_back(w.back() * b);
      for (size_t i = 0; i < example.values.size(); ++i) scores.back() += w[i] * example.values[i];
    }
    if (scores.size() == 1) smallest = std::min(smallest, example.label * scores[0]);
    for (size_t k = 0; scores.size() > 1 && k < scores.size(); ++k) {
      if (static_cast<int>(k) != example.label)
        smallest = std::min(smallest, scores[example.label] - scores[k]);
    }
  }
  const ConvergenceReport report = MakeReport(*lone.model);
  const double tolerance = GetParam().classes > 0 ? 1e-6 : 1e-9;
  EXPECT_NEAR(report.margin_floor(), smallest / std::sqrt(squared), tolerance);
  EXPECT_NEAR(report.weight_norm(), std::sqrt(squared), tolerance * std::sqrt(squared));
}

TEST_P(Theorem, RefutesOnlyMarginsThatNoSeparatorHas) {
  const std::vector<SvmExample> examples = Data(7);
  for (const double factor : {0.5, 1.0, 100.0}) {
    v1::Model settings = Settings();
    settings.set_margin_of_interest(GetParam().margin * factor);
    LoneModel lone(settings);
    for (int64_t pass = 1; pass <= 5; ++pass) {
      lone.Learn(Columns(examples).batch(), pass);
      const ConvergenceReport report = MakeReport(*lone.model);
      ASSERT_TRUE(report.has_margin_refuted());
      // The set has at least that margin.
      if (factor <= 1) {
        ASSERT_FALSE(report.margin_refuted());
      }
      ASSERT_EQ(report.margin_refuted(), report.margin_ceiling() < GetParam().margin * factor);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Separable, Theorem,
                         ::testing::Values(Built{0, 2, 0.1, 1, 1}, Built{0, 2, 0.05, 0, 1},
                                           Built{0, 5, 0.1, 1, 0.1}, Built{0, 5, 0.1, 0, 8},
                                           Built{0, 20, 0.05, 0.25, 1},
                                           Built{0, 20, 0.05, 4, 0.003}, Built{4, 6, 0.2, 0, 1},
                                           Built{4, 6, 0.2, 1, 1}, Built{4, 6, 0.2, 0.5, 1}));

const Columns& Xor(bool classes) {
  static const Columns columns[] = {Columns()
                                        .AddDense({-1, -1}, 1)
                                        .AddDense({1, 1}, 1)
                                        .AddDense({-1, 1}, -1)
                                        .AddDense({1, -1}, -1),
                                    Columns()
                                        .AddDense({-1, -1}, 1)
                                        .AddDense({1, 1}, 1)
                                        .AddDense({-1, 1}, 0)
                                        .AddDense({1, -1}, 0)};
  return columns[classes ? 1 : 0];
}

// As two labels and as two classes: each pass makes updates whose sum is exactly zero.
TEST(TheoremLimits, XorIsProvenNotSeparableAndStaysSo) {
  for (const uint32_t classes : {0U, 2U}) {
    v1::Model settings = DenseSettings("xor", 2);
    settings.set_margin_of_interest(0.1);
    if (classes > 0) settings.mutable_learner()->mutable_classes()->set_max_classes(classes);
    LoneModel lone(settings);
    const Batch batch = Xor(classes > 0).batch();
    bool proven = false;
    for (size_t n = 0; n < 12; ++n) {
      const size_t i = n % 4;
      lone.Learn(Columns()
                     .AddDense({batch.values[2 * i], batch.values[2 * i + 1]}, batch.labels[i])
                     .batch());
      const ConvergenceReport report = MakeReport(*lone.model);
      EXPECT_TRUE(!proven || report.not_separable());
      EXPECT_TRUE(!proven || report.margin_refuted());
      proven = report.not_separable();
      if (i != 3) continue;
      EXPECT_TRUE(proven);
      EXPECT_EQ(report.weight_norm(), 0);
      EXPECT_EQ(report.state(), v1::CONVERGENCE_STATE_NOT_SEPARABLE);
      EXPECT_FALSE(report.has_margin_floor());
    }
  }
}

// Exclusive or has no separator at all: any margin is refuted before (R / margin)^2 updates.
TEST(TheoremLimits, ARefutationComesAtTheLatestWhenTheBoundIsExceeded) {
  v1::Model settings = DenseSettings("xor", 2);
  settings.set_margin_of_interest(0.5);
  LoneModel lone(settings);
  const double bound = 3 / (0.5 * 0.5);
  while (lone.model->revision() <= bound) lone.Learn(Xor(false).batch());
  EXPECT_TRUE(MakeReport(*lone.model).margin_refuted());
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

void ExpectNothingClaimed(const ConvergenceReport& report) {
  EXPECT_FALSE(report.has_margin_ceiling());
  EXPECT_FALSE(report.has_bound_in_use());
  EXPECT_FALSE(report.has_margin_floor());
  EXPECT_FALSE(report.has_update_bound());
  EXPECT_FALSE(report.has_margin_refuted());
  EXPECT_FALSE(report.has_not_separable());
}

TEST(TheoremLimits, NothingIsClaimedWhereTheTheoremSaysNothing) {
  v1::Model settings = DenseSettings("started", 2);
  settings.set_margin_of_interest(0.1);
  v1::Model started = settings;
  testing::StartingVector(*started.mutable_learner()).add_indices(0);
  testing::StartingVector(*started.mutable_learner()).add_values(1);
  settings.mutable_learner()->mutable_classes()->set_max_classes(4);
  v1::Model appearing = settings;
  appearing.mutable_learner()->mutable_classes()->set_new_classes(
      v1::Classes::NEW_CLASSES_NUMBERED);
  v1::Model weighted = settings;
  for (int k = 0; k < 4; ++k) weighted.mutable_learner()->add_class_weights(1 + k);
  v1::Model other = settings;
  other.mutable_learner()->mutable_passive_aggressive();
  for (const v1::Model& one : {started, appearing, weighted, other}) {
    LoneModel lone(one);
    const Columns columns = Columns().AddDense({1, 0.5}, 1).AddDense({-1, 0.25}, 1);
    for (int64_t pass = 1; pass <= 20; ++pass) lone.Learn(columns.batch(), pass);
    const ConvergenceReport report = MakeReport(*lone.model);
    EXPECT_GT(report.updates(), 0U);
    EXPECT_TRUE(report.last_pass().converged() || one.learner().has_passive_aggressive());
    ExpectNothingClaimed(report);
  }
}

TEST(TheoremLimits, AFreshModelClaimsNothing) {
  const ConvergenceReport report = MakeReport(*LoneModel(DenseSettings("fresh", 2)).model);
  EXPECT_FALSE(report.has_progressive_error());
  EXPECT_FALSE(report.has_window_error());
  EXPECT_FALSE(report.has_margin_ceiling());
  EXPECT_FALSE(report.has_bound_in_use());
  EXPECT_FALSE(report.has_margin_floor());
  EXPECT_FALSE(report.has_margin_refuted());
  EXPECT_EQ(report.weight_norm(), 0);
}

}  // namespace
}  // namespace perceptrond::theorem_test
