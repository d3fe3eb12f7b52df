#include "client/load/load.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace perceptrond::client {
namespace {

TEST(LatencyHistogram, NothingHasNoPercentiles) {
  const LatencyHistogram histogram;
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(histogram.Percentile(50), absl::ZeroDuration());
  EXPECT_EQ(histogram.max(), absl::ZeroDuration());
}

TEST(LatencyHistogram, PercentilesAreNeverTooSmallAndTooLargeByLessThanASixtyFourth) {
  std::mt19937 random(1);
  // From a nanosecond to ten minutes.
  std::uniform_real_distribution<double> exponent(0, std::log(6e11));
  for (int round = 0; round < 20; ++round) {
    LatencyHistogram histogram;
    std::vector<int64_t> nanos(1 + random() % 3000);
    for (int64_t& value : nanos) {
      value = static_cast<int64_t>(std::exp(exponent(random)));
      histogram.Add(absl::Nanoseconds(value));
    }
    std::sort(nanos.begin(), nanos.end());
    for (const double percent : {0.0, 1.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
      const auto rank = static_cast<size_t>(std::max(1.0, std::ceil(percent / 100 * nanos.size())));
      const auto exact = static_cast<double>(nanos[rank - 1]);
      const auto reported =
          static_cast<double>(absl::ToInt64Nanoseconds(histogram.Percentile(percent)));
      EXPECT_GE(reported, exact) << percent;
      EXPECT_LT(reported, exact * (1 + 1.0 / 64) + 1) << percent;
    }
    EXPECT_EQ(histogram.max(), absl::Nanoseconds(nanos.back()));
    EXPECT_EQ(histogram.Percentile(100), histogram.max());
  }
}

TEST(LatencyHistogram, TwoTogetherAreWhatOneWouldBe) {
  LatencyHistogram one;
  LatencyHistogram two;
  LatencyHistogram all;
  for (int i = 1; i <= 1000; ++i) {
    (i % 3 == 0 ? one : two).Add(absl::Microseconds(i));
    all.Add(absl::Microseconds(i));
  }
  one.Add(two);
  EXPECT_EQ(one.count(), 1000U);
  EXPECT_EQ(one.max(), all.max());
  for (const double percent : {10.0, 50.0, 99.9})
    EXPECT_EQ(one.Percentile(percent), all.Percentile(percent));
}

TEST(LatencyHistogram, WhatCannotBeIsHeldAtTheEnds) {
  LatencyHistogram histogram;
  histogram.Add(absl::Nanoseconds(-5));
  EXPECT_EQ(histogram.Percentile(100), absl::ZeroDuration());
  histogram.Add(absl::InfiniteDuration());
  EXPECT_EQ(histogram.count(), 2U);
  EXPECT_GT(histogram.Percentile(100), absl::Hours(24 * 365));
}

}  // namespace
}  // namespace perceptrond::client
