// The exact part of a certificate alone, with rows that the solvers before it may hand it by mistake.
#include <cmath>
#include <limits>

#include "core/convergence/analysis/certificate.h"
#include "tests/core/convergence/separation_checks.h"

namespace perceptrond {
namespace {

using testing::Examples;
using testing::GoOn;
using testing::Point;
using testing::RowsOf;

// The multipliers of all examples, through the origin.
std::vector<CertificateEntry> Combine(const Examples& examples,
                                      AnalysisCallback keep_going = GoOn) {
  AnalysisOptions options;
  options.bias_input = 0;
  AnalysisMonitor building(GoOn);
  const SignedRows rows(RowsOf(examples), options, building);
  std::vector<size_t> all;
  for (size_t i = 0; i < examples.size(); ++i) all.push_back(i);
  AnalysisMonitor monitor(keep_going);
  return FindExactCombination(rows, all, monitor);
}

TEST(ExactCombination, LeavesOutRowsThatAddNothing) {
  const auto entries = Combine({Point({1, 0}, 1), Point({0, 1}, 1), Point({2, 0}, -1)});
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].example, 0U);
  EXPECT_EQ(entries[0].multiplier, "2");
  EXPECT_EQ(entries[1].example, 2U);
  EXPECT_EQ(entries[1].multiplier, "1");
}

TEST(ExactCombination, IsNotFooledByRowsThatNearlyVanish) {
  const float next = std::nextafter(1.0F, 2.0F);
  EXPECT_TRUE(Combine({Point({1, 1}, 1), Point({1, next}, -1)}).empty());
  EXPECT_TRUE(Combine({Point({1, 1, 1}, 1), Point({1, 1, next}, -1)}).empty());
  EXPECT_TRUE(Combine({Point({1}, 1)}).empty());
  // One column lacks 2^-149.
  const float least = std::numeric_limits<float>::denorm_min();
  EXPECT_TRUE(Combine({Point({1, least}, 1), Point({1, 0}, -1)}).empty());
}

TEST(ExactCombination, RefusesNegativeMultipliers) {
  // (2, 2) = 2 (1, 1): the only combination subtracts.
  EXPECT_TRUE(Combine({Point({1, 1}, 1), Point({2, 2}, 1)}).empty());
  EXPECT_TRUE(Combine({Point({1, 0}, 1), Point({0, 1}, 1), Point({1, 1}, 1)}).empty());
}

TEST(ExactCombination, RefusesRowsOfSeveralCombinations) {
  EXPECT_TRUE(
      Combine({Point({1, 0}, 1), Point({1, 0}, -1), Point({0, 1}, 1), Point({0, 1}, -1)}).empty());
}

TEST(ExactCombination, EndsWhenCancelled) {
  int calls = 0;
  const auto cancel = [&](const AnalysisProgress&) {
    ++calls;
    return false;
  };
  EXPECT_TRUE(Combine(testing::Noise(1, 101, 100), cancel).empty());
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace perceptrond
