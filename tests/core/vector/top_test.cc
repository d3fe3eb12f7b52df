// The best few of many values.
#include "core/vector/top.h"

#include <algorithm>
#include <functional>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace perceptrond {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Top, AnswersWithWhatItDoesNotHold) {
  Top<int, std::greater<>> top(2);
  EXPECT_EQ(top.Offer(3), std::nullopt);
  EXPECT_EQ(top.Offer(9), std::nullopt);
  EXPECT_EQ(top.Offer(1), 1);
  EXPECT_EQ(top.Offer(7), 3);
  EXPECT_THAT(top.Take(), ElementsAre(9, 7));
}

TEST(Top, HoldsNothingWithALimitOfZero) {
  Top<int, std::greater<>> top(0);
  EXPECT_EQ(top.Offer(3), 3);
  EXPECT_THAT(top.Take(), IsEmpty());
}

TEST(Top, IsTheBeginningOfAStableSort) {
  using Value = std::pair<int, int>;
  const auto larger = [](const Value& a, const Value& b) { return a.first > b.first; };
  std::mt19937 random(1);
  for (const size_t limit : {0, 1, 7, 50, 100, 200}) {
    std::vector<Value> values;
    for (int i = 0; i < 100; ++i) values.emplace_back(static_cast<int>(random() % 10), i);
    std::vector<Value> expected = values;
    std::stable_sort(expected.begin(), expected.end(), larger);
    expected.resize(std::min(limit, expected.size()));
    Top<Value, decltype(larger)> top(limit, larger);
    for (const Value& value : values) top.Offer(value);
    EXPECT_EQ(top.Take(), expected);
  }
}

}  // namespace
}  // namespace perceptrond
