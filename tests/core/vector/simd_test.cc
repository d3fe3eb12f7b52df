// The loops over features and the kernels made of products, by each vector unit that this machine and
// the build have: the same bits, in the documented order of additions.
#include "core/vector/simd.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace perceptrond {
namespace {

// The documented order: eight lanes, added in pairs.
double InLanes(const std::vector<double>& terms) {
  double lanes[8] = {};
  for (size_t i = 0; i < terms.size(); ++i) lanes[i % 8] += terms[i];
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
         ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

double Times(float a, float b) { return static_cast<double>(a) * static_cast<double>(b); }

// One vector unit that this machine and the build have.
class EachUnit : public ::testing::TestWithParam<const simd::Loops*> {
 protected:
  static const simd::Loops& unit() { return *GetParam(); }

  std::vector<float> Floats(size_t size) {
    std::vector<float> values(size);
    // Magnitudes differ, so that another order of additions shows.
    for (float& value : values) value = normal_(random_) * std::exp2(8 * normal_(random_));
    return values;
  }

  // Strictly ascending, below 2 * size + 2, odd and even, neighbours and gaps.
  std::vector<uint32_t> AscendingIndices(size_t size) {
    std::vector<uint32_t> result;
    uint32_t at = random_() % 2;
    for (size_t i = 0; i < size; ++i, at += 1 + random_() % 2) result.push_back(at);
    return result;
  }

  RowScan ScanDense(const std::vector<float>& weights, const std::vector<float>& values,
                    const float* diagonal = nullptr) const {
    RowScan scan;
    unit().scan_dense(weights.data(), diagonal, values.data(), values.size(), scan);
    return scan;
  }

  // A batch of one row; x null: every value is 1.
  RowScan ScanSparse(const std::vector<float>& weights, const std::vector<uint32_t>& at,
                     const float* x, const float* diagonal = nullptr) const {
    const auto end = static_cast<uint32_t>(at.size());
    Batch batch;
    batch.row_ends = {&end, 1};
    batch.indices = at;
    if (x != nullptr) batch.values = {x, at.size()};
    RowScan scan;
    unit().scan_sparse_rows(weights.data(), diagonal, weights.size(), batch, 0, {&scan, 1});
    return scan;
  }

  std::mt19937 random_{7};
  std::normal_distribution<float> normal_;
};

constexpr size_t kLargest = 70;

TEST_P(EachUnit, AddsProductsSquaresAndWeighedSquaresInTheFixedOrderEachRoundedBeforeItIsAdded) {
  enum class Form { kDense, kSparse, kSparseOfOnes };
  for (size_t size = 0; size <= kLargest; ++size) {
    const std::vector<uint32_t> at = AscendingIndices(size);
    const std::vector<float> weights = Floats(2 * size + 2);
    const std::vector<float> diagonal = Floats(2 * size + 2);
    const std::vector<float> values = Floats(size);
    for (const Form form : {Form::kDense, Form::kSparse, Form::kSparseOfOnes}) {
      const bool dense = form == Form::kDense;
      const float* const x = form == Form::kSparseOfOnes ? nullptr : values.data();
      std::vector<double> products(size);
      std::vector<double> squares(size);
      std::vector<double> weighed(size);
      for (size_t i = 0; i < size; ++i) {
        const size_t place = dense ? i : at[i];
        const float value = x == nullptr ? 1 : x[i];
        products[i] = Times(weights[place], value);
        squares[i] = Times(value, value);
        weighed[i] = static_cast<double>(diagonal[place]) * squares[i];
      }
      SCOPED_TRACE(::testing::Message() << static_cast<int>(form) << " " << size);
      EXPECT_EQ(dense ? unit().dense_dot(weights.data(), x, size)
                      : unit().sparse_dot(weights.data(), at.data(), x, size),
                InLanes(products));
      EXPECT_EQ(unit().weighted_squared_norm(diagonal.data(), dense ? nullptr : at.data(), x, size),
                InLanes(weighed));
      for (const float* d : {static_cast<const float*>(nullptr), diagonal.data()}) {
        const RowScan scan = dense ? ScanDense(weights, values, d) : ScanSparse(weights, at, x, d);
        EXPECT_EQ(scan.dot, InLanes(products));
        EXPECT_EQ(scan.squared_norm, InLanes(squares));
        EXPECT_TRUE(scan.ascends);
        if (d != nullptr) {
          EXPECT_EQ(scan.weighted_squared_norm, InLanes(weighed));
        }
      }
    }
  }
}

// A model that fits the caches, and one whose weights are asked for ahead.
TEST_P(EachUnit, ScansTheRowsOfABatchAsItScansEachAlone) {
  for (const size_t size : {size_t{1000}, size_t{4} << 20}) {
    std::vector<float> weights(size);
    for (size_t i = 0; i < 1000; ++i) weights[i * (size / 1000)] = normal_(random_);
    const std::vector<float> diagonal(weights.rbegin(), weights.rend());
    std::vector<uint32_t> ends;
    std::vector<uint32_t> indices;
    for (int row = 0; row < 50; ++row) {
      for (const uint32_t index : AscendingIndices(random_() % kLargest))
        indices.push_back(static_cast<uint32_t>(index * (size / 1000)));
      ends.push_back(static_cast<uint32_t>(indices.size()));
    }
    // Exact allocations, for the address sanitizer.
    indices.shrink_to_fit();
    std::vector<float> values = Floats(indices.size());
    values.shrink_to_fit();
    Batch batch;
    batch.row_ends = ends;
    batch.indices = indices;
    for (const bool has_values : {true, false}) {
      batch.values = has_values ? std::span<const float>(values) : std::span<const float>();
      for (const size_t first : {0, 1, 17, 49}) {
        std::vector<RowScan> scans(ends.size() - first);
        unit().scan_sparse_rows(weights.data(), diagonal.data(), size, batch, first, scans);
        for (size_t i = 0; i < scans.size(); ++i) {
          const Row row = batch.row(first + i);
          const std::vector<uint32_t> at(row.indices, row.indices + row.size);
          const RowScan alone = ScanSparse(weights, at, row.values, diagonal.data());
          EXPECT_EQ(scans[i].dot, alone.dot);
          EXPECT_EQ(scans[i].weighted_squared_norm, alone.weighted_squared_norm);
          EXPECT_EQ(scans[i].squared_norm, alone.squared_norm);
          EXPECT_TRUE(scans[i].ascends);
        }
      }
    }
  }
}

// IEEE 754, 3.4: sign, five bits of exponent with a bias of 15, ten of fraction.
float FromHalf(uint32_t bits) {
  const double fraction = bits & 0x3ff;
  const int exponent = static_cast<int>(bits >> 10 & 0x1f);
  double value = exponent == 0 ? fraction * 0x1p-24 : std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31) value = fraction == 0 ? HUGE_VAL : NAN;
  return static_cast<float>((bits & 0x8000) != 0 ? -value : value);
}

TEST_P(EachUnit, ConvertsEveryHalfAtAnyAddressInfinitiesAndNotANumberToo) {
  constexpr size_t kHalves = 1 << 16;
  std::string halves(1, ' ');
  for (uint32_t bits = 0; bits < kHalves; ++bits) {
    halves.push_back(static_cast<char>(bits));
    halves.push_back(static_cast<char>(bits >> 8));
  }
  for (const size_t size : {kHalves, kHalves - 5}) {
    std::vector<float> floats(size);
    unit().halves_to_floats(halves.data() + 1, floats.data(), size);
    for (uint32_t bits = 0; bits < size; ++bits) {
      const float expected = FromHalf(bits);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(floats[bits])) << bits;
      } else {
        EXPECT_EQ(std::bit_cast<uint32_t>(floats[bits]), std::bit_cast<uint32_t>(expected)) << bits;
      }
    }
  }
}

TEST(PreferUnit, MakesAUnitOfThisMachineTheBestOneAndLeavesTheOthers) {
  const std::vector<const simd::Loops*> before = simd::Units();
  for (const simd::Loops* unit : before) {
    EXPECT_TRUE(simd::PreferUnit(unit->unit));
    EXPECT_EQ(&simd::Best(), unit);
    EXPECT_THAT(simd::Units(), ::testing::UnorderedElementsAreArray(before));
  }
  EXPECT_FALSE(simd::PreferUnit("NONE"));
  EXPECT_EQ(&simd::Best(), before.back());
  EXPECT_TRUE(simd::PreferUnit(before.front()->unit));
}

TEST_P(EachUnit, SeesEveryIndexThatDoesNotAscend) {
  for (size_t size = 2; size <= kLargest; ++size) {
    const std::vector<uint32_t> ascending = AscendingIndices(size);
    const std::vector<float> weights(2 * size + 2);
    EXPECT_TRUE(unit().ascends(ascending.data(), size));
    for (size_t i = 0; i + 1 < size; ++i) {
      for (const uint32_t wrong : {ascending[i], ascending[i] - 1}) {
        std::vector<uint32_t> at = ascending;
        at[i + 1] = wrong;
        if (i + 2 < size) at[i + 2] = std::max(at[i + 2], wrong + 1);
        EXPECT_FALSE(unit().ascends(at.data(), size)) << size << " " << i;
        EXPECT_FALSE(ScanSparse(weights, at, nullptr).ascends) << size << " " << i;
      }
    }
  }
}

TEST_P(EachUnit, ReadsTheLastWeightForIndicesBeyondTheLimit) {
  for (size_t size = 1; size <= kLargest; ++size) {
    for (const uint32_t beyond : {100u, 1u << 31, ~0u}) {
      std::vector<uint32_t> at(size);
      for (size_t i = 0; i < size; ++i) at[i] = beyond - static_cast<uint32_t>(size - 1 - i);
      const std::vector<float> weights = {1, 2};
      const RowScan scan = ScanSparse(weights, at, nullptr);
      const std::vector<double> twos(size, 2.0);
      EXPECT_EQ(scan.dot, InLanes(twos)) << size << " " << beyond;
      EXPECT_TRUE(scan.ascends) << size << " " << beyond;
    }
  }
}

TEST_P(EachUnit, RanksKeysByHowManyAreLess) {
  for (size_t size = 0; size <= kLargest; ++size) {
    std::vector<uint32_t> keys(size);
    // Some equal, some above 2^31.
    for (uint32_t& key : keys) key = static_cast<uint32_t>(random_()) & 0xf000001fU;
    std::vector<uint32_t> expected;
    for (const uint32_t key : keys) {
      expected.push_back(static_cast<uint32_t>(
          std::count_if(keys.begin(), keys.end(), [key](uint32_t other) { return other < key; })));
    }
    keys.resize(size + simd::kMostLanes);
    std::vector<uint32_t> ranks(size + simd::kMostLanes);
    unit().rank(keys.data(), size, ranks.data());
    ranks.resize(size);
    EXPECT_EQ(ranks, expected) << size;
  }
}

TEST_P(EachUnit, LooksUpEntriesAndKeepsTheFlaggedApart) {
  constexpr uint32_t kKeep = (1U << 30) - 1;
  constexpr uint32_t kFlag = 1U << 30;
  std::vector<uint32_t> entries(128);
  for (size_t size = 0; size <= kLargest; ++size) {
    for (uint32_t& entry : entries) entry = static_cast<uint32_t>(random_());
    std::vector<uint32_t> at(size);
    for (uint32_t& number : at) number = static_cast<uint32_t>(random_());
    simd::LookedUp expected;
    std::vector<uint32_t> kept;
    std::vector<uint32_t> with_flag;
    for (const uint32_t number : at) {
      const uint32_t entry = entries[number % entries.size()];
      expected.bits |= entry;
      kept.push_back(entry & kKeep);
      if ((entry & kFlag) != 0) with_flag.push_back(entry & kKeep);
    }
    std::vector<uint32_t> values(size);
    std::vector<uint32_t> flagged(size + simd::kMostLanes);
    const simd::LookedUp found = unit().look_up({entries.data(), 127, kKeep, kFlag}, at.data(),
                                                size, values.data(), flagged.data());
    EXPECT_EQ(found.bits, expected.bits) << size;
    EXPECT_EQ(values, kept) << size;
    flagged.resize(found.flagged);
    EXPECT_EQ(flagged, with_flag) << size;
  }
}

// The plain sum, of a row's `size` features from `begin` on.
double InSequence(const std::vector<float>& x, const std::vector<uint32_t>& at,
                  const std::vector<float>& values, size_t begin, size_t size) {
  double sum = 0;
  for (size_t i = begin; i < begin + size; ++i) sum += Times(x[at[i]], values[i]);
  return sum;
}

TEST_P(EachUnit, MultipliesRowsThatFollowEachOtherOneTermAfterTheOther) {
  const std::vector<float> x = Floats(2 * kLargest + 2);
  std::vector<uint32_t> sizes;
  std::vector<uint32_t> at;
  // One of each size, then several: four are multiplied at the same time.
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

TEST_P(EachUnit, MultipliesABlockOfRowsByColumnsAsEachAloneZerosLeftOut) {
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

TEST_P(EachUnit, RaisesToPowersOneFactorAfterTheOtherWithinTheLimit) {
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

TEST_P(EachUnit, ComputesGaussiansWithTheSameBitsAndNearTheCLibrarys) {
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

TEST_P(EachUnit, AddsProductsRoundedToTheSumOfTheirLane) {
  for (size_t size = 0; size <= kLargest; ++size) {
    std::vector<double> a(size), b(size), expected(8);
    // All digits are used, so that products are rounded.
    for (double& value : a) value = std::exp2(8 * normal_(random_)) / 3.0;
    for (double& value : b) value = static_cast<double>(normal_(random_)) / 3;
    for (double& value : expected) value = normal_(random_);
    std::vector<double> sums = expected;
    unit().add_products(a.data(), b.data(), size, sums.data());
    for (size_t i = 0; i < size; ++i) expected[i % 8] += a[i] * b[i];
    EXPECT_EQ(sums, expected) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Units, EachUnit, ::testing::ValuesIn(simd::Units()),
                         [](const auto& info) { return std::string(info.param->unit); });

}  // namespace
}  // namespace perceptrond
