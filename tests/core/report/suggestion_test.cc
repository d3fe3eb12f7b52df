#include "core/report/suggestion.h"

#include <gtest/gtest.h>

namespace perceptrond {
namespace {

TEST(SuggestWord, FindsTheWordOfATypingError) {
  const std::vector<std::string> commands = {"create", "learn", "list", "predict"};
  EXPECT_EQ(SuggestWord("lern", commands), "learn");
  EXPECT_EQ(SuggestWord("laern", commands), "learn");
  EXPECT_EQ(SuggestWord("lst", commands), "list");
  EXPECT_EQ(SuggestWord("predikt", commands), "predict");
  EXPECT_EQ(SuggestWord("creates", commands), "create");
}

TEST(SuggestWord, FindsTheNearestAndOfEqualOnesTheFirst) {
  EXPECT_EQ(SuggestWord("--pases", {"--producer", "--passes-before", "--passes"}), "--passes");
  EXPECT_EQ(SuggestWord("cart", {"card", "care"}), "card");
  EXPECT_EQ(SuggestWord("card", {"care", "card"}), "card");
}

TEST(SuggestWord, SuggestsNothingThatIsFarOff) {
  EXPECT_EQ(SuggestWord("frobnicate", {"create", "freeze"}), "");
  EXPECT_EQ(SuggestWord("ab", {"xy"}), "");
  EXPECT_EQ(SuggestWord("x", {"y", "xyz"}), "");
  EXPECT_EQ(SuggestWord("", {"a", ""}), "");
  EXPECT_EQ(SuggestWord("learn", {}), "");
}

// By hand: one exchange of neighbours is one edit, of letters apart two.
TEST(SuggestWord, CountsAnExchangeOfNeighboursAsOneEdit) {
  EXPECT_EQ(SuggestWord("abc", {"acb"}), "acb");
  EXPECT_EQ(SuggestWord("abc", {"cba"}), "");
}

}  // namespace
}  // namespace perceptrond
