#include "core/vector/simd.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/vector/each_unit.h"

namespace perceptrond {
namespace {

// The documented order: eight lanes, added in pairs.
double InLanes(const std::vector<double>& terms) {
  double lanes[8] = {};
  for (size_t i = 0; i < terms.size(); ++i) lanes[i % 8] += terms[i];
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
         ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

using testing::Times;

class EachUnit : public testing::UnitTest {
 protected:
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
};

constexpr size_t kLargest = 70;

TEST_P(EachUnit, MultipliesDenseRowsInTheFixedOrder) {
  for (size_t size = 0; size <= kLargest; ++size) {
    const std::vector<float> a = Floats(size);
    const std::vector<float> b = Floats(size);
    std::vector<double> products(size);
    std::vector<double> squares(size);
    std::transform(a.begin(), a.end(), b.begin(), products.begin(), Times);
    std::transform(b.begin(), b.end(), b.begin(), squares.begin(), Times);
    EXPECT_EQ(unit().dense_dot(a.data(), b.data(), size), InLanes(products)) << size;
    const RowScan scan = ScanDense(a, b);
    EXPECT_EQ(scan.dot, InLanes(products)) << size;
    EXPECT_EQ(scan.squared_norm, InLanes(squares)) << size;
    EXPECT_TRUE(scan.ascends);
  }
}

TEST_P(EachUnit, MultipliesSparseRowsInTheFixedOrderWithValuesAndWithout) {
  for (size_t size = 0; size <= kLargest; ++size) {
    const std::vector<uint32_t> at = AscendingIndices(size);
    const std::vector<float> weights = Floats(2 * size + 2);
    const std::vector<float> values = Floats(size);
    for (const float* x : {values.data(), static_cast<const float*>(nullptr)}) {
      std::vector<double> products(size);
      std::vector<double> squares(size);
      for (size_t i = 0; i < size; ++i) {
        const float value = x == nullptr ? 1 : x[i];
        products[i] = Times(weights[at[i]], value);
        squares[i] = Times(value, value);
      }
      EXPECT_EQ(unit().sparse_dot(weights.data(), at.data(), x, size), InLanes(products)) << size;
      const RowScan scan = ScanSparse(weights, at, x);
      EXPECT_EQ(scan.dot, InLanes(products)) << size;
      EXPECT_EQ(scan.squared_norm, InLanes(squares)) << size;
      EXPECT_TRUE(scan.ascends) << size;
    }
  }
}

TEST_P(EachUnit, WeighsSquaresInTheFixedOrderAndRoundsEachBeforeItIsAdded) {
  for (size_t size = 0; size <= kLargest; ++size) {
    const std::vector<uint32_t> at = AscendingIndices(size);
    const std::vector<float> weights = Floats(2 * size + 2);
    const std::vector<float> diagonal = Floats(2 * size + 2);
    const std::vector<float> values = Floats(size);
    for (const float* x : {values.data(), static_cast<const float*>(nullptr)}) {
      std::vector<double> sparse(size);
      std::vector<double> dense(size);
      for (size_t i = 0; i < size; ++i) {
        const double square = x == nullptr ? 1 : Times(x[i], x[i]);
        sparse[i] = static_cast<double>(diagonal[at[i]]) * square;
        dense[i] = static_cast<double>(diagonal[i]) * square;
      }
      EXPECT_EQ(unit().weighted_squared_norm(diagonal.data(), at.data(), x, size), InLanes(sparse))
          << size;
      EXPECT_EQ(ScanSparse(weights, at, x, diagonal.data()).weighted_squared_norm, InLanes(sparse))
          << size;
      EXPECT_EQ(ScanSparse(weights, at, x, diagonal.data()).dot, ScanSparse(weights, at, x).dot);
      if (x == nullptr) continue;
      EXPECT_EQ(unit().weighted_squared_norm(diagonal.data(), nullptr, x, size), InLanes(dense))
          << size;
      EXPECT_EQ(ScanDense(weights, values, diagonal.data()).weighted_squared_norm, InLanes(dense))
          << size;
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

TEST_P(EachUnit, ReadsNothingBehindARowsEnd) {
  // Under the address sanitizer: exact allocations.
  for (size_t size = 0; size <= kLargest; ++size) {
    const std::vector<float> values(size, 1.0F);
    const std::vector<float> weights(size + 1, 1.0F);
    std::vector<uint32_t> at(size);
    for (size_t i = 0; i < size; ++i) at[i] = static_cast<uint32_t>(i);
    at.shrink_to_fit();
    const auto expected = static_cast<double>(size);
    EXPECT_EQ(unit().dense_dot(weights.data(), values.data(), size), expected);
    EXPECT_EQ(ScanDense(weights, values).dot, expected);
    EXPECT_EQ(unit().sparse_dot(weights.data(), at.data(), values.data(), size), expected);
    EXPECT_EQ(ScanSparse(weights, at, values.data()).dot, expected);
    EXPECT_EQ(ScanSparse(weights, at, nullptr).dot, expected);
    EXPECT_TRUE(unit().ascends(at.data(), size));
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

INSTANTIATE_TEST_SUITE_P(Units, EachUnit, ::testing::ValuesIn(simd::Units()),
                         [](const auto& info) { return std::string(info.param->unit); });

}  // namespace
}  // namespace perceptrond
