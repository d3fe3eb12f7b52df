// Every unit that the machine has, against plain loops.
#include "client/simd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "client/format/format.h"
#include "client/format/scan.h"

namespace perceptrond::client {
namespace {

class Simd : public testing::TestWithParam<const simd::Loops*> {};

std::vector<char> RandomBytes(std::mt19937& random, size_t size) {
  std::vector<char> bytes(size);
  for (char& c : bytes) {
    const std::string frequent = " \t|:aZz@[`{'09/";
    c = random() % 2 == 0 ? frequent[random() % frequent.size()] : static_cast<char>(random());
  }
  return bytes;
}

TEST_P(Simd, FindsStopsAndColons) {
  std::mt19937 random(1);
  for (const size_t blocks : {1u, 2u, 7u}) {
    const std::vector<char> text = RandomBytes(random, blocks * simd::kBlock);
    std::vector<uint64_t> stops(blocks + simd::kMaskSlack);
    std::vector<uint64_t> colons(blocks + simd::kMaskSlack);
    GetParam()->find_stops(text.data(), blocks, stops.data(), colons.data());
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      EXPECT_EQ((stops[i / 64] >> i % 64 & 1) != 0, c == ' ' || c == '\t' || c == '|');
      EXPECT_EQ((colons[i / 64] >> i % 64 & 1) != 0, c == ':');
    }
  }
}

std::string RandomNumber(std::mt19937& random) {
  std::string number;
  // Most are numbers; some have signs, exponents, two points or letters.
  const std::string bytes = random() % 4 == 0 ? "0123456789..-+eEx:\xff" : "0123456789";
  for (size_t n = random() % 11; n > 0; --n) number.push_back(bytes[random() % bytes.size()]);
  if (!number.empty() && random() % 2 == 0) number[random() % number.size()] = '.';
  return number;
}

TEST_P(Simd, ReadsNumbersAsTheirReaderDoesOrLeavesThem) {
  std::mt19937 random(3);
  size_t read = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::string> numbers;
    std::vector<uint64_t> eights;
    std::vector<uint64_t> sizes;
    for (size_t n = random() % 20; n > 0; --n) {
      numbers.push_back(i % 2 == 0 ? "1" : RandomNumber(random));
      const std::string before = "x1234.78" + numbers.back();
      eights.push_back(LoadEight(before.data() + before.size() - 8));
      sizes.push_back(numbers.back().size());
    }
    std::vector<float> values(numbers.size());
    GetParam()->read_numbers(eights.data(), sizes.data(), numbers.size(), values.data());
    for (size_t n = 0; n < numbers.size(); ++n) {
      float expected = 0;
      const bool is_number = ParseWholeFloat(numbers[n], &expected);
      if (numbers[n] == "1") {
        EXPECT_EQ(values[n], 1);
      }
      if (std::isnan(values[n])) continue;
      ++read;
      ASSERT_TRUE(is_number) << numbers[n];
      ASSERT_EQ(values[n], expected) << numbers[n];
    }
  }
  EXPECT_GT(read, 10'000u);
}

TEST_P(Simd, RanksKeys) {
  std::mt19937 random(4);
  for (size_t count = 0; count <= simd::kMostRanked; ++count) {
    std::vector<uint32_t> keys(count);
    for (uint32_t& key : keys) key = static_cast<uint32_t>(random()) >> random() % 32;
    std::vector<uint32_t> ranks(count + simd::kRankSlack);
    keys.resize(ranks.size());
    GetParam()->rank(keys.data(), count, ranks.data());
    keys.resize(count);
    for (size_t i = 0; i < count; ++i) {
      const auto below =
          std::count_if(keys.begin(), keys.end(), [&](uint32_t key) { return key < keys[i]; });
      ASSERT_EQ(ranks[i], below);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Units, Simd, testing::ValuesIn(simd::Units()),
                         [](const auto& unit) { return std::string(unit.param->unit); });

}  // namespace
}  // namespace perceptrond::client
