#include "client/format/format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <string>

namespace perceptrond::client {
namespace {

// The value of the whole text; NaN if it is no number.
float Value(const std::string& text) {
  float value = 0;
  return ParseWholeFloat(text, &value) ? value : std::nanf("");
}

TEST(Number, ReadsWhatFilesHold) {
  EXPECT_EQ(Value("1"), 1);
  EXPECT_EQ(Value("+1"), 1);
  EXPECT_EQ(Value("-.5"), -.5f);
  EXPECT_EQ(Value("5."), 5);
  EXPECT_EQ(Value("1e3"), 1000);
  EXPECT_EQ(Value("0.056443"), 0.056443f);
  EXPECT_EQ(Value("00012.50"), 12.5f);
  EXPECT_EQ(Value("123456789.123456789"), 123456789.123456789f);
  EXPECT_EQ(Value("0.00000000000000000001"), 1e-20f);
  EXPECT_EQ(Value("3.4028234e38"), 3.4028234e38f);
}

TEST(Number, RefusesWhatIsNoFiniteNumber) {
  for (const char* text : {"", "-", "+", ".", "e5", "1e", "nan", "inf", "-inf", "1e39", "-1e400",
                           "1x", " 1", "1 ", "--1", "+-1", "0x10", "1,5"}) {
    EXPECT_TRUE(std::isnan(Value(text))) << text << " was read as " << Value(text);
  }
}

TEST(Number, TakesWhatIsTooSmallForZero) {
  EXPECT_EQ(Value("1e-60"), 0);
  EXPECT_EQ(Value("-1e-400"), 0);
}

TEST(Number, RoundsAsTheStandardLibraryDoes) {
  std::mt19937 random(1);
  for (int i = 0; i < 200'000; ++i) {
    std::string text = random() % 2 == 0 ? "-" : "";
    for (uint32_t digits = 1 + random() % 9; digits > 0; --digits) {
      text.push_back(static_cast<char>('0' + random() % 10));
    }
    if (random() % 4 != 0) {
      text.push_back('.');
      for (uint32_t digits = random() % 12; digits > 0; --digits) {
        text.push_back(static_cast<char>('0' + random() % 10));
      }
    }
    if (random() % 4 == 0) text += "e" + std::to_string(static_cast<int>(random() % 40) - 25);
    ASSERT_EQ(Value(text), std::strtof(text.c_str(), nullptr)) << text;
  }
}

}  // namespace
}  // namespace perceptrond::client
