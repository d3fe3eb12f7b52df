// The rows a learner keeps: a queue, whatever comes and goes.
#include "core/learner/row_store.h"

#include <deque>
#include <limits>
#include <map>
#include <random>

#include "gtest/gtest.h"

namespace perceptrond {
namespace {

using Kept = std::pair<std::map<uint32_t, float>, double>;

std::map<uint32_t, float> Features(const Row& row) {
  std::map<uint32_t, float> features;
  for (size_t i = 0; i < row.size; ++i) {
    EXPECT_TRUE(i == 0 || row.index(i - 1) < row.index(i));
    EXPECT_NE(row.value(i), 0);
    features[row.index(i)] = row.value(i);
  }
  return features;
}

void ExpectHolds(const RowStore& store, const std::deque<Kept>& expected) {
  ASSERT_EQ(store.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(Features(store.row(i)), expected[i].first);
    EXPECT_EQ(store.coefficient(i), expected[i].second);
  }
}

TEST(RowStore, IsAQueueOfSortedRowsWithoutZeros) {
  std::mt19937 random(1);
  RowStore store;
  std::deque<Kept> expected;
  for (int n = 0; n < 3000; ++n) {
    const bool push = expected.empty() || random() % 5 < (n < 1500 ? 3U : 2U);
    if (push) {
      std::vector<uint32_t> indices;
      std::vector<float> values;
      Kept kept{{}, static_cast<double>(n)};
      for (uint32_t i = 0; i < random() % 9; ++i) {
        const uint32_t index = 10 * i + random() % 10;
        const auto value = static_cast<float>(static_cast<int>(random() % 5) - 2);
        // In any order.
        const bool front = random() % 2 == 0;
        indices.insert(front ? indices.begin() : indices.end(), index);
        values.insert(front ? values.begin() : values.end(), value);
        if (value != 0) kept.first[index] = value;
      }
      store.Push({indices.empty() ? kNoIndices : indices.data(), values.data(), values.size()}, n);
      expected.push_back(kept);
    } else {
      store.Pop();
      expected.pop_front();
    }
    if (random() % 50 == 0) {
      store.Scale(0.5);
      for (Kept& kept : expected) kept.second *= 0.5;
    }
    if (n % 20 == 0) ExpectHolds(store, expected);
  }
  while (!expected.empty()) {
    store.Pop();
    expected.pop_front();
  }
  EXPECT_TRUE(store.empty());
}

TEST(RowStore, MemoryStaysInProportionToWhatIsKept) {
  const std::vector<float> dense(100, 1.0F);
  RowStore store;
  for (int n = 0; n < 10'000; ++n) {
    store.Push({nullptr, dense.data(), dense.size()}, 1);
    if (store.size() > 10) store.Pop();
  }
  EXPECT_LE(store.memory_bytes(), 25U * 100 * 8);
}

size_t InColumns(const RowStore& store) {
  size_t rows = 0;
  for (size_t i = 0; i < store.size(); ++i) rows += store.block(i).columns != nullptr ? 1 : 0;
  return rows;
}

TEST(RowStore, BlocksAreForDenseRowsOnlyAndTakeAtMostAsMuchAgain) {
  // Rows have the last of 40 features; those with fewer than 20 are sparse.
  for (const uint32_t features : {1, 19, 20, 40}) {
    RowStore plain;
    RowStore blocks;
    blocks.KeepBlocks();
    std::vector<float> row(40);
    for (uint32_t i = 0; i < features; ++i) row[39 - i] = 1;
    for (int n = 0; n < 160; ++n) {
      plain.Push({nullptr, row.data(), row.size()}, 1);
      blocks.Push({nullptr, row.data(), row.size()}, 1);
    }
    EXPECT_EQ(InColumns(blocks), features < 20 ? 0U : 160U);
    const size_t more = blocks.memory_bytes() - plain.memory_bytes();
    EXPECT_EQ(more, features < 20 ? 0 : 160 * 40 * sizeof(float));
    EXPECT_LE(more, 160 * features * 8);
    while (!blocks.empty()) blocks.Pop();
    EXPECT_EQ(blocks.memory_bytes(), 0U);
  }
  // Wider ones would take long to multiply at once.
  RowStore wide;
  wide.KeepBlocks();
  const std::vector<float> row(RowStore::kWidestBlock + 1, 1.0F);
  for (size_t n = 0; n < simd::kRowsInBlock; ++n) wide.Push({nullptr, row.data(), row.size()}, 1);
  EXPECT_EQ(InColumns(wide), 0U);
}

TEST(RowStore, WhatIsNoNumberOrLiesOutsideIsNotSound) {
  const std::vector<uint32_t> index = {7};
  const auto store = [&](float value, double coefficient) {
    RowStore rows;
    rows.Push({index.data(), &value, 1}, coefficient);
    return rows;
  };
  EXPECT_TRUE(store(1, 1).IsSound(8));
  EXPECT_FALSE(store(1, 1).IsSound(7));
  EXPECT_FALSE(store(std::numeric_limits<float>::infinity(), 1).IsSound(8));
  EXPECT_FALSE(store(1, std::numeric_limits<double>::quiet_NaN()).IsSound(8));
}

}  // namespace
}  // namespace perceptrond
