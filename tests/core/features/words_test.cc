#include "core/features/words.h"

#include <gtest/gtest.h>

#include <cctype>
#include <random>
#include <string>
#include <string_view>

namespace perceptrond {
namespace {

// The words with '|' between them.
std::string WordsOf(std::string_view text, TextSplitter::Path path = TextSplitter::Path::kFastest) {
  TextSplitter splitter;
  EXPECT_TRUE(splitter.Split({text.data(), text.size()}, path));
  std::string words;
  for (const TextSplitter::Word& word : splitter.words()) {
    if (!words.empty()) words += '|';
    words += std::string(splitter.folded().substr(word.begin, word.end - word.begin));
  }
  return words;
}

struct Sample {
  std::string_view text;
  std::string_view words;
};

// The words by Python's unicodedata (NFKC, casefold) and the package regex, (?V1w)\b.
constexpr Sample kPythonSamples[] = {
    {"Go until jurong point, crazy.. Available only", "go|until|jurong|point|crazy|available|only"},
    {"FA Cup fina tkts 21st May 2005.", "fa|cup|fina|tkts|21st|may|2005"},
    {"you won \u00a3900 prize reward!", "you|won|\u00a3|900|prize|reward"},
    {"don't call 08712 300220 at 3.50pm", "don't|call|08712|300220|at|3.50pm"},
    {"www.example.com/x?y=1 1,000.50 e_mail x-ray",
     "www.example.com|x|y|=|1|1,000.50|e_mail|x|ray"},
    {"Stra\u00dfe \u038c\u03a3\u039f\u03a3 \ufb01ne \u2460\u2461 \uff26\uff52\uff45\uff45",
     "strasse|\u03cc\u03c3\u03bf\u03c3|fine|12|free"},
    {"na\u00efve cafe\u0301 \u00c5ngstr\u00f6m", "na\u00efve|caf\u00e9|\u00e5ngstr\u00f6m"},
    {"\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!",
     "\u043f\u0440\u0438\u0432\u0435\u0442|\u043c\u0438\u0440"},
    {"\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd",
     "\u05e9\u05dc\u05d5\u05dd|\u05e2\u05d5\u05dc\u05dd"},
    {"\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e",
     "\u0928\u092e\u0938\u094d\u0924\u0947|\u0926\u0941\u0928\u093f\u092f\u093e"},
    {"\u0633\u0644\u0627\u0645 \u062f\u0646\u06cc\u0627",
     "\u0633\u0644\u0627\u0645|\u062f\u0646\u06cc\u0627"},
    {"O\u2019Neill's 'quoted' rock'n'roll", "o\u2019neill's|quoted|rock'n'roll"},
    {"x\u00b2+y\u00b3", "x2|+|y3"},
    {"a\tb\n\nc   d", "a|b|c|d"},
    {"\U0001f600 ...", "\U0001f600"},
    {"", ""},
};

TEST(TextSplitter, SplitsAsPythonsImplementationDoes) {
  for (const Sample& sample : kPythonSamples)
    EXPECT_EQ(WordsOf(sample.text), sample.words) << sample.text;
}

TEST(TextSplitter, RemovesIgnorableCharactersThatHideAWord) {
  EXPECT_EQ(WordsOf("F\u200bR\u00adE\u200dE"), "free");
}

TEST(TextSplitter, SplitsRandomAsciiAsIcuDoes) {
  std::mt19937 random(1);
  const std::string_view likely = "aZ09_.,;:'@\"-/ $";
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (uint32_t size = random() % 24; size > 0; --size)
      text +=
          random() % 8 == 0 ? static_cast<char>(random() % 128) : likely[random() % likely.size()];
    ASSERT_EQ(WordsOf(text), WordsOf(text, TextSplitter::Path::kIcu)) << text;
  }
}

TEST(TextSplitter, RefusesWhatIsNotUtf8) {
  TextSplitter splitter;
  EXPECT_FALSE(splitter.Split("prize \xff"));
  EXPECT_FALSE(splitter.Split("\xc3"));
  EXPECT_FALSE(splitter.Split("\xed\xa0\x80"));
  EXPECT_TRUE(splitter.words().empty());
  EXPECT_TRUE(splitter.Split("prize"));
  EXPECT_EQ(splitter.words().size(), 1U);
}

TEST(JoinCharacters, KeepsOneSpaceForEachRunOfWhiteSpace) {
  std::string joined;
  std::vector<uint32_t> ends;
  JoinCharacters(" \t a\u00e9\n\r b ", joined, ends);
  EXPECT_EQ(joined, "a\u00e9 b");
  EXPECT_EQ(ends, (std::vector<uint32_t>{1, 3, 4, 5}));
  JoinCharacters("  ", joined, ends);
  EXPECT_EQ(joined, "");
  EXPECT_TRUE(ends.empty());
}

}  // namespace
}  // namespace perceptrond
