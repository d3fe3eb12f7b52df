// Analyses of several classes: Kesler's construction, against margins solved by hand, against a
// solver written here, and against runs of the perceptron.
#include <cmath>
#include <limits>
#include <random>

#include "tests/core/convergence/separation_checks.h"
#include "tests/support/class_examples.h"
#include "tests/support/shared_data.h"

namespace perceptrond {
namespace {

using testing::AnalyzeAll;
using testing::AnalyzeWith;
using testing::DrawClasses;
using testing::DrawnClasses;
using testing::Examples;
using testing::ExpectCeiling;
using testing::ExpectCertified;
using testing::ExpectSeparates;
using testing::ExpectSolved;
using testing::GoOn;
using testing::Point;
using testing::Problem;
using testing::RowsOf;
using testing::SvmExample;

void ExpectClassMargin(const Analysis& analysis, double margin) {
  EXPECT_LE(analysis.margin_floor, margin * (1 + 1e-15));
  EXPECT_GE(analysis.margin_ceiling, margin * (1 - 1e-15));
}

// Two labels as classes: -1 becomes 0.
Examples AsClasses(Examples examples) {
  for (SvmExample& one : examples) one.label = one.label > 0 ? 1 : 0;
  return examples;
}

const Examples kTwoLabels = {Point({1}, 1), Point({2}, 1), Point({3}, -1), Point({4}, -1)};
const Examples kExclusiveOr = {Point({-1, -1}, 1), Point({1, 1}, 1), Point({-1, 1}, -1),
                               Point({1, -1}, -1)};

TEST(ClassesWorked, AnAxisForEachClassHasTheIdentityForSeparator) {
  // W = I - 1/3 has the norm sqrt(2), and every s_y - s_r is 1.
  const Examples axes = {Point({1, 0, 0}, 0), Point({0, 1, 0}, 1), Point({0, 0, 1}, 2)};
  const Analysis analysis = AnalyzeAll(axes, {0, 3});
  ExpectSolved(axes, {0, 3}, analysis);
  ExpectClassMargin(analysis, std::sqrt(0.5));
  EXPECT_NEAR(analysis.update_bound, 4, 1e-5);
  EXPECT_EQ(analysis.support.size(), 6U);
  for (size_t k = 0; k < 3; ++k) {
    const WeightVector& one = analysis.separator->vectors[k];
    ASSERT_EQ(one.weights.size(), 3U);
    for (const FeatureWeight& weight : one.weights)
      EXPECT_NEAR(weight.weight, (weight.index == k ? 2 : -1) / std::sqrt(18.0), 1e-6);
    EXPECT_EQ(one.bias_weight, 0);
  }
}

TEST(ClassesWorked, TwoClassesHaveTheMarginOfTwoLabelsTimesTheRootOfTwoAndTheSameUpdateBound) {
  const Examples classes = AsClasses(kTwoLabels);
  const Analysis analysis = AnalyzeAll(classes, {1, 2});
  ExpectSolved(classes, {1, 2}, analysis);
  ExpectClassMargin(analysis, std::sqrt(2 / 29.0));
  EXPECT_DOUBLE_EQ(analysis.radius, std::sqrt(17.0));
  EXPECT_NEAR(analysis.update_bound, 493.0, 0.05);
  ASSERT_EQ(analysis.support.size(), 2U);
  EXPECT_EQ(analysis.support[0].example, 1U);
  EXPECT_EQ(analysis.support[0].rival, 0);
  EXPECT_EQ(analysis.support[1].example, 2U);
  EXPECT_EQ(analysis.support[1].rival, 1);
}

TEST(ClassesWorked, XorIsNotSeparableAsTwoOfSeveralClasses) {
  const Examples classes = AsClasses(kExclusiveOr);
  for (const uint32_t k : {2U, 3U, 7U}) {
    for (const double b : {0.0, 1.0, 0.1}) {
      const Analysis analysis = AnalyzeAll(classes, {b, k});
      ExpectCertified(classes, {b, k}, analysis);
      // Through the origin two opposite points of one class are enough.
      ASSERT_EQ(analysis.certificate.size(), b == 0 ? 2U : 4U);
      for (const CertificateEntry& entry : analysis.certificate) {
        EXPECT_EQ(entry.multiplier, "1");
        EXPECT_EQ(entry.rival, 1 - classes[entry.example].label);
      }
    }
  }
}

TEST(ClassesWorked, OnALineAClassBetweenTheTwoOthersIsSeparableAndAClassInsideAnotherIsNot) {
  const Examples between = {Point({1}, 0), Point({2}, 1), Point({3}, 2)};
  ExpectSolved(between, {1, 3}, AnalyzeAll(between, {1, 3}));
  const Examples inside = {Point({1}, 0), Point({2}, 1), Point({3}, 0), Point({9}, 2)};
  const Analysis analysis = AnalyzeAll(inside, {1, 3});
  ExpectCertified(inside, {1, 3}, analysis);
  ASSERT_EQ(analysis.certificate.size(), 3U);
  EXPECT_EQ(analysis.certificate[1].example, 1U);
  EXPECT_EQ(analysis.certificate[1].multiplier, "2");
}

TEST(ClassesEdge, AClassWithoutAnExampleIsARivalToo) {
  const Examples two = {Point({1, 0}, 0), Point({0, 1}, 1)};
  const Analysis without = AnalyzeAll(two, {0, 2});
  ExpectSolved(two, {0, 2}, without);
  ExpectClassMargin(without, 1);
  const Analysis with = AnalyzeAll(two, {0, 3});
  ExpectSolved(two, {0, 3}, with);
  EXPECT_LT(with.margin_ceiling, 1);
}

TEST(ClassesEdge, OneClassHasNothingToSeparate) {
  const Analysis analysis = AnalyzeAll({Point({1}, 0)}, {1, 1});
  EXPECT_EQ(analysis.end, AnalysisEnd::kNoRows);
  EXPECT_EQ(analysis.separability, Separability::kUndecided);
}

TEST(ClassesEdge, ContradictionsAndZeroRowsAreCertified) {
  const Examples contradiction = {Point({1, 2}, 0), Point({3, 1}, 1), Point({1, 2}, 2)};
  const Analysis pair = AnalyzeAll(contradiction, {1, 4});
  ExpectCertified(contradiction, {1, 4}, pair);
  EXPECT_EQ(pair.certificate.size(), 2U);
  const Examples zero = {Point({1, 2}, 0), Point({0, 0}, 1)};
  const Analysis one = AnalyzeAll(zero, {0, 3});
  ExpectCertified(zero, {0, 3}, one);
  EXPECT_EQ(one.certificate.size(), 1U);
}

TEST(ClassesEdge, MoreWeightsThanAllowedAreNotAnalyzed) {
  const Examples examples = {Point({1, 0}, 0), Point({0, 1}, 1)};
  AnalysisOptions options;
  options.classes = 10;
  options.max_weights = 29;
  const Analysis analysis = AnalyzeWith(examples, options);
  EXPECT_EQ(analysis.end, AnalysisEnd::kTooManyWeights);
  EXPECT_EQ(analysis.separability, Separability::kUndecided);
  EXPECT_TRUE(std::isinf(analysis.margin_ceiling));
  options.max_weights = 30;
  EXPECT_EQ(AnalyzeWith(examples, options).separability, Separability::kSeparable);
}

// The rows of Kesler's construction, written out.
std::vector<std::vector<double>> Expand(const Examples& examples, const Problem& problem) {
  std::vector<std::vector<double>> rows;
  for (const SvmExample& example : examples) {
    const size_t width = example.values.size() + 1;
    for (uint32_t r = 0; r < problem.classes; ++r) {
      if (static_cast<int>(r) == example.label) continue;
      auto& z = rows.emplace_back(width * problem.classes);
      for (size_t j = 0; j < width; ++j) {
        const double x = j + 1 < width ? example.values[j] : problem.b;
        z[example.label * width + j] = x;
        z[r * width + j] = -x;
      }
    }
  }
  return rows;
}

double DotOf(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t j = 0; j < a.size(); ++j) sum += a[j] * b[j];
  return sum;
}

struct Bounds {
  double lower = 0;
  double upper = 0;
};

// The nearest point of the rows' hull to 0, by the exchange of two rows at a time (Mitchell,
// Demyanov, Malozemov 1974): another method, on the rows written out.
Bounds NearestByExchange(const std::vector<std::vector<double>>& rows) {
  std::vector<double> multipliers(rows.size());
  multipliers[0] = 1;
  std::vector<double> v = rows[0];
  Bounds bounds;
  for (int step = 0; step < 20000; ++step) {
    size_t lowest = 0;
    size_t highest = 0;
    std::vector<double> scores;
    for (const auto& z : rows) scores.push_back(DotOf(z, v));
    for (size_t i = 0; i < rows.size(); ++i) {
      if (scores[i] < scores[lowest]) lowest = i;
      if (multipliers[i] > 0 && (multipliers[highest] <= 0 || scores[i] > scores[highest]))
        highest = i;
    }
    bounds = {scores[lowest] / std::sqrt(DotOf(v, v)), std::sqrt(DotOf(v, v))};
    if (bounds.upper < 1e-9 || bounds.upper - bounds.lower < 1e-6 * bounds.upper) break;
    std::vector<double> across = rows[highest];
    for (size_t j = 0; j < across.size(); ++j) across[j] -= rows[lowest][j];
    const double length =
        std::min(multipliers[highest], (scores[highest] - scores[lowest]) / DotOf(across, across));
    multipliers[highest] -= length;
    multipliers[lowest] += length;
    for (size_t j = 0; j < v.size(); ++j) v[j] -= length * across[j];
  }
  return bounds;
}

TEST(ClassesReference, AnotherSolverOnTheWrittenOutRowsAgrees) {
  int separable = 0;
  int inseparable = 0;
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    const DrawnClasses drawn{2 + seed % 4, 1 + seed % 3, 3 + seed % 11, seed % 2 == 0 ? 1.0 : 0.5,
                             -1};
    const Examples examples = DrawClasses(seed, drawn);
    const Problem problem{drawn.b, drawn.classes};
    const Bounds bounds = NearestByExchange(Expand(examples, problem));
    const Analysis analysis = AnalyzeAll(examples, problem);
    if (analysis.separability == Separability::kSeparable) {
      ExpectSolved(examples, problem, analysis);
      EXPECT_LE(analysis.margin_floor, bounds.upper * (1 + 1e-9));
      EXPECT_GE(analysis.margin_ceiling, bounds.lower * (1 - 1e-9));
      ++separable;
    } else {
      ExpectCertified(examples, problem, analysis);
      EXPECT_LE(bounds.lower, 1e-9);
      ++inseparable;
    }
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(separable, 20);
  EXPECT_GT(inseparable, 20);
}

TEST(ClassesReference, TheSameRowsWithTwoLabelsHaveTheSameMargin) {
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    const DrawnClasses drawn{3 + seed % 5, 4, 150, seed % 2 == 0 ? 1.0 : 0.0, 0.05};
    const Examples examples = DrawClasses(seed, drawn);
    const Problem problem{drawn.b, drawn.classes};
    Examples expanded;
    for (const std::vector<double>& z : Expand(examples, problem))
      expanded.push_back(Point({z.begin(), z.end()}, 1));
    const Analysis analysis = AnalyzeAll(examples, problem);
    const Analysis two_labels = AnalyzeAll(expanded, 0);
    ExpectSolved(examples, problem, analysis);
    EXPECT_GE(analysis.margin_ceiling, drawn.margin);
    EXPECT_NEAR(analysis.margin_floor, two_labels.margin_floor, 2e-6 * two_labels.margin_floor);
    EXPECT_NEAR(analysis.update_bound, two_labels.update_bound, 1e-5 * two_labels.update_bound);
  }
}

// Updates of the perceptron of several classes until a pass changes nothing.
size_t UpdatesOfAPerceptron(const Examples& examples, const Problem& problem) {
  const size_t width = examples[0].values.size() + 1;
  std::vector<std::vector<double>> w(problem.classes, std::vector<double>(width));
  size_t updates = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (const SvmExample& example : examples) {
      std::vector<double> x(example.values.begin(), example.values.end());
      x.push_back(problem.b);
      const double own = DotOf(w[example.label], x);
      int rival = -1;
      double most = -std::numeric_limits<double>::infinity();
      for (int k = 0; k < static_cast<int>(problem.classes); ++k) {
        if (k != example.label && DotOf(w[k], x) > most) most = DotOf(w[rival = k], x);
      }
      if (own > most) continue;
      changed = true;
      ++updates;
      for (size_t j = 0; j < width; ++j) {
        w[example.label][j] += x[j];
        w[rival][j] -= x[j];
      }
    }
  }
  return updates;
}

TEST(ClassesTheorem, NoRunOfThePerceptronExceedsTheUpdateBound) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const DrawnClasses drawn{2 + seed % 6, 2 + seed % 5, 100, seed % 3 * 0.5, 0.03};
    Examples examples = DrawClasses(seed, drawn);
    const Problem problem{drawn.b, drawn.classes};
    const Analysis analysis = AnalyzeAll(examples, problem);
    ExpectSolved(examples, problem, analysis);
    std::mt19937 random(seed);
    for (int order = 0; order < 3; ++order) {
      std::shuffle(examples.begin(), examples.end(), random);
      EXPECT_LE(UpdatesOfAPerceptron(examples, problem), analysis.update_bound);
    }
  }
}

TEST(ClassesControl, CancellingAtAnyCallEndsWithTrueBounds) {
  const DrawnClasses drawn{12, 40, 600, 1, 0.005};
  const Examples examples = DrawClasses(3, drawn);
  const Problem problem{drawn.b, drawn.classes};
  const auto rows = RowsOf(examples);
  AnalysisOptions options;
  options.bias_input = drawn.b;
  options.classes = drawn.classes;
  int calls = 0;
  AnalysisProgress last;
  last.margin_ceiling = std::numeric_limits<double>::infinity();
  const Analysis whole = Analyze(rows, options, [&](const AnalysisProgress& now) {
    EXPECT_GE(now.margin_floor, last.margin_floor);
    EXPECT_LE(now.margin_ceiling, last.margin_ceiling);
    last = now;
    return ++calls > 0;
  });
  ExpectSolved(examples, problem, whole);
  ASSERT_GT(calls, 3);
  for (int at = 1; at <= calls; at += 1 + calls / 10) {
    int left = at;
    const Analysis analysis =
        Analyze(rows, options, [&](const AnalysisProgress&) { return --left > 0; });
    ASSERT_EQ(left, 0) << "called again after it cancelled";
    EXPECT_EQ(analysis.end, AnalysisEnd::kCancelled);
    EXPECT_GE(analysis.margin_ceiling, whole.margin_floor);
    EXPECT_LE(analysis.margin_floor, whole.margin_ceiling);
    if (analysis.separator) ExpectSeparates(examples, problem, *analysis.separator);
    if (!analysis.support.empty()) ExpectCeiling(examples, problem, analysis);
  }
}

TEST(ClassesRealSet, OfDigitsIsDecided) {
  const auto path = testing::FindSharedData("digits_mc.train");
  if (!path) GTEST_SKIP() << "digits_mc.train is not there: set PERCEPTROND_DATA";
  const testing::SvmData data = testing::ReadSvmlightClasses(*path);
  const Problem problem{1, 10};
  const Analysis analysis = AnalyzeAll(data.examples, problem);
  ExpectSolved(data.examples, problem, analysis);
}

}  // namespace
}  // namespace perceptrond
