// Lines of a label and a text.
#include <gtest/gtest.h>

#include <random>

#include "client/format/format.h"
#include "tests/client/format_fixture.h"

namespace perceptrond::client::format_test {
namespace {

TEST(Text, CountsWordsInLowerCase) {
  FormatOptions options = Options(FormatKind::kText);
  options.labels.names = {"ham", "spam"};
  const auto format = Make(options);
  const Row row = Parsed(format.get(), "spam\tFree! don't free caf\xc3\xa9 7x\tmore");
  EXPECT_EQ(row.label, 1);
  EXPECT_EQ(Features(row),
            (Map{{"free", 2}, {"don't", 1}, {"caf\xc3\xa9", 1}, {"7x", 1}, {"more", 1}}));
  EXPECT_EQ(Parsed(format.get(), "ham\t ...").name_count(), 0u);
  Error(format.get(), "no tab at all");
  Error(format.get(), "eggs\tand text");
}

TEST(Text, LeavesTextsWholeForAModelThatTakesThem) {
  FormatOptions options = Options(FormatKind::kText);
  options.whole_texts = true;
  const auto format = Make(options);
  const Row row = Parsed(format.get(), "-1\tOK\tlar... Joking");
  EXPECT_EQ(row.kind, RowKind::kText);
  EXPECT_EQ(row.text, "OK\tlar... Joking");
  EXPECT_EQ(row.label, -1);
  EXPECT_EQ(row.name_count(), 0U);
}

// Words are found eight bytes at a time; a byte at a time finds the same.
TEST(Ids, AreIdAndLabelWithAHeaderOrWithout) {
  FormatOptions options = Options(FormatKind::kIds);
  options.labels.names = {"ham", "spam"};
  const auto ids = Make(options);
  EXPECT_TRUE(Nothing(ids.get(), "prediction_id,label"));
  const Row row = Parsed(ids.get(), "0.1.2a.ff,spam");
  EXPECT_EQ(row.kind, RowKind::kPredictionId);
  EXPECT_EQ(row.text, "0.1.2a.ff");
  EXPECT_EQ(row.label, 1);
  EXPECT_EQ(Parsed(ids.get(), "0.1.2b.ff\t-1").label, -1);
  EXPECT_EQ(Error(ids.get(), "0.1.2a.ff"), "\"0.1.2a.ff\" is not prediction_id,label");
  Error(ids.get(), "0.1.2a.ff,eggs");
  Error(ids.get(), ",spam");
}

TEST(Text, FindsTheWordsOfAnyBytes) {
  FormatOptions options = Options(FormatKind::kText);
  options.require_label = false;
  const auto format = Make(options);
  std::mt19937 random(9);
  for (int i = 0; i < 3000; ++i) {
    std::string line(1, 'x');
    for (uint32_t n = random() % 40; n > 0; --n) {
      const auto byte = static_cast<char>(random() % 256);
      line.push_back(random() % 3 != 0 ? "aZz9A0'm"[random() % 8] : byte == '\t' ? ' ' : byte);
    }
    Map words;
    std::string word;
    for (const char c : line + " ") {
      const auto byte = static_cast<unsigned char>(c);
      if (byte >= 0x80 || c == '\'' || std::isalnum(byte) != 0) {
        word.push_back(byte < 0x80 ? static_cast<char>(std::tolower(byte)) : c);
      } else if (!word.empty()) {
        ++words[std::exchange(word, "")];
      }
    }
    EXPECT_EQ(Features(Parsed(format.get(), line)), words) << line;
  }
}

TEST(Text, IsAllTextWhereNoLabelIsRequired) {
  FormatOptions options = Options(FormatKind::kText);
  options.require_label = false;
  EXPECT_EQ(Features(Parsed(Make(options).get(), "Win now")), (Map{{"win", 1}, {"now", 1}}));
}

TEST(Text, IsAllOfALineThatHasNoLabelBeforeItsTab) {
  FormatOptions options = Options(FormatKind::kText);
  options.labels.names = {"ham", "spam"};
  options.require_label = false;
  const auto format = Make(options);
  for (const char* line : {"Win\tnow", "\twin now", "win now\t", "win\tspam\tnow"}) {
    const Row row = Parsed(format.get(), line);
    EXPECT_FALSE(row.has_label()) << line;
    Map expected = {{"win", 1}, {"now", 1}};
    if (std::string_view(line).find("spam") != std::string_view::npos) expected["spam"] = 1;
    EXPECT_EQ(Features(row), expected) << line;
  }
  const Row labelled = Parsed(format.get(), "spam\twin now");
  EXPECT_EQ(labelled.label, 1);
  EXPECT_EQ(Features(labelled), (Map{{"win", 1}, {"now", 1}}));
}

TEST(Text, SaysADifferentLabelWhereClassesComeUpByName) {
  FormatOptions options = Options(FormatKind::kText);
  options.labels.new_names = true;
  options.labels.max_classes = 10;
  options.require_label = false;
  const Row row = Parsed(Make(options).get(), "tea\thot leaves");
  EXPECT_EQ(row.label_name, "tea");
  EXPECT_EQ(Features(row), (Map{{"hot", 1}, {"leaves", 1}}));
}

}  // namespace
}  // namespace perceptrond::client::format_test
