// Properties of every analysis, of two labels and of several classes, on random sets.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tests/core/convergence/separation_checks.h"
#include "tests/support/class_examples.h"
#include "tests/support/separable.h"

namespace perceptrond::separation_property_test {
namespace {

using testing::AnalyzeAll;
using testing::DrawClasses;
using testing::DrawnClasses;
using testing::Examples;
using testing::ExpectCertified;
using testing::ExpectSolved;
using testing::MakeSeparable;
using testing::Noise;
using testing::Point;
using testing::Problem;
using testing::SeparableData;
using testing::SvmExample;

// Random points of the plane, or of the line where an offset makes a plane of it.
Examples Planar(std::mt19937& random, bool line) {
  std::normal_distribution<float> normal;
  std::bernoulli_distribution flip(0.1);
  Examples examples;
  const size_t count = 1 + random() % 12;
  const float shift = normal(random);
  for (size_t i = 0; i < count; ++i) {
    const float x = normal(random);
    const float score = x + shift * (line ? 1 : normal(random));
    const int label = (score > 0) != flip(random) ? 1 : -1;
    examples.push_back(line ? Point({x}, label) : Point({x, score - x}, label));
  }
  return examples;
}

// Whatever it says is checked exactly: a separator's margin, a support's ceiling within the gap, a
// certificate's sum. So it is enough that each set gets one of them.
bool IsSolved(const Examples& examples, const Problem& problem) {
  const Analysis analysis = AnalyzeAll(examples, problem);
  const bool separable = analysis.separability == Separability::kSeparable;
  if (separable) {
    ExpectSolved(examples, problem, analysis);
  } else {
    ExpectCertified(examples, problem, analysis);
    const size_t columns = (examples[0].values.size() + 1) * std::max(problem.classes, 1U);
    EXPECT_LE(analysis.certificate.size(), columns + 1);
  }
  return separable;
}

TEST(RandomSets, AreEitherSeparatedOrCertified) {
  std::mt19937 random(1);
  int separable[3] = {};
  for (uint32_t round = 0; round < 600 && !HasFailure(); ++round) {
    SCOPED_TRACE(round);
    const bool line = round % 2 == 0;
    separable[0] += IsSolved(Planar(random, line), line ? 0.5 : 0) ? 1 : 0;
    // Whole numbers, of which many are equal.
    Examples whole(2 + random() % 30);
    const uint32_t dimension = 1 + random() % 8;
    for (auto& example : whole) {
      std::vector<float> values(dimension);
      for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 7) - 3);
      example = Point(values, random() % 2 == 0 ? 1 : -1);
    }
    separable[1] += IsSolved(whole, round % 3) ? 1 : 0;
    const DrawnClasses drawn{2 + round % 4, 1 + round % 3, 3 + round % 11, line ? 1.0 : 0.5, -1};
    separable[2] += IsSolved(DrawClasses(round, drawn), {drawn.b, drawn.classes}) ? 1 : 0;
  }
  for (const int count : separable) {
    EXPECT_GT(count, 60);
    EXPECT_LT(count, 540);
  }
}

// Each feature in a unit of its own, from a millionth to a million.
TEST(RandomSets, AreDecidedWhateverTheUnitsOfTheirFeatures) {
  std::mt19937 random(27);
  std::uniform_real_distribution<float> exponent(-6, 6);
  int separable = 0;
  for (uint32_t round = 0; round < 200 && !HasFailure(); ++round) {
    SCOPED_TRACE(round);
    const DrawnClasses drawn{2 + round % 3, 2 + round % 3, 5 + round % 20, 1, -1};
    Examples examples = round % 2 == 0 ? Planar(random, false) : DrawClasses(round, drawn);
    const Problem problem(round % 3, round % 2 == 0 ? 0 : drawn.classes);
    for (size_t feature = 0; feature < examples[0].values.size(); ++feature) {
      const float unit = std::pow(10.0F, exponent(random));
      for (SvmExample& example : examples) example.values[feature] *= unit;
    }
    int calls = 0;
    AnalysisOptions options;
    options.bias_input = problem.b;
    options.classes = problem.classes;
    const Analysis analysis = Analyze(testing::RowsOf(examples), options,
                                      [&](const AnalysisProgress&) { return ++calls <= 100; });
    testing::ExpectDecided(examples, problem, analysis);
    separable += analysis.separability == Separability::kSeparable ? 1 : 0;
  }
  EXPECT_GT(separable, 20);
  EXPECT_LT(separable, 180);
}

struct Planted {
  size_t count;
  uint32_t dimension;
  double margin;
  double b;
};

TEST(PlantedMargin, LiesBelowTheCeilingAndIsNearlyReachedByTheFloor) {
  uint32_t seed = 1;
  for (const Planted& one :
       {Planted{50, 2, 0.1, 1}, Planted{300, 5, 0.05, 0}, Planted{2000, 20, 0.05, 0.25},
        Planted{3000, 3, 0.001, 1}, Planted{400, 200, 0.01, 4}}) {
    const SeparableData data = MakeSeparable(seed++, one.count, one.dimension, one.margin, one.b);
    const Analysis analysis = AnalyzeAll(data.examples, one.b);
    ExpectSolved(data.examples, one.b, analysis);
    EXPECT_GE(analysis.margin_ceiling, data.margin);
    // The gap at most: what was planted is one separator's.
    EXPECT_GE(analysis.margin_floor, data.margin * (1 - 1e-6));
    EXPECT_DOUBLE_EQ(analysis.radius, std::sqrt(data.squared_radius));
  }
}

TEST(RandomLabels, OnFullFloatsAreCertifiedInThousandsOfDigits) {
  const Examples examples = Noise(9, 400, 60);
  const Analysis analysis = AnalyzeAll(examples, 1);
  ExpectCertified(examples, 1, analysis);
  EXPECT_EQ(analysis.certificate.size(), 62U);
  EXPECT_GT(analysis.certificate[0].multiplier.size(), 300U);
}

}  // namespace
}  // namespace perceptrond::separation_property_test
