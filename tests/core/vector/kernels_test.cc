#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/vector/kernels.h"
#include "gtest/gtest.h"
#include "tests/support/columns.h"

namespace perceptrond {
namespace {

using testing::Columns;

class AddScaledOf : public ::testing::TestWithParam<size_t> {
 protected:
  AddScaledOf() {
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

TEST_P(AddScaledOf, RoundsEachWeightOnceAndTellsTheChangeOfTheNorm) {
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

INSTANTIATE_TEST_SUITE_P(Sizes, AddScaledOf, ::testing::Values(0, 1, 7, 8, 9, 1001));

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

constexpr uint32_t kDimension = 40;

struct Sparse {
  std::vector<uint32_t> indices;
  std::vector<float> values;
  Row row() const {
    return {indices.empty() ? kNoIndices : indices.data(), values.data(), values.size()};
  }
};

std::vector<float> RandomDense(std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(kDimension);
  for (float& value : values) value = random() % 3 == 0 ? normal(random) : 0;
  return values;
}

Sparse ToSparse(const std::vector<float>& dense, bool with_zeros) {
  Sparse sparse;
  for (uint32_t i = 0; i < dense.size(); ++i) {
    if (dense[i] == 0 && !with_zeros) continue;
    sparse.indices.push_back(i);
    sparse.values.push_back(dense[i]);
  }
  return sparse;
}

Sparse Shuffled(const Sparse& from, std::mt19937& random) {
  std::vector<size_t> order(from.indices.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  Sparse sparse;
  for (const size_t i : order) {
    sparse.indices.push_back(from.indices[i]);
    sparse.values.push_back(from.values[i]);
  }
  return sparse;
}

TEST(SortedRowDot, IsThePlainSumAndTheSameBitsInEveryForm) {
  std::mt19937 random(1);
  for (int n = 0; n < 500; ++n) {
    const std::vector<float> x = RandomDense(random);
    const std::vector<float> z = RandomDense(random);
    double plain = 0;
    for (size_t i = 0; i < kDimension; ++i) plain += static_cast<double>(x[i]) * z[i];
    const Sparse kept = ToSparse(z, false);
    const Sparse thin = ToSparse(x, false);
    const Sparse full = ToSparse(x, true);
    const Sparse mixed = Shuffled(thin, random);
    const Row dense{nullptr, x.data(), x.size()};
    const double expected = Dot(SortedRow(dense), kept.row());
    EXPECT_NEAR(expected, plain, 1e-12);
    for (const Row& form : {thin.row(), full.row(), mixed.row()})
      EXPECT_EQ(std::bit_cast<uint64_t>(Dot(SortedRow(form), kept.row())),
                std::bit_cast<uint64_t>(expected));
  }
}

TEST(SortedRowDot, AbsentValuesAreOnes) {
  const std::vector<uint32_t> indices = {1, 4, 9};
  const std::vector<float> values = {2, 3, 5};
  const Row ones{indices.data(), nullptr, 3};
  const Row row{indices.data(), values.data(), 3};
  EXPECT_EQ(Dot(SortedRow(ones), row), 10);
  EXPECT_EQ(Dot(SortedRow(row), ones), 10);
  EXPECT_EQ(Dot(SortedRow(ones), ones), 3);
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
