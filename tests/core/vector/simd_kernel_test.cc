// A row's products with many others, and the kernels made of them, by each vector unit.
#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/vector/simd.h"
#include "gtest/gtest.h"
#include "tests/core/vector/each_unit.h"

namespace perceptrond::simd_kernel_test {
namespace {

using testing::Times;

class EachKernelUnit : public testing::UnitTest {};

constexpr size_t kLargest = 70;

// The plain sum, of a row's `size` features from `begin` on.
double InSequence(const std::vector<float>& x, const std::vector<uint32_t>& at,
                  const std::vector<float>& values, size_t begin, size_t size) {
  double sum = 0;
  for (size_t i = begin; i < begin + size; ++i) sum += Times(x[at[i]], values[i]);
  return sum;
}

TEST_P(EachKernelUnit, MultipliesRowsThatFollowEachOtherOneTermAfterTheOther) {
  const std::vector<float> x = Floats(2 * kLargest + 2);
  std::vector<uint32_t> sizes;
  std::vector<uint32_t> at;
  // Of each size one, then several: four are multiplied at the same time.
  for (uint32_t n = 0; n < 4 * kLargest + 3; ++n) {
    const uint32_t size = n <= kLargest ? n : static_cast<uint32_t>(random_() % 9);
    const std::vector<uint32_t> indices = AscendingIndices(size);
    sizes.push_back(size);
    at.insert(at.end(), indices.begin(), indices.end());
  }
  const std::vector<float> values = Floats(at.size());
  for (size_t count = 0; count <= sizes.size(); count = 2 * count + 1) {
    std::vector<double> dots(count);
    unit().row_dots(x.data(), at.data(), values.data(), std::span(sizes).first(count), dots.data());
    size_t begin = 0;
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(dots[i], InSequence(x, at, values, begin, sizes[i])) << i << " of " << count;
      begin += sizes[i];
    }
  }
}

TEST_P(EachKernelUnit, MultipliesABlockOfRowsByColumnsAsEachAloneZerosLeftOut) {
  for (size_t width = 0; width <= kLargest; ++width) {
    const std::vector<float> x = Floats(width);
    std::vector<float> columns = Floats(width * simd::kRowsInBlock);
    for (float& value : columns) {
      if (random_() % 3 == 0) value = 0;
    }
    std::vector<double> dots(simd::kRowsInBlock);
    unit().block_dots(x.data(), columns.data(), width, dots.data());
    for (size_t r = 0; r < simd::kRowsInBlock; ++r) {
      std::vector<uint32_t> at;
      std::vector<float> values;
      for (uint32_t j = 0; j < width; ++j) {
        const float value = columns[j * simd::kRowsInBlock + r];
        if (value == 0) continue;
        at.push_back(j);
        values.push_back(value);
      }
      EXPECT_EQ(dots[r], InSequence(x, at, values, 0, at.size())) << r << " of width " << width;
    }
  }
}

TEST_P(EachKernelUnit, RaisesToPowersOneFactorAfterTheOtherWithinTheLimit) {
  constexpr double kLimit = 1e150;
  // Large beside some powers; and limited, beside others.
  constexpr double kAddend = 1e140;
  std::vector<double> bases(203);
  for (double& base : bases) base = normal_(random_) * std::exp2(40 * normal_(random_));
  // 0, whose power is 0 whatever was limited before, and what leaves the limit.
  bases[200] = -0.5;
  bases[201] = 1e149;
  bases[202] = -1e149;
  for (const uint32_t exponent : {1U, 2U, 3U, 10U}) {
    std::vector<double> powers = bases;
    unit().powers(0.5, exponent, 0, kLimit, powers.data(), powers.size());
    std::vector<double> sums = bases;
    unit().powers(0.5, exponent, kAddend, kLimit, sums.data(), sums.size());
    for (size_t i = 0; i < bases.size(); ++i) {
      double plain = 1;
      for (uint32_t e = 0; e < exponent; ++e)
        plain = std::clamp(plain * (0.5 + bases[i]), -kLimit, kLimit);
      EXPECT_EQ(std::bit_cast<uint64_t>(powers[i]), std::bit_cast<uint64_t>(plain)) << bases[i];
      EXPECT_EQ(sums[i], std::clamp(plain + kAddend, -kLimit, kLimit)) << bases[i];
      const long double exact = std::pow(static_cast<long double>(0.5 + bases[i]), exponent);
      if (std::abs(exact) < kLimit) {
        EXPECT_NEAR(powers[i], static_cast<double>(exact), 2e-15 * std::abs(powers[i]));
      }
    }
    EXPECT_EQ(powers[200], 0);
    EXPECT_EQ(powers[201], exponent == 1 ? 1e149 : kLimit);
    EXPECT_EQ(std::abs(powers[202]), exponent == 1 ? 1e149 : kLimit);
  }
}

TEST_P(EachKernelUnit, ComputesGaussiansWithTheSameBitsAndNearTheCLibrarys) {
  std::uniform_real_distribution<double> uniform(0, 1);
  // Enough for whole vectors, and some more; the last are 1, from rounding below 0, and 0.
  std::vector<double> norms(203);
  std::vector<double> products(norms.size());
  for (size_t i = 0; i < norms.size(); ++i) {
    norms[i] = std::exp2(20 * uniform(random_) - 10);
    products[i] = std::sqrt(norms[i]) * (2 * uniform(random_) - 1);
  }
  norms[200] = products[200] = 1;
  norms[201] = 1;
  products[201] = 1 + 1e-15;
  norms[202] = 1e9;
  std::vector<double> values = products;
  unit().gaussians(0.5, 1, norms.data(), 0, values.data(), values.size());
  std::vector<double> sums = products;
  unit().gaussians(0.5, 1, norms.data(), 0.25, sums.data(), sums.size());
  std::vector<double> elsewhere = products;
  simd::Units().back()->gaussians(0.5, 1, norms.data(), 0, elsewhere.data(), elsewhere.size());
  for (size_t i = 0; i < norms.size(); ++i) {
    const double distance = std::max(0.0, 1 + norms[i] - 2 * products[i]);
    const double expected = std::exp(-0.5 * distance);
    EXPECT_NEAR(values[i], expected, 2e-15 * expected + 1e-300) << distance;
    EXPECT_EQ(std::bit_cast<uint64_t>(values[i]), std::bit_cast<uint64_t>(elsewhere[i]))
        << distance;
    EXPECT_EQ(sums[i], values[i] + 0.25) << distance;
  }
  EXPECT_EQ(values[200], 1);
  EXPECT_EQ(values[201], 1);
  EXPECT_EQ(values[202], 0);
}

TEST_P(EachKernelUnit, AddsProductsRoundedToTheSumOfTheirLane) {
  for (size_t size = 0; size <= kLargest; ++size) {
    std::vector<double> a(size), b(size), expected(8);
    // Of all digits, so that products are rounded.
    for (double& value : a) value = std::exp2(8 * normal_(random_)) / 3.0;
    for (double& value : b) value = static_cast<double>(normal_(random_)) / 3;
    for (double& value : expected) value = normal_(random_);
    std::vector<double> sums = expected;
    unit().add_products(a.data(), b.data(), size, sums.data());
    for (size_t i = 0; i < size; ++i) expected[i % 8] += a[i] * b[i];
    EXPECT_EQ(sums, expected) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Units, EachKernelUnit, ::testing::ValuesIn(simd::Units()),
                         [](const auto& info) { return std::string(info.param->unit); });

}  // namespace
}  // namespace perceptrond::simd_kernel_test
