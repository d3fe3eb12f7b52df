#include "core/features/fourier.h"

#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "core/features/names.h"
#include "tests/core/features/mapping.h"

namespace perceptrond {
namespace {

using testing::Columns;
using testing::NamedColumns;
using testing::Values;
using Kind = FeatureSpace::Kind;

constexpr uint32_t kInputs = 8;

FeatureSpace Space(uint32_t dimension, uint64_t seed = 1, double gamma = 0.25,
                   Kind kind = Kind::kDense, uint32_t size = kInputs) {
  return testing::Fourier(kind, size, dimension, gamma, seed);
}

double Inner(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

double SquaredDistance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return sum;
}

// How far inner products are from the kernel: over all pairs of 40 points, near and far.
struct Errors {
  double root_mean_square = 0;
  double largest = 0;
};

Errors KernelErrors(const FeatureSpace& space) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 0.7F);
  std::vector<std::vector<float>> points(40, std::vector<float>(kInputs));
  for (size_t i = 0; i < points.size(); ++i) {
    for (float& value : points[i]) value = normal(random) * static_cast<float>(i + 1) / 40;
  }
  std::vector<std::vector<float>> mapped;
  for (const auto& point : points)
    mapped.push_back(Values(space, Columns().AddDense(point, 1).batch()));
  Errors errors;
  int pairs = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    for (size_t j = 0; j <= i; ++j, ++pairs) {
      const double kernel = std::exp(-space.map.gamma * SquaredDistance(points[i], points[j]));
      const double error = std::abs(Inner(mapped[i], mapped[j]) - kernel);
      errors.root_mean_square += error * error;
      errors.largest = std::max(errors.largest, error);
    }
  }
  errors.root_mean_square = std::sqrt(errors.root_mean_square / pairs);
  return errors;
}

// The standard deviation of a pair is at most 1 / sqrt(D), so that of 820 pairs few leave 3 of them.
TEST(Fourier, ApproximatesTheKernelWithinABoundThatShrinksAsTheRootOfTheDimension) {
  for (const double gamma : {0.05, 0.25, 2.0}) {
    for (const uint32_t dimension : {64U, 256U, 1024U, 4096U}) {
      double mean_square = 0;
      for (const uint64_t seed : {1U, 2U, 3U, 4U}) {
        const Errors errors = KernelErrors(Space(dimension, seed, gamma));
        EXPECT_LT(errors.largest, 4.5 / std::sqrt(dimension)) << dimension << " " << seed;
        mean_square += errors.root_mean_square * errors.root_mean_square / 4;
      }
      EXPECT_LT(std::sqrt(mean_square), 1 / std::sqrt(dimension)) << dimension;
    }
  }
}

// The banner's recipe, step by step.
TEST(Fourier, DrawsItsNumbersAsDocumented) {
  const FeatureSpace space = Space(3, 0x0102030405060708U, 0.5);
  const float x = 0.75F;
  const std::vector<float> mapped = Values(space, Columns().Add({6}, {x}, 1).batch());
  const auto bytes = [](std::vector<uint64_t> numbers) {
    std::string all;
    for (uint64_t number : numbers) {
      for (int i = 0; i < 8; ++i, number /= 256) all.push_back(static_cast<char>(number % 256));
    }
    return all;
  };
  for (uint64_t i = 0; i < 3; ++i) {
    const uint64_t bits = HashName(bytes({space.map.seed, i / 2, 6}));
    const double u1 = (static_cast<double>(bits / 4294967296U) + 0.5) / 4294967296.0;
    const double u2 = (static_cast<double>(bits % 4294967296U) + 0.5) / 4294967296.0;
    const double angle = 2 * M_PI * u2;
    const double omega = std::sqrt(2 * 0.5) * std::sqrt(-2 * std::log(u1)) *
                         (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
    const double phase = 2 * M_PI *
                         static_cast<double>(HashName(bytes({space.map.seed, i})) >> 11) /
                         std::pow(2, 53);
    EXPECT_NEAR(mapped[i], std::sqrt(2.0 / 3) * std::cos(omega * x + phase), 1e-6);
  }
}

// Three features' frequencies fill it.
TEST(Fourier, WhatIsRememberedChangesNoValue) {
  const FeatureSpace space = Space(perceptrond::Fourier::kRememberedLimit / 3);
  const perceptrond::Fourier table(space);
  const perceptrond::Fourier remembering(space, 0);
  const Columns columns = Columns()
                              .Add({0, 1}, {1, 2}, 1)
                              .Add({1, 5}, {3, 4}, 1)
                              .Add({0, 2, 3, 4, 7}, {1, 2, 3, 4, 5}, 1);
  Mapped expected;
  Mapped mapped;
  for (const size_t i : {0U, 1U, 0U, 2U, 1U, 2U, 2U}) {
    const Source source{columns.batch().row(i), {}, {}};
    ASSERT_EQ(table.Expand(source, space.map.dimension, expected), ValidationCode::kNone);
    ASSERT_EQ(remembering.Expand(source, space.map.dimension, mapped), ValidationCode::kNone);
    EXPECT_TRUE(mapped.values == expected.values);
    EXPECT_LE(mapped.frequencies.size(), perceptrond::Fourier::kRememberedLimit);
  }
}

TEST(Fourier, InAHashedSpaceTakesNamesAndSlotsAlike) {
  const FeatureSpace space = Space(32, 1, 0.25, Kind::kHashed, 1U << 24);
  const NamedColumns named({{{{"a", 2}, {"b", 3}}, 1}});
  const uint32_t a = NameSlot("a", 1U << 24);
  const uint32_t b = NameSlot("b", 1U << 24);
  Columns slots;
  a < b ? slots.Add({a, b}, {2, 3}, 1) : slots.Add({b, a}, {3, 2}, 1);
  EXPECT_EQ(Values(space, named.batch()), Values(space, slots.batch()));
}

TEST(Fourier, InANamedSpaceNeedsNoDictionary) {
  const FeatureSpace space = Space(4096, 1, 0.25, Kind::kNamed, 100);
  EXPECT_EQ(space.initial_weights(), 4096U);
  const NamedColumns columns({{{{"a", 1}, {"b", 1}}, 1}, {{{"b", 1}, {"c", 2}}, 1}});
  const std::vector<float> x = Values(space, columns.batch(), 0);
  const std::vector<float> z = Values(space, columns.batch(), 1);
  EXPECT_NEAR(Inner(x, z), std::exp(-0.25 * 5), 4 / std::sqrt(4096));
  EXPECT_NEAR(Inner(x, x), 1, 4 / std::sqrt(4096));
  Mapper mapper(space);
  ASSERT_FALSE(mapper.Begin(columns.batch()));
  std::vector<absl::string_view> names = {"left over"};
  mapper.UnknownNames(0, names);
  EXPECT_TRUE(names.empty());
}

TEST(Fourier, OfHugeValuesIsFinite) {
  const float huge = std::numeric_limits<float>::max();
  const Columns columns = Columns().AddDense(std::vector<float>(kInputs, huge), 1);
  for (const float value : Values(Space(64, 1, FeatureMap::kMaxGamma), columns.batch()))
    EXPECT_LE(std::abs(value), 0.18F);
}

}  // namespace
}  // namespace perceptrond
