#include "core/vector/kernels.h"

#include <cmath>
#include <limits>
#include <random>

#include "gtest/gtest.h"
#include "tests/support/columns.h"

namespace perceptrond {
namespace {

using testing::Columns;

// The documented order: eight lanes, added in pairs.
double LaneDot(const std::vector<float>& weights, const std::vector<uint32_t>& indices,
               const std::vector<float>& values) {
  double lanes[8] = {};
  for (size_t i = 0; i < indices.size(); ++i)
    lanes[i % 8] += static_cast<double>(weights[indices[i]]) * static_cast<double>(values[i]);
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
         ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

class Kernels : public ::testing::TestWithParam<size_t> {
 protected:
  Kernels() {
    std::mt19937 random(static_cast<uint32_t>(GetParam()));
    std::normal_distribution<float> normal;
    for (float& weight : weights_) weight = normal(random) * 1e3F;
    for (uint32_t i = 0; i < GetParam(); ++i) {
      indices_.push_back(3 * i + 1);
      values_.push_back(normal(random));
    }
    columns_.Add(indices_, values_, 1);
  }

  std::vector<float> weights_ = std::vector<float>(3 * GetParam() + 4);
  std::vector<uint32_t> indices_;
  std::vector<float> values_;
  Columns columns_;
};

TEST_P(Kernels, DotAddsInItsFixedOrder) {
  EXPECT_EQ(Dot(weights_, columns_.batch().row(0)), LaneDot(weights_, indices_, values_));
}

TEST_P(Kernels, SquaredNormAddsInItsFixedOrder) {
  std::vector<float> at(weights_.size());
  for (size_t i = 0; i < indices_.size(); ++i) at[indices_[i]] = values_[i];
  EXPECT_EQ(SquaredNorm(columns_.batch().row(0)), LaneDot(at, indices_, values_));
}

TEST_P(Kernels, AddScaledRoundsEachWeightOnceAndTellsTheChangeOfTheNorm) {
  std::vector<float> expected = weights_;
  double change = 0;
  for (size_t i = 0; i < indices_.size(); ++i) {
    float& weight = expected[indices_[i]];
    const double before = weight;
    weight = static_cast<float>(before + -0.3 * static_cast<double>(values_[i]));
    change += static_cast<double>(weight) * weight - before * before;
  }
  CompensatedSum reported;
  AddScaled(weights_, -0.3, columns_.batch().row(0), reported);
  EXPECT_EQ(weights_, expected);
  EXPECT_NEAR(reported.value(), change, 1e-9 * (1 + std::abs(change)));
}

TEST(AddScaled, KeepsTheNormOfSmallWeightsWhenAHugeOneComesAndGoes) {
  std::vector<float> weights(2);
  CompensatedSum squared_norm;
  const Columns small = Columns().Add({0}, {3}, 1);
  const Columns huge = Columns().Add({1}, {1e19F}, 1);
  AddScaled(weights, 1, small.batch().row(0), squared_norm);
  AddScaled(weights, 1, huge.batch().row(0), squared_norm);
  AddScaled(weights, -1, huge.batch().row(0), squared_norm);
  EXPECT_EQ(squared_norm.value(), 9);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Kernels, ::testing::Values(0, 1, 2, 3, 4, 5, 7, 8, 9, 100, 1001));

TEST(StaysFinite, IsFalseFromTheFirstWeightThatWouldOverflow) {
  const float huge = std::numeric_limits<float>::max();
  const std::vector<float> weights = {1, huge, -huge};
  const Columns up = Columns().Add({1}, {huge}, 1);
  const Columns down = Columns().Add({1}, {-huge}, 1);
  const Columns last = Columns().Add({0, 1, 2}, {1, -1, -huge}, 1);
  EXPECT_FALSE(StaysFinite(weights, 1, up.batch().row(0)));
  EXPECT_TRUE(StaysFinite(weights, 1, down.batch().row(0)));
  EXPECT_TRUE(StaysFinite(weights, -1, up.batch().row(0)));
  EXPECT_FALSE(StaysFinite(weights, 1, last.batch().row(0)));
  EXPECT_FALSE(StaysFinite(weights, 1e300, down.batch().row(0)));
}

}  // namespace
}  // namespace perceptrond
