#include "client/format/format.h"

#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <random>
#include <utility>

#include "tests/client/format_fixture.h"

namespace perceptrond::client::format_test {
namespace {

TEST(Svmlight, ReadsLabelAndFeaturesFromTheStatedBase) {
  const auto format = Make(Options(FormatKind::kSvmlight));
  const Row row = Parsed(format.get(), "-1 1:0.5\t7:-2e1  # 9:9");
  EXPECT_EQ(row.label, -1);
  EXPECT_EQ(row.indices, (std::vector<uint32_t>{0, 6}));
  EXPECT_EQ(row.values, (std::vector<float>{.5f, -20}));
  FormatOptions zero = Options(FormatKind::kSvmlight);
  zero.index_base = 0;
  EXPECT_EQ(Parsed(Make(zero).get(), "+1 0:2").indices, std::vector<uint32_t>{0});
  EXPECT_EQ(Parsed(Make(zero).get(), "1 4294967295:2").indices, std::vector<uint32_t>{4294967295});
}

TEST(Svmlight, DemandsAnIndexBaseAndExplainsWhy) {
  FormatOptions options = Options(FormatKind::kSvmlight);
  options.index_base.reset();
  const auto format = MakeFormat(options);
  ASSERT_TRUE(absl::IsInvalidArgument(format.status()));
  EXPECT_NE(std::string(format.status().message()).find("--index-base"), std::string::npos);
  options.index_base = 2;
  EXPECT_FALSE(MakeFormat(options).ok());
}

TEST(Svmlight, LeavesOutValuesWhereAllAreOne) {
  const auto format = Make(Options(FormatKind::kSvmlight));
  EXPECT_TRUE(Parsed(format.get(), "1 2:1 3:1.0").values.empty());
}

TEST(Svmlight, PassesOverEmptyLinesAndComments) {
  const auto format = Make(Options(FormatKind::kSvmlight));
  EXPECT_TRUE(Nothing(format.get(), ""));
  EXPECT_TRUE(Nothing(format.get(), " \t"));
  EXPECT_TRUE(Nothing(format.get(), "# all of it"));
  EXPECT_TRUE(Parsed(format.get(), "+1").indices.empty()) << "a label alone is an example";
}

TEST(Svmlight, RefusesMalformedLines) {
  const auto format = Make(Options(FormatKind::kSvmlight));
  EXPECT_NE(Error(format.get(), "1 0:1").find("--index-base 1"), std::string::npos);
  for (const char* line : {"1 2", "1 2:", "1 :3", "1 2:nan", "1 2:inf", "1 2:1e39", "1 2:1x",
                           "1 x:1", "1 -2:1", "1 4294967296:1", "1 2:3:4", "1 qid:3 2:1", "2:1",
                           "maybe 2:1", "2 2:1", "nan 2:1", "0 2:1"}) {
    Error(format.get(), line);
  }
}

TEST(Svmlight, NeedsNoLabelToPredict) {
  FormatOptions options = Options(FormatKind::kSvmlight);
  options.require_label = false;
  const auto format = Make(options);
  EXPECT_EQ(Parsed(format.get(), "2:1 5:3").indices, (std::vector<uint32_t>{1, 4}));
  EXPECT_EQ(Parsed(format.get(), "? 2:1").label, Row::kNoLabel);
  EXPECT_EQ(Parsed(format.get(), "-1 2:1").label, -1);
}

TEST(Labels, AreNamesOrSignsAndZeroOnlyWhereStated) {
  LabelRule rule;
  rule.names = {"ham", "spam"};
  EXPECT_EQ(*ParseLabel(rule, "ham"), -1);
  EXPECT_EQ(*ParseLabel(rule, "spam"), 1);
  EXPECT_EQ(*ParseLabel(rule, "-1.0"), -1);
  EXPECT_EQ(*ParseLabel(rule, "+1"), 1);
  EXPECT_FALSE(ParseLabel(rule, "eggs").ok());
  const auto zero = ParseLabel(rule, "0");
  EXPECT_NE(std::string(zero.status().message()).find("--zero-is-negative"), std::string::npos);
  rule.zero_is_negative = true;
  EXPECT_EQ(*ParseLabel(rule, "0"), -1);
}

TEST(Labels, ZeroMeansMinusOneWhereMinusOneDoesNotOccur) {
  LabelsSeen seen;
  LabelRule rule;
  rule.seen = &seen;
  EXPECT_EQ(*ParseLabel(rule, "1"), 1);
  EXPECT_FALSE(seen.zero);
  EXPECT_EQ(*ParseLabel(rule, "0"), -1);
  EXPECT_TRUE(seen.zero);
  EXPECT_EQ(*ParseLabel(rule, "0.0"), -1);
  EXPECT_NE(
      std::string(ParseLabel(rule, "-1").status().message()).find("label -1 beside the label 0"),
      std::string::npos);

  LabelsSeen signs;
  rule.seen = &signs;
  EXPECT_EQ(*ParseLabel(rule, "-1"), -1);
  EXPECT_NE(
      std::string(ParseLabel(rule, "0").status().message()).find("label 0 beside the label -1"),
      std::string::npos);
  rule.zero_is_negative = true;
  EXPECT_EQ(*ParseLabel(rule, "0"), -1);

  LabelRule kept;
  kept.keep_zero = true;
  EXPECT_EQ(*ParseLabel(kept, "0"), 0);
  EXPECT_EQ(*ParseLabel(kept, "-1"), -1);
}

TEST(Format, IsThatOfTheFileInsideACompressedOne) {
  EXPECT_EQ(FormatByExtension("a.svm.gz"), FormatKind::kSvmlight);
  EXPECT_EQ(FormatByExtension("a.tsv.zst"), FormatKind::kText);
  EXPECT_EQ(FormatByExtension("a.gz"), std::nullopt);
  EXPECT_EQ(FormatByExtension("gz"), std::nullopt);
}

TEST(Labels, WhereANameIsANumberANumberIsANameOrNothing) {
  LabelRule rule;
  rule.names = {"1", "2"};
  EXPECT_EQ(*ParseLabel(rule, "1"), -1);
  EXPECT_EQ(*ParseLabel(rule, "2"), 1);
  for (const char* other : {"1.0", "+1", "-1", "0"}) EXPECT_FALSE(ParseLabel(rule, other).ok());
}

TEST(JsonLines, ANumberIsALabelsNumberWhateverItsName) {
  FormatOptions options = Options(FormatKind::kJsonl);
  options.labels.names = {"1", "2"};
  const auto format = Make(options);
  EXPECT_EQ(Parsed(format.get(), R"({"dense": {"values": [1]}, "label": 1})").label, 1);
  EXPECT_EQ(Parsed(format.get(), R"({"dense": {"values": [1]}, "labelName": "1"})").label, -1);
}

TEST(Vw, NamesFeaturesByTheirNamespaceAndMultipliesByItsWeight) {
  const auto format = Make(Options(FormatKind::kVw));
  const Row row = Parsed(format.get(), "1 1.0 'tag|words:2 free win:3 | plain |info len:-4.5");
  EXPECT_EQ(row.label, 1);
  EXPECT_EQ(Features(row),
            (Map{{"words^free", 2}, {"words^win", 6}, {"plain", 1}, {"info^len", -4.5f}}));
}

TEST(Vw, KnowsLabelsFromTags) {
  const auto format = Make(Options(FormatKind::kVw));
  EXPECT_EQ(Parsed(format.get(), "-1 |f a").label, -1);
  EXPECT_EQ(Parsed(format.get(), "-1 tag|f a").label, -1);
  EXPECT_EQ(Parsed(format.get(), "-1 'tag |f a").label, -1);
  EXPECT_NE(Error(format.get(), "1|f a").find("tag"), std::string::npos);
}

TEST(Vw, TheImportanceIsTheExamplesWeight) {
  const auto format = Make(Options(FormatKind::kVw));
  EXPECT_EQ(Parsed(format.get(), "1 2.5 |f a").weight, 2.5F);
  EXPECT_EQ(Parsed(format.get(), "1 |f a").weight, 1);
  EXPECT_NE(Error(format.get(), "1 0 |f a").find("importance"), std::string::npos);
  EXPECT_NE(Error(format.get(), "1 -2 |f a").find("importance"), std::string::npos);
}

TEST(Vw, RefusesMalformedLines) {
  const auto format = Make(Options(FormatKind::kVw));
  for (const char* line : {"1 a b", "1 |f a:x", "1 |f a:nan", "1 |f:x a", "1 |f :2", "2 |f a",
                           "1 1 1 x |f a", "|f a"}) {
    Error(format.get(), line);
  }
  EXPECT_TRUE(Nothing(format.get(), "  "));
}

TEST(Csv, NamesFeaturesByTheHeader) {
  const auto format = Make(Options(FormatKind::kCsv));
  EXPECT_TRUE(Nothing(format.get(), "a, y ,\"b,\"\"c\""));
  const Row row = Parsed(format.get(), "1.5,-1,\"2\"");
  EXPECT_EQ(row.label, -1);
  EXPECT_EQ(Features(row), (Map{{"a", 1.5f}, {"b,\"c", 2}}));
  EXPECT_EQ(Features(Parsed(format.get(), ",1, 3 ")), (Map{{"b,\"c", 3}})) << "empty is absent";
}

TEST(Csv, FillsDenseRowsInOrder) {
  FormatOptions options = Options(FormatKind::kCsv);
  options.dense = true;
  options.header = false;
  options.label_column = "2";
  options.delimiter = ';';
  const auto format = Make(options);
  const Row row = Parsed(format.get(), "1;-1;3");
  EXPECT_EQ(row.kind, RowKind::kDense);
  EXPECT_EQ(row.label, -1);
  EXPECT_EQ(row.values, (std::vector<float>{1, 3}));
  Error(format.get(), ";1;3");
}

TEST(Csv, RefusesMalformedLines) {
  const auto format = Make(Options(FormatKind::kCsv));
  EXPECT_TRUE(Nothing(format.get(), "a,y"));
  for (const char* line : {"1", "1,1,1", "x,1", "nan,1", "1,2", "\"1,1", "\"1\"x,1", "1,"}) {
    Error(format.get(), line);
  }
}

TEST(Csv, FindsTheQuoteThatIsOpenAtTheEndOfALine) {
  constexpr size_t kBefore = std::string_view::npos;
  const auto format = Make(Options(FormatKind::kCsv));
  for (const char* closed : {"", "a,b", "\"a\",\"\"", "a\"b", "\"\"\"\"", "\"a\"b,\"c", "a,"})
    EXPECT_EQ(format->FindOpenQuote(closed, false), std::nullopt) << closed;
  EXPECT_EQ(format->FindOpenQuote("\"", false), 0U);
  EXPECT_EQ(format->FindOpenQuote("\"a\",\"b,", false), 4U);
  EXPECT_EQ(format->FindOpenQuote("a,\"b\"\"", false), 2U);
  for (const char* open : {"", "a,b", "\"\""})
    EXPECT_EQ(format->FindOpenQuote(open, true), kBefore) << open;
  for (const char* closed : {"\"", "a\",b", "\"\"\",\"\"", "a\"b"})
    EXPECT_EQ(format->FindOpenQuote(closed, true), std::nullopt) << closed;
  EXPECT_EQ(format->FindOpenQuote("a\",\"b", true), 3U);
}

TEST(Csv, ReadsTextsFromTheColumnThatIsGivenAndNoOtherButTheLabel) {
  FormatOptions options = Options(FormatKind::kCsv);
  options.text_column = "message";
  options.labels.names = {"ham", "spam"};
  const auto format = Make(options);
  EXPECT_TRUE(Nothing(format.get(), "sender,y,message"));
  const Row row = Parsed(format.get(), "Bob, spam ,\"Win, \"\"free\"\"\r\n prize!\"");
  EXPECT_EQ(row.kind, RowKind::kText);
  EXPECT_EQ(row.text, "Win, \"free\"\r\n prize!");
  EXPECT_EQ(row.label, 1);
  EXPECT_EQ(Parsed(format.get(), ",ham,").text, "");
  Error(format.get(), "Bob,eggs,hello");
  Error(format.get(), "Bob,ham");
}

TEST(Csv, SaysWhichColumnOfTwoRolesThereIsNot) {
  const auto error = [](const std::string& text_column) {
    FormatOptions options = Options(FormatKind::kCsv);
    options.text_column = text_column;
    Row row;
    const absl::Status status = Make(options)->Parse("a,y", &row).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    return std::string(status.message());
  };
  EXPECT_NE(error("b").find("no column \"b\" for the text"), std::string::npos);
  EXPECT_NE(error("y").find("the same column"), std::string::npos);
  EXPECT_NE(error("2").find("the same column"), std::string::npos);
}

TEST(Csv, SaysWhichColumnsThereAreIfTheLabelsIsNot) {
  Row row;
  const auto format = Make(Options(FormatKind::kCsv));
  const absl::Status status = format->Parse("a,b", &row).status();
  // Other lines cannot be read either: this one is not skipped.
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(status.message(), "there is no column \"y\" for the label: the first line has a, b");
  const absl::Status one = format->Parse("a;y", &row).status();
  EXPECT_NE(one.message().find("has a;y; --delimiter sets the separator"), std::string::npos)
      << one;
  const absl::Status many = format->Parse("a,a,a,a,a,a,a,a,a,a,a,a", &row).status();
  EXPECT_NE(many.message().find(" and 2 more"), std::string::npos) << many;
}

TEST(Csv, FeaturesNeedNamesOfTheirOwnInTheHeader) {
  const auto error = [](const std::string& header, bool dense) {
    FormatOptions options = Options(FormatKind::kCsv);
    options.dense = dense;
    Row row;
    return Make(options)->Parse(header, &row).status();
  };
  EXPECT_EQ(error("a,y,b,a", false).message(),
            "columns 1 and 4 are both named \"a\"; give each a name of its own");
  EXPECT_EQ(error(",y,b", false).message(), "column 1 has no name; name it in the first line");
  // No line could be read: --skip-bad-lines would skip them all.
  EXPECT_TRUE(absl::IsFailedPrecondition(error(",y,b", false)));
  for (const char* header : {"a,y,b,a", ",y,b"}) EXPECT_TRUE(error(header, true).ok()) << header;
}

TEST(Csv, ReadsAHeaderInEachFile) {
  const auto format = Make(Options(FormatKind::kCsv));
  EXPECT_TRUE(Nothing(format.get(), "a,y"));
  format->StartFile();
  EXPECT_TRUE(Nothing(format.get(), "y,b"));
  EXPECT_EQ(Features(Parsed(format.get(), "1,4")), (Map{{"b", 4}}));
}

TEST(Jsonl, ReadsExamplesInAllTheirForms) {
  FormatOptions options = Options(FormatKind::kJsonl);
  options.labels.names = {"ham", "spam"};
  const auto format = Make(options);
  const Row named = Parsed(
      format.get(), R"({"named": {"names": ["a", "b"], "values": [1, 2]}, "labelName": "spam"})");
  EXPECT_EQ(named.label, 1);
  EXPECT_EQ(Features(named), (Map{{"a", 1}, {"b", 2}}));
  const Row sparse = Parsed(format.get(), R"({"sparse": {"indices": [3, 7]}, "label": -1})");
  EXPECT_EQ(sparse.indices, (std::vector<uint32_t>{3, 7}));
  EXPECT_TRUE(sparse.values.empty());
  EXPECT_EQ(Parsed(format.get(), R"({"dense": {"values": [1, 2, 3]}, "label": 1})").values.size(),
            3u);
}

TEST(Jsonl, ReadsTexts) {
  const auto format = Make(Options(FormatKind::kJsonl));
  for (const char* line : {R"({"text": "Win a prize!", "label": 1})",
                           R"({"label": 1, "text": "Win a \u0070rize!"})"}) {
    const Row row = Parsed(format.get(), line);
    EXPECT_EQ(row.kind, RowKind::kText);
    EXPECT_EQ(row.text, "Win a prize!");
    EXPECT_EQ(row.label, 1);
  }
}

TEST(Jsonl, TakesTheIdOfAPrediction) {
  const auto format = Make(Options(FormatKind::kJsonl));
  const Row row = Parsed(format.get(), R"({"predictionId": "0.1.2a.ff", "label": -1})");
  EXPECT_EQ(row.kind, RowKind::kPredictionId);
  EXPECT_EQ(row.text, "0.1.2a.ff");
  EXPECT_EQ(row.label, -1);
}

TEST(Jsonl, RefusesMalformedLines) {
  const auto format = Make(Options(FormatKind::kJsonl));
  for (const char* line : {"{", "[]", R"({"label": 1, "nope": 2})", R"({"label": 3})", "{}",
                           R"({"sparse": {"indices": [1], "values": [1, 2]}, "label": 1})",
                           R"({"sparse": {"indices": [1], "values": [1]}, "label": 1)",
                           R"({"text": "free prize", "sparse": {"indices": [1]}, "label": 1})"}) {
    Error(format.get(), line);
  }
  EXPECT_TRUE(Nothing(format.get(), " "));
}

TEST(Formats, AreGuessedFromFewExtensionsOnly) {
  EXPECT_EQ(FormatByExtension("a/b.svm"), FormatKind::kSvmlight);
  EXPECT_EQ(FormatByExtension("b.svmlight"), FormatKind::kSvmlight);
  EXPECT_EQ(FormatByExtension("b.tsv"), FormatKind::kText);
  EXPECT_EQ(FormatByExtension("b.jsonl"), FormatKind::kJsonl);
  for (const char* path : {"b", "b.text", "b.txt", "b.train", "-", "csv"}) {
    EXPECT_FALSE(FormatByExtension(path).has_value()) << path;
  }
}

// No bytes at all make a parser crash, or accept a value that is not finite.
TEST(Formats, SurviveAnyBytes) {
  std::mt19937 random(11);
  const std::string pieces[] = {"1", "-1", " ", ":",   "|", ",",   "\"",   "\t",
                                "#", "{",  "}", "1e9", "e", "nan", "a",    "\xff",
                                "'", ".",  "[", "]",   "y", "inf", "1e39", "4294967295"};
  for (const FormatKind kind : {FormatKind::kSvmlight, FormatKind::kVw, FormatKind::kCsv,
                                FormatKind::kJsonl, FormatKind::kText}) {
    for (const bool require_label : {false, true}) {
      FormatOptions options = Options(kind);
      options.require_label = require_label;
      if (!require_label) options.label_column.clear();
      const auto format = Make(options);
      Row row;
      for (int i = 0; i < 3000; ++i) {
        std::string line;
        for (uint32_t n = random() % 12; n > 0; --n) line += pieces[random() % std::size(pieces)];
        const auto parsed = format->Parse(line, &row);
        if (!parsed.ok() || *parsed != LineKind::kExample) continue;
        EXPECT_TRUE(row.has_label() || !require_label) << line;
        EXPECT_TRUE(row.values.empty() || row.values.size() == row.feature_count()) << line;
      }
    }
  }
}

}  // namespace
}  // namespace perceptrond::client::format_test
