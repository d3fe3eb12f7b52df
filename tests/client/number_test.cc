#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>

#include "client/format/format.h"

namespace perceptrond::client {
namespace {

// The value of the whole text; NaN if it is no number.
float Value(const std::string& text) {
  float value = 0;
  return ParseWholeFloat(text, &value) ? value : std::nanf("");
}

TEST(Number, IsADecimalNumberThatIsFinite) {
  for (const auto& [text, value] : std::initializer_list<std::pair<const char*, float>>{
           {"1", 1},
           {"+1", 1},
           {"-.5", -.5F},
           {"5.", 5},
           {"1e3", 1000},
           {"00012.50", 12.5F},
           {"123456789.123456789", 123456789.123456789F},
           {"0.00000000000000000001", 1e-20F},
           {"3.4028234e38", 3.4028234e38F},
           {"1e-60", 0},
           {"-1e-400", 0}})
    EXPECT_EQ(Value(text), value) << text;
  for (const char* text : {"", "-", "+", ".", "e5", "1e", "nan", "inf", "-inf", "1e39", "-1e400",
                           "1x", " 1", "1 ", "--1", "+-1", "0x10", "1,5"})
    EXPECT_TRUE(std::isnan(Value(text))) << text << " was read as " << Value(text);
}

TEST(Number, IsRoundedAsTheStandardLibraryDoes) {
  std::mt19937 random(1);
  for (int i = 0; i < 200'000; ++i) {
    std::string text = random() % 2 == 0 ? "-" : "";
    for (uint32_t digits = 1 + random() % 9; digits > 0; --digits)
      text.push_back(static_cast<char>('0' + random() % 10));
    if (random() % 4 != 0) {
      text.push_back('.');
      for (uint32_t digits = random() % 12; digits > 0; --digits)
        text.push_back(static_cast<char>('0' + random() % 10));
    }
    if (random() % 4 == 0) text += "e" + std::to_string(static_cast<int>(random() % 40) - 25);
    ASSERT_EQ(Value(text), std::strtof(text.c_str(), nullptr)) << text;
  }
}

}  // namespace
}  // namespace perceptrond::client
