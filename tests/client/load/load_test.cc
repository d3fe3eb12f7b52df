// The load generator: its rows, and its percentiles.
#include "client/load/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <unordered_map>
#include <vector>

#include "client/ctl/bench/bench.h"
#include "client/load/synthetic_rows.h"

namespace perceptrond::client {
namespace {

using ::testing::HasSubstr;

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

TEST(BenchReport, SaysWhatMakesItsFiguresDoubtful) {
  BenchReport report;
  report.work = "learn";
  report.model = "m";
  report.rate = 1000;
  report.seconds = 2;
  EXPECT_THAT(report.Text(), HasSubstr("no answer in the measured time"));
  LoadTally& tally = report.tally;
  tally.messages = 2;
  tally.examples = 1990;
  tally.row_errors = 1;
  tally.mistakes = 40;
  tally.updates = 30;
  tally.latency.Add(absl::Milliseconds(2));
  tally.latency.Add(absl::Seconds(3));
  report.requested_mistakes = 0.02;
  EXPECT_EQ(report.Text(),
            "learn m: 1,991 examples in 2.0 s, 996/s of 1000/s requested; 1 stream, 1 per message\n"
            "  40 mistakes, 2.01 % (requested: 2.00 %); 30 updates\n"
            "  1 with validation errors\n"
            "  latency per message: p50 2.02 ms, p90 3 s, p99 3 s, p99.9 3 s, max 3 s\n"
            "  measured from the time each message was due\n");
  report.requested_mistakes = 0;
  tally.examples = 1000;
  tally.lost = 9;
  tally.disconnects = 2;
  for (const char* doubt : {"connection lost 2 times; 9 examples have no known result",
                            "the share of mistakes differs", "the server did not keep up"})
    EXPECT_THAT(report.Text(), HasSubstr(doubt));
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
