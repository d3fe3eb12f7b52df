// What holds of every analysis, on random sets.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "tests/core/convergence/separation_checks.h"
#include "tests/support/separable.h"

namespace perceptrond {
namespace {

using testing::AnalyzeAll;
using testing::Examples;
using testing::ExpectCertified;
using testing::ExpectSolved;
using testing::MakeSeparable;
using testing::Noise;
using testing::Point;
using testing::SeparableData;

// The largest margin in the plane, by trying every direction that can be best: that of a z, or one
// across the difference of two.
double PlanarMargin(const Examples& examples, double b) {
  struct Z {
    double x, y;
  };
  std::vector<Z> points;
  for (const auto& example : examples) {
    const double y = example.values.size() > 1 ? example.values[1] : b;
    points.push_back({example.label * static_cast<double>(example.values[0]), example.label * y});
  }
  double best = -std::numeric_limits<double>::infinity();
  const auto attempt = [&](double x, double y) {
    const double length = std::hypot(x, y);
    if (length == 0) return;
    double least = std::numeric_limits<double>::infinity();
    for (const Z& z : points) least = std::min(least, (x * z.x + y * z.y) / length);
    best = std::max(best, least);
  };
  for (const Z& p : points) {
    attempt(p.x, p.y);
    for (const Z& q : points) attempt(q.y - p.y, p.x - q.x);
  }
  return best;
}

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

TEST(BruteForce, AgreesInThePlane) {
  std::mt19937 random(1);
  int separable = 0;
  int inseparable = 0;
  for (int round = 0; round < 600; ++round) {
    const bool line = round % 2 == 0;
    const double b = line ? 0.5 : 0;
    const Examples examples = Planar(random, line);
    const double margin = PlanarMargin(examples, b);
    const Analysis analysis = AnalyzeAll(examples, b);
    if (margin > 0) {
      ExpectSolved(examples, b, analysis);
      EXPECT_LE(analysis.margin_floor, margin + 1e-14);
      EXPECT_GE(analysis.margin_ceiling, margin - 1e-14);
      ++separable;
    } else {
      ExpectCertified(examples, b, analysis);
      EXPECT_LE(analysis.certificate.size(), 3U);
      ++inseparable;
    }
    ASSERT_FALSE(HasFailure()) << "round " << round << ", margin " << margin;
  }
  EXPECT_GT(separable, 100);
  EXPECT_GT(inseparable, 100);
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

TEST(Scaling, ScalesTheMargin) {
  const SeparableData data = MakeSeparable(5, 400, 6, 0.05, 0);
  const Analysis plain = AnalyzeAll(data.examples, 0);
  for (const float factor : {0x1p-30F, 0.25F, 3.0F, 1e6F}) {
    Examples scaled = data.examples;
    for (auto& example : scaled)
      for (float& value : example.values) value *= factor;
    const Analysis analysis = AnalyzeAll(scaled, 0);
    ExpectSolved(scaled, 0, analysis);
    // Products with factors that are no power of 2 are rounded to float32.
    EXPECT_NEAR(analysis.margin_floor / factor, plain.margin_floor, 1e-5 * plain.margin_floor);
  }
}

TEST(Order, OfRowsChangesNoMarginAndNoSupport) {
  const SeparableData data = MakeSeparable(6, 1500, 8, 0.02, 1);
  const Analysis plain = AnalyzeAll(data.examples, 1);
  std::vector<size_t> order(data.examples.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(7));
  Examples shuffled;
  for (const size_t i : order) shuffled.push_back(data.examples[i]);
  const Analysis analysis = AnalyzeAll(shuffled, 1);
  ExpectSolved(shuffled, 1, analysis);
  EXPECT_LE(analysis.margin_floor, plain.margin_ceiling);
  EXPECT_GE(analysis.margin_ceiling, plain.margin_floor);
  std::vector<size_t> support;
  for (const SupportVector& one : analysis.support) support.push_back(order[one.example]);
  std::sort(support.begin(), support.end());
  ASSERT_EQ(support.size(), plain.support.size());
  for (size_t k = 0; k < support.size(); ++k) EXPECT_EQ(support[k], plain.support[k].example);
}

TEST(Integers, AreEitherSeparatedOrCertified) {
  std::mt19937 random(8);
  int certified = 0;
  for (int round = 0; round < 300; ++round) {
    const uint32_t dimension = 1 + random() % 8;
    Examples examples(2 + random() % 30);
    for (auto& example : examples) {
      std::vector<float> values(dimension);
      for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 7) - 3);
      example = Point(values, random() % 2 == 0 ? 1 : -1);
    }
    const double b = round % 3;
    const Analysis analysis = AnalyzeAll(examples, b);
    if (analysis.separability == Separability::kSeparable) {
      ExpectSolved(examples, b, analysis);
    } else {
      ExpectCertified(examples, b, analysis);
      EXPECT_LE(analysis.certificate.size(), dimension + 2);
      ++certified;
    }
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
  EXPECT_GT(certified, 100);
  EXPECT_LT(certified, 300);
}

TEST(RandomLabels, OnFullFloatsAreCertifiedInThousandsOfDigits) {
  const Examples examples = Noise(9, 400, 60);
  const Analysis analysis = AnalyzeAll(examples, 1);
  ExpectCertified(examples, 1, analysis);
  EXPECT_EQ(analysis.certificate.size(), 62U);
  EXPECT_GT(analysis.certificate[0].multiplier.size(), 300U);
}

}  // namespace
}  // namespace perceptrond
