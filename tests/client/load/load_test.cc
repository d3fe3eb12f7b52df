// The load generator: its rows, and its percentiles.
#include "client/load/load.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <unordered_map>
#include <vector>

#include "client/load/synthetic_rows.h"
#include "gtest/gtest.h"

namespace perceptrond::client {
namespace {

TEST(LatencyHistogram, PercentilesAreNeverTooSmallAndTooLargeByLessThanASixtyFourth) {
  EXPECT_EQ(LatencyHistogram().Percentile(50), absl::ZeroDuration());
  std::mt19937 random(1);
  // From a nanosecond to ten minutes.
  std::uniform_real_distribution<double> exponent(0, std::log(6e11));
  for (int round = 0; round < 20; ++round) {
    LatencyHistogram histogram;
    LatencyHistogram rest;
    std::vector<int64_t> nanos(1 + random() % 3000);
    for (int64_t& value : nanos) {
      value = static_cast<int64_t>(std::exp(exponent(random)));
      (value % 3 == 0 ? histogram : rest).Add(absl::Nanoseconds(value));
    }
    histogram.Add(rest);
    std::sort(nanos.begin(), nanos.end());
    for (const double percent : {0.0, 1.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
      const auto rank = static_cast<size_t>(std::max(1.0, std::ceil(percent / 100 * nanos.size())));
      const auto exact = static_cast<double>(nanos[rank - 1]);
      const auto reported =
          static_cast<double>(absl::ToInt64Nanoseconds(histogram.Percentile(percent)));
      EXPECT_GE(reported, exact) << percent;
      EXPECT_LT(reported, exact * (1 + 1.0 / 64) + 1) << percent;
    }
    EXPECT_EQ(histogram.count(), nanos.size());
    EXPECT_EQ(histogram.max(), absl::Nanoseconds(nanos.back()));
  }
}

// The perceptron without an offset makes as many mistakes for ever as were asked for, and no others.
TEST(SyntheticRows, HaveTheShapeAndTheShareOfMistakesAskedFor) {
  for (const double share : {0.0, 0.1}) {
    SyntheticRowsOptions options;
    options.size = share == 0 ? 1000 : 1U << 20;
    options.features = 75;
    options.mistakes = share;
    SyntheticRows rows(options);
    std::unordered_map<uint32_t, double> weights;
    const size_t round = SyntheticRows::Count(options);
    size_t mistakes = 0;
    for (size_t i = 0; i < 20 * round; ++i) {
      if (i % round == 0) mistakes = 0;
      const Row& row = rows.Next();
      ASSERT_EQ(std::set<uint32_t>(row.indices.begin(), row.indices.end()).size(), 75U);
      ASSERT_LT(row.indices.back(), options.size);
      double score = 0;
      for (size_t j = 0; j < 75; ++j) score += weights[row.indices[j]] * row.values[j];
      if (row.label * score > 0) continue;
      ++mistakes;
      for (size_t j = 0; j < 75; ++j) weights[row.indices[j]] += row.label * row.values[j];
    }
    EXPECT_NEAR(static_cast<double>(mistakes), share * static_cast<double>(round), 1);
  }
}

}  // namespace
}  // namespace perceptrond::client
