#include <limits>
#include <vector>

#include "core/vector/kernels.h"
#include "gtest/gtest.h"
#include "tests/support/columns.h"

namespace perceptrond {
namespace {

using testing::Columns;

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

// Unknown names share index 0, which no kept row of a named space has.
TEST(SortedRowDot, UnknownFeaturesAddNothing) {
  const std::vector<uint32_t> indices = {0, 7, 0, 3};
  const std::vector<float> values = {100, 2, 100, 3};
  const std::vector<uint32_t> known = {3, 7};
  const std::vector<float> kept = {10, 1};
  EXPECT_EQ(Dot(SortedRow({indices.data(), values.data(), 4}), {known.data(), kept.data(), 2}), 32);
}

}  // namespace
}  // namespace perceptrond
