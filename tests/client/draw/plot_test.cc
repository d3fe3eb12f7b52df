// Axes: ticks are round, evenly spread, within their range, and are labelled with their values.
#include "client/draw/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

namespace perceptrond::client {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Labels(const std::vector<Tick>& ticks) {
  std::vector<std::string> labels;
  for (const Tick& tick : ticks) labels.push_back(tick.label);
  return labels;
}

TEST(LinearTicks, StandAtRoundFigures) {
  EXPECT_THAT(Labels(LinearTicks({0, 1}, 5)), ElementsAre("0", "0.2", "0.4", "0.6", "0.8", "1.0"));
  EXPECT_THAT(Labels(LinearTicks({-3.2, 3.9}, 4)), ElementsAre("−2", "0", "2"));
  EXPECT_THAT(Labels(LinearTicks({0, 26'000}, 3)), ElementsAre("0", "10,000", "20,000"));
  EXPECT_THAT(Labels(LinearTicks({0, 2.3e7}, 3)), ElementsAre("0", "1×10⁷", "2×10⁷"));
  EXPECT_THAT(Labels(LinearTicks({0, 2.9e-7}, 3)), ElementsAre("0", "1×10⁻⁷", "2×10⁻⁷"));
}

TEST(LinearTicks, OfRandomRangesAreRoundEvenWithinAndApart) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> middle(-10, 10);
  std::uniform_real_distribution<double> power(-8, 8);
  for (int n = 0; n < 2000; ++n) {
    const double size = std::pow(10, power(random));
    const double lo = middle(random) * size;
    const Range range{lo, lo + size};
    const int wanted = 2 + static_cast<int>(random() % 9);
    const std::vector<Tick> ticks = LinearTicks(range, wanted);
    EXPECT_LE(ticks.size(), static_cast<size_t>(wanted) + 1);
    // A step is at most 2.5 times as long as it had to be.
    EXPECT_GE(static_cast<double>(ticks.size()), std::floor(wanted / 2.5));
    std::set<std::string> labels;
    for (size_t i = 0; i < ticks.size(); ++i) {
      EXPECT_GE(ticks[i].value, range.lo - 1e-6 * size);
      EXPECT_LE(ticks[i].value, range.hi + 1e-6 * size);
      labels.insert(ticks[i].label);
      if (i + 2 < ticks.size()) {
        EXPECT_NEAR(ticks[i + 1].value - ticks[i].value, ticks[i + 2].value - ticks[i + 1].value,
                    1e-6 * size);
      }
      if (i + 1 == ticks.size()) continue;
      const double step = ticks[i + 1].value - ticks[i].value;
      const double digit = step / std::pow(10, std::floor(std::log10(step) + 1e-6));
      EXPECT_TRUE(std::abs(digit - 1) < 1e-6 || std::abs(digit - 2) < 1e-6 ||
                  std::abs(digit - 5) < 1e-6)
          << step;
    }
    EXPECT_EQ(labels.size(), ticks.size()) << "two ticks of one label from " << range.lo;
  }
}

TEST(LinearTicks, FarFromZeroSayHowFarTheyAreFromARoundFigure) {
  const Range range{999'997, 1'000'004};
  EXPECT_EQ(BaseOf(range, 5), 1'000'000);
  EXPECT_THAT(Labels(LinearTicks(range, 5)), ElementsAre("−2", "0", "2", "4"));
  EXPECT_EQ(LinearTicks(range, 5).front().value, 999'998);
  EXPECT_EQ(Scale(range, 0, 1).Base(5), " − 1,000,000");
  const Range below{-20'000.003, -20'000.001};
  EXPECT_EQ(Scale(below, 0, 1).Base(5), " + 20,000.00");
  EXPECT_THAT(Labels(LinearTicks(below, 2)), ElementsAre("−0.003", "−0.002", "−0.001"));
  // 2^120 and the next of float32.
  const double large = std::ldexp(1, 120);
  const std::vector<Tick> ticks = LinearTicks({large, large * (1 + 1e-6)}, 5);
  std::set<std::string> labels;
  for (const Tick& tick : ticks) labels.insert(tick.label);
  EXPECT_EQ(labels.size(), ticks.size());
  // Near enough for the figures themselves.
  EXPECT_EQ(BaseOf({1000, 1004}, 5), 0);
  EXPECT_EQ(BaseOf({-1e9, 1e9}, 5), 0);
  EXPECT_EQ(Scale({0, 1}, 0, 1).Base(5), "");
}

TEST(LogTicks, StandAtPowersOfTenAndBetweenThemWhereThereAreFew) {
  EXPECT_THAT(Labels(LogTicks({0.8, 1200}, 5)), ElementsAre("1", "10", "100", "1,000"));
  EXPECT_THAT(Labels(LogTicks({0.9, 25}, 5)), ElementsAre("1", "2", "5", "10", "20"));
  EXPECT_THAT(Labels(LogTicks({1e-9, 1e9}, 3)), ElementsAre("10⁻⁶", "1", "10⁶"));
  EXPECT_THAT(Labels(LogTicks({0.008, 0.3}, 5)), ElementsAre("0.01", "0.02", "0.05", "0.1", "0.2"));
}

TEST(Scale, MapsItsEndsAndGrowsBetweenThem) {
  for (const bool logarithmic : {false, true}) {
    const Scale scale({1, 100}, 400, 20, logarithmic);
    EXPECT_DOUBLE_EQ(scale(1), 400);
    EXPECT_DOUBLE_EQ(scale(100), 20);
    EXPECT_NEAR(scale(10), logarithmic ? 210 : 400 - 380 * 9.0 / 99, 1e-9);
  }
}

TEST(Range, OfEqualValuesHasRoomAroundThem) {
  EXPECT_LT(RangeOf({3, 3}).lo, 3);
  EXPECT_GT(RangeOf({3, 3}).hi, 3);
  EXPECT_LT(RangeOf({0}).lo, 0);
  EXPECT_EQ(RangeOf({}).hi, 1);
  EXPECT_EQ(RangeOf({2, -1, 7}).lo, -1);
  EXPECT_EQ(RangeOf({2, -1, 7}).hi, 7);
}

}  // namespace
}  // namespace perceptrond::client
