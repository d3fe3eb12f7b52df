// Inner products of rows with rows: against plain sums, and the same bits in every form.
#include "core/vector/sorted_row.h"

#include <algorithm>
#include <bit>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace perceptrond {
namespace {

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

TEST(SortedRowDot, NothingInCommonIsNothing) {
  const Row none{kNoIndices, nullptr, 0};
  const std::vector<uint32_t> indices = {2};
  const std::vector<float> values = {3};
  EXPECT_EQ(Dot(SortedRow(none), {indices.data(), values.data(), 1}), 0);
  EXPECT_EQ(Dot(SortedRow({indices.data(), values.data(), 1}), none), 0);
}

}  // namespace
}  // namespace perceptrond
