#include "client/ctl/commands/shuffled_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

namespace perceptrond::client {
namespace {

InputRow Numbered(uint64_t number) {
  InputRow row;
  row.row.indices = {0};
  row.tag = number;
  return row;
}

std::vector<uint64_t> Order(ShuffledRows& rows, int64_t pass) {
  rows.Shuffle(pass);
  std::vector<uint64_t> order;
  for (size_t i = 0; i < rows.size(); ++i) order.push_back(rows[i].tag);
  return order;
}

ShuffledRows Rows(uint64_t seed, uint64_t count) {
  ShuffledRows rows(seed);
  for (uint64_t i = 0; i < count; ++i) EXPECT_TRUE(rows.Add(Numbered(i)));
  return rows;
}

TEST(ShuffledRows, SeedAndPassAloneSayWhichOrder) {
  ShuffledRows rows = Rows(1, 50);
  const std::vector<uint64_t> third = Order(rows, 3);
  EXPECT_NE(Order(rows, 4), third);
  EXPECT_EQ(Order(rows, 3), third);
  ShuffledRows again = Rows(1, 50);
  EXPECT_EQ(Order(again, 3), third);
  ShuffledRows other = Rows(2, 50);
  EXPECT_NE(Order(other, 3), third);
  EXPECT_EQ(std::set<uint64_t>(third.begin(), third.end()).size(), 50U);
}

// Pearson's statistic of the 24 orders of four rows over 24,000 passes: chi squared with 23 degrees of
// freedom exceeds 60 with a probability below 0.0001.
TEST(ShuffledRows, EachOrderIsEquallyLikely) {
  ShuffledRows rows = Rows(7, 4);
  std::map<std::vector<uint64_t>, int> seen;
  for (int64_t pass = 1; pass <= 24'000; ++pass) ++seen[Order(rows, pass)];
  ASSERT_EQ(seen.size(), 24U);
  double statistic = 0;
  for (const auto& [order, count] : seen) statistic += (count - 1000) * (count - 1000) / 1000.0;
  EXPECT_LT(statistic, 60);
}

TEST(ShuffledRows, TakesNoMoreThanItMay) {
  ShuffledRows rows(1, 10 * sizeof(InputRow));
  int added = 0;
  while (rows.Add(Numbered(0))) ++added;
  EXPECT_GT(added, 5);
  EXPECT_LT(added, 10);
}

}  // namespace
}  // namespace perceptrond::client
