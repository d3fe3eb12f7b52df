#include "core/features/fourier.h"

#include <cmath>

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

// The banner's recipe, step by step.
TEST(Fourier, DrawsItsNumbersAndMapsAsDocumented) {
  const FeatureSpace space = Space(33, 0x0102030405060708U, 0.5);
  const std::vector<uint32_t> indices = {0, 3, 6, 7};
  const std::vector<float> x = {0.75F, -1.5F, 0.125F, 2};
  const std::vector<float> mapped = Values(space, Columns().Add(indices, x, 1).batch());
  const auto bytes = [](std::vector<uint64_t> numbers) {
    std::string all;
    for (uint64_t number : numbers) {
      for (int i = 0; i < 8; ++i, number /= 256) all.push_back(static_cast<char>(number % 256));
    }
    return all;
  };
  for (uint64_t i = 0; i < 33; ++i) {
    double angle_of_row = 2 * M_PI *
                          static_cast<double>(HashName(bytes({space.map.seed, i})) >> 11) /
                          std::pow(2, 53);
    for (size_t j = 0; j < indices.size(); ++j) {
      const uint64_t bits = HashName(bytes({space.map.seed, i / 2, indices[j]}));
      const double u1 = (static_cast<double>(bits / 4294967296U) + 0.5) / 4294967296.0;
      const double u2 = (static_cast<double>(bits % 4294967296U) + 0.5) / 4294967296.0;
      const double angle = 2 * M_PI * u2;
      const double omega = std::sqrt(2 * 0.5) * std::sqrt(-2 * std::log(u1)) *
                           (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
      angle_of_row += omega * x[j];
    }
    EXPECT_NEAR(mapped[i], std::sqrt(2.0 / 33) * std::cos(angle_of_row), 1e-6);
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
