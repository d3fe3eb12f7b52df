#include "core/vector/arithmetic.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace perceptrond {
namespace {

TEST(DeterministicExp, IsTheExponentialToNearlyTheLastDigit) {
  for (double x = -740; x < 709.7; x += 0.0371) {
    const double expected = std::exp(x);
    // Below the normal numbers there are fewer digits.
    const double tolerance = std::max(2e-15 * expected, std::numeric_limits<double>::denorm_min());
    ASSERT_NEAR(DeterministicExp(x), expected, tolerance) << x;
  }
  EXPECT_EQ(DeterministicExp(0), 1);
}

TEST(DeterministicExp, EndsAsTheStandardSays) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(DeterministicExp(kInfinity), kInfinity);
  EXPECT_EQ(DeterministicExp(-kInfinity), 0);
  EXPECT_EQ(DeterministicExp(1000), kInfinity);
  EXPECT_EQ(DeterministicExp(-1000), 0);
  EXPECT_TRUE(std::isnan(DeterministicExp(std::numeric_limits<double>::quiet_NaN())));
}

TEST(DeterministicSigmoid, IsAProbability) {
  EXPECT_EQ(DeterministicSigmoid(0), 0.5);
  EXPECT_EQ(DeterministicSigmoid(1e9), 1);
  EXPECT_EQ(DeterministicSigmoid(-1e9), 0);
  EXPECT_NEAR(DeterministicSigmoid(2), 1 / (1 + std::exp(-2.0)), 1e-15);
}

}  // namespace
}  // namespace perceptrond
