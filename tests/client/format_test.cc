// Files of examples: a table of inputs by format, with the rows or the errors that must come out.
#include "client/format/format.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/format/reader.h"
#include "core/file/read_file.h"
#include "perceptron/v1/example.pb.h"
#include "tests/client/trickle.h"

namespace perceptrond::client {
namespace {

// "LABEL FEATURE:VALUE... *WEIGHT", the weight if it is not 1; an absent label is "?", features of dense rows are their
// values, of texts the text in quotes, of ids the id after "#".
std::string Rendered(const Row& row) {
  std::string text = row.label_name;
  if (text.empty()) text = row.has_label() ? absl::StrCat(row.label) : "?";
  for (size_t i = 0; i < row.feature_count(); ++i) {
    const float value = row.values.empty() ? 1 : row.values[i];
    switch (row.kind) {
      case RowKind::kSparse:
        absl::StrAppend(&text, " ", row.indices[i], ":", value);
        break;
      case RowKind::kNamed:
        absl::StrAppend(&text, " ", std::string(row.name(i)), ":", value);
        break;
      case RowKind::kDense:
        absl::StrAppend(&text, " ", value);
        break;
      case RowKind::kText:
        absl::StrAppend(&text, " \"", row.text, "\"");
        break;
      case RowKind::kPredictionId:
        absl::StrAppend(&text, " #", row.text);
        break;
    }
  }
  if (row.weight != 1) absl::StrAppend(&text, " *", row.weight);
  return text;
}

// Reads a file of this content: "LINE: ROW" or "LINE!", the line refused, or "!!", the file refused.
std::vector<std::string> Read(const FormatOptions& options, const std::string& content,
                              size_t step = 1 << 20, int64_t skip = 0) {
  const auto format = MakeFormat(options);
  EXPECT_TRUE(format.ok()) << format.status();
  Reader reader("f", std::make_unique<Trickle>(content, step), format->get(), skip);
  std::vector<std::string> read;
  Row row;
  while (true) {
    const auto more = reader.Next(&row);
    if (more.ok() && !*more) return read;
    if (absl::IsInvalidArgument(more.status())) {
      const std::string message(more.status().message());
      EXPECT_EQ(message.substr(0, 2), "f:");
      read.push_back(message.substr(2, message.find(':', 2) - 2) + "!");
      continue;
    }
    read.push_back(more.ok() ? absl::StrCat(reader.line(), ": ", Rendered(row)) : "!!");
    if (!more.ok()) return read;
  }
}

struct Case {
  std::string content;
  std::vector<std::string> read;
};

// However the bytes arrive.
void ExpectRead(const FormatOptions& options, const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    for (const size_t step : {1, 2, 3, 7, 1 << 20})
      EXPECT_EQ(Read(options, one.content, step), one.read) << one.content;
  }
}

void ExpectRefused(const FormatOptions& options, const std::vector<std::string>& lines,
                   const std::string& header = "") {
  for (const std::string& line : lines)
    EXPECT_EQ(Read(options, header + line).at(0), header.empty() ? "1!" : "2!") << line;
}

FormatOptions Options(FormatKind kind) {
  FormatOptions options;
  options.kind = kind;
  options.index_base = 1;
  options.label_column = "y";
  return options;
}

TEST(Svmlight, HasALabelAndFeaturesFromTheStatedBase) {
  FormatOptions options = Options(FormatKind::kSvmlight);
  ExpectRead(options, {{"-1 1:0.5\t7:-2e1  # 9:9", {"1: -1 0:0.5 6:-20"}},
                       {"1 2:1 3:1.0\n", {"1: 1 1:1 2:1"}},
                       {"+1\n \t\n# all of it\n1 5:1", {"1: 1", "4: 1 4:1"}},
                       {"1 1:1\n-1 22:1\r\n\n1 333:1", {"1: 1 0:1", "2: -1 21:1", "4: 1 332:1"}},
                       {"\xEF\xBB\xBF"
                        "1 5:1\n",
                        {"1: 1 4:1"}},
                       {"1 1:1\n\n1 x\n1 2:1\n", {"1: 1 0:1", "3!", "4: 1 1:1"}},
                       {"", {}},
                       {"\n\r\n\n", {}}});
  ExpectRefused(options, {"1 0:1", "1 2", "1 2:", "1 :3", "1 2:nan", "1 2:inf", "1 2:1e39",
                          "1 2:1x", "1 x:1", "1 -2:1", "1 4294967296:1", "1 18446744073709551616:1",
                          "1 2:3:4", "2:1", "maybe 2:1", "2 2:1", "nan 2:1", "0 2:1"});
  EXPECT_EQ(Read(options, "what is this\n1 5:1\n", 3, 1), std::vector<std::string>{"2: 1 4:1"});
  options.require_label = false;
  ExpectRead(options, {{"2:1 5:3\n? 2:1\n-1 2:1", {"1: ? 1:1 4:3", "2: ? 1:1", "3: -1 1:1"}}});
  options.index_base = 0;
  ExpectRead(options, {{"+1 0:2\n1 4294967295:2", {"1: 1 0:2", "2: 1 4294967295:2"}}});
  for (const std::optional<int> base : {std::optional<int>(), std::optional<int>(2)}) {
    options.index_base = base;
    EXPECT_TRUE(absl::IsInvalidArgument(MakeFormat(options).status()));
  }
}

TEST(Vw, NamesFeaturesByTheirNamespaceAndMultipliesByItsWeight) {
  const FormatOptions options = Options(FormatKind::kVw);
  ExpectRead(options, {{"1 1.0 'tag|words:2 free win:3 | plain |info len:-4.5",
                        {"1: 1 words^free:2 words^win:6 plain:1 info^len:-4.5"}},
                       {"-1 |f a\n-1 tag|f a\n  \n-1 'tag |f a",
                        {"1: -1 f^a:1", "2: -1 f^a:1", "4: -1 f^a:1"}},
                       {"1 2.5 |f a", {"1: 1 f^a:1 *2.5"}},
                       {"1 | " + std::string(99, 'a') + ":2." + std::string(99, '0'),
                        {"1: 1 " + std::string(99, 'a') + ":2"}}});
  ExpectRefused(options, {"1|f a", "1 0 |f a", "1 -2 |f a", "1 a b", "1 |f a:x", "1 |f a:nan",
                          "1 |f:x a", "1 |f :2", "2 |f a", "1 1 1 x |f a", "|f a", "1 |f a:1.8e308",
                          "1 |f:1e39 a", "1 1e39 |f a"});
}

// Reads files one after the other, as Read() does.
std::vector<std::vector<std::string>> ReadFiles(const FormatOptions& options,
                                                const std::vector<std::string>& files) {
  const auto format = MakeFormat(options);
  std::vector<std::vector<std::string>> read;
  for (const std::string& content : files) {
    Reader reader("f", OpenMemory(&content), format->get(), 0);
    std::vector<std::string>& rows = read.emplace_back();
    Row row;
    while (true) {
      const auto more = reader.Next(&row);
      if (more.ok() && !*more) break;
      rows.push_back(more.ok() ? Rendered(row) : "!!");
      if (!more.ok()) break;
    }
  }
  return read;
}

TEST(Csv, HasAHeaderAndRecordsWhoseQuotesMayHoldLineBreaks) {
  FormatOptions options = Options(FormatKind::kCsv);
  ExpectRead(options,
             {{"a, y ,\"b,\"\"c\"\n1.5,-1,\"2\"\n,1, 3 ", {"2: -1 a:1.5 b,\"c:2", "3: 1 b,\"c:3"}},
              // No other line can be read.
              {"a,b\n1,2\n", {"!!"}},
              {"a,y,b,a\n1,1,1,1\n", {"!!"}},
              {",y,b\n1,1,1\n", {"!!"}},
              {"y,\"a\n1,1\n", {"!!"}}});
  ExpectRefused(options, {"1", "1,1,1", "x y,1", "nan,1", "1,2", "\"1,1", "\"1\"x,1", "1,"},
                "a,y\n");
  options.text_column = "text";
  ExpectRead(
      options,
      {{"\xEF\xBB\xBF\"y\",text\r\n1,\"a\nb\r\n\n\"\"c\"\"\"\r\n-1,d\n\n1,\"\n\"\n2,e\n1,\"f\ng\"",
        {"2: 1 \"a\nb\r\n\n\"c\"\"", "6: -1 \"d\"", "8: 1 \"\n\"", "10!", "11: 1 \"f\ng\""}},
       // A quote without end: an error at its line, and the next line is read.
       {"y,text\n1,a\n1,\"b\n1,c\n-1,d\n", {"2: 1 \"a\"", "3!", "4: 1 \"c\"", "5: -1 \"d\""}},
       {"y,text\n1,\"a\nb\",\"c\n", {"2!", "3!"}},
       {"sender,y,text\nBob, 1 ,\"Win, \"\"free\"\"\"\n,-1,\nBob,1\n",
        {"2: 1 \"Win, \"free\"\"", "3: -1 \"\"", "4!"}},
       {"a,y\n1,1\n", {"!!"}}});
  EXPECT_EQ(Read(options, "a \"title\nof,\"two lines\n\"x\ny\",text,y\n0,b,1\n", 7, 2),
            std::vector<std::string>{"5: 1 \"b\""});
  options.text_column = "y";
  ExpectRead(options, {{"a,y\n1,1\n", {"!!"}}});
}

// Names that no model keeps say nothing about the columns of another file.
TEST(Csv, DenseColumnsCountByTheirPositionAndHaveNoHeader) {
  FormatOptions dense = Options(FormatKind::kCsv);
  dense.dense = true;
  for (const std::optional<bool> header : {std::optional<bool>(), std::optional<bool>(true)}) {
    dense.header = header;
    EXPECT_TRUE(absl::IsInvalidArgument(MakeFormat(dense).status()));
  }
  dense.header = false;
  dense.label_column = "2";
  dense.delimiter = ';';
  ExpectRead(dense, {{"1;-1;3\n;1;3\n1;1;red\n", {"1: -1 1 3", "2!", "3!"}}});
  EXPECT_EQ(Read(dense, "a;y;b\n1;-1;3\n", 7, 1), std::vector<std::string>{"2: -1 1 3"});
}

TEST(Csv, WordsAreFeaturesOfTheirOwnInAColumnThatBeginsWithOne) {
  FormatOptions options = Options(FormatKind::kCsv);
  ExpectRead(
      options,
      {{"colour,age,y\nred,18-25,1\n\"blue\", 11th ,-1\n,?,1\n",
        {"2: 1 colour=red:1 age=18-25:1", "3: -1 colour=blue:1 age=11th:1", "4: 1 age=?:1"}},
       {"age,y\n18-25,1\n11th,-1\n", {"2: 1 age=18-25:1", "3: -1 age=11th:1"}},
       // A column has either, as its first value; empty fields come before, and rows that are refused.
       {"n,size,y\nEUR,cm,?\n5,1,1\n6,2,1,7\n", {"2!", "3: 1 n:5 size:1", "4!"}},
       {"n,y\n5,1,7\nfew,1\n", {"2!", "3: 1 n=few:1"}},
       {"size,n,y\n,1,1\nS,2,1\n38,3,1\nL,NA,1\nM,4,1\n",
        {"2: 1 n:1", "3: 1 size=S:1 n:2", "4!", "5!", "6: 1 size=M:1 n:4"}}});
  // Markers of missing values say nothing about the column.
  for (const char* missing : {"NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?"}) {
    EXPECT_EQ(Read(options, absl::StrCat("a,y\n", missing, ",1\n-5,-1\n", missing, ",1\n5,1\n")),
              (std::vector<std::string>{"2!", "3: -1 a:-5", "4!", "5: 1 a:5"}))
        << missing;
  }
  // A number beyond the range, with a decimal comma, or none at all is no word, and neither is a text.
  for (const char* field : {"1e39", "1.8e308", "-inf", "NaN", "0,5", "-1,000.5", "1.2.3", "-", "$5",
                            "12%", "free prize"})
    EXPECT_EQ(Read(options, absl::StrCat("a,y\n\"", field, "\",1\n")),
              std::vector<std::string>{"2!"})
        << field;
  // Each file anew.
  EXPECT_EQ(ReadFiles(options, {"a,y\nred,1\n", "y,a\n1,2\n"}),
            (std::vector<std::vector<std::string>>{{"1 a=red:1"}, {"1 a:2"}}));
}

TEST(Csv, AFirstLineIsAHeaderOnlyWhereSomethingShowsIt) {
  FormatOptions options = Options(FormatKind::kCsv);
  options.labels.names = {"ham", "spam"};
  options.require_label = false;
  const std::vector<std::string> refused{"!!"};
  // A column that is found by its name shows that there are names.
  options.label_column = "kind";
  EXPECT_EQ(Read(options, "kind,0,1\nham,3,4\n"), std::vector<std::string>{"2: -1 0:3 1:4"});
  options.label_column = "1";
  for (const char* content :
       {"spam,2\nham,3\n", "1,a\n-1,3\n", "kind,2\nham,3\n", "kind,a\nham,3\n"})
    EXPECT_EQ(Read(options, content), refused) << content;
  options.header = true;
  EXPECT_EQ(Read(options, "spam,2\nham,3\n"), std::vector<std::string>{"2: -1 2:3"});
  options.header = false;
  EXPECT_EQ(Read(options, "spam,2\nham,3\n"), (std::vector<std::string>{"1: 1 2:2", "2: -1 2:3"}));
  options.header.reset();
  options.text_column = "2";
  for (const char* content : {"spam,free prize\n", "kind,text\nspam,free\n"})
    EXPECT_EQ(Read(options, content), refused) << content;
  options.text_column = "text";
  EXPECT_EQ(Read(options, "kind,text\nspam,free\n"), std::vector<std::string>{"2: 1 \"free\""});
  options.text_column.clear();
  // Classes by name may have any.
  options.labels = {.max_classes = 9, .new_names = true};
  options.label_column = "2";
  EXPECT_EQ(Read(options, "red,apple\ngreen,pear\n"), refused);
  options.label_column.clear();
  for (const char* content : {"red\nblue\nred\n", "5,red,x\n4,blue,y\n", "2024-01-01,5\n", "red\n"})
    EXPECT_EQ(Read(options, content), refused) << content;
}

TEST(Csv, ColumnsThatTheModelHasWeightsForShowAHeaderAndOthersAreRefused) {
  FormatOptions options = Options(FormatKind::kCsv);
  options.label_column.clear();
  options.require_label = false;
  std::optional<bool> has_weight = true;
  std::vector<std::string> asked;
  options.has_weight_of = [&](const std::vector<std::string>& columns) {
    asked = columns;
    return has_weight;
  };
  EXPECT_EQ(Read(options, "a,b\n1,2\n"), std::vector<std::string>{"2: ? a:1 b:2"});
  EXPECT_EQ(asked, (std::vector<std::string>{"a", "b"}));
  // Whatever these are called.
  for (const char* data : {"a,5", "a,-.5e3", "2024-01-31,a", "31/01/2024 12:00,a", "$5,a", "12%,a"})
    EXPECT_EQ(Read(options, absl::StrCat(data, "\n1,2\n")), std::vector<std::string>{"!!"}) << data;
  EXPECT_EQ(Read(options, "2nd,x1\n1,2\n").size(), 1U);
  EXPECT_EQ(ReadFiles(options, {"a\n1\n", "b\n1\n"}).back(), std::vector<std::string>{"? b:1"});
  has_weight = false;
  for (const char* label : {"", "y"}) {
    for (const std::optional<bool> header :
         {std::optional<bool>(), std::optional<bool>(true), std::optional<bool>(false)}) {
      options.header = header;
      options.label_column = header == false && *label != '\0' ? "2" : label;
      EXPECT_EQ(Read(options, "b,y\n5,1\n"), std::vector<std::string>{"!!"}) << label;
    }
  }
}

TEST(Csv, ALaterFileHasAColumnOfTheFirst) {
  using Files = std::vector<std::vector<std::string>>;
  const FormatOptions options = Options(FormatKind::kCsv);
  EXPECT_EQ(ReadFiles(options, {"a,b,y\n1,2,1\n", "y,c,b\n1,3,4\n", "c,y\n1,1\n"}),
            (Files{{"1 a:1 b:2"}, {"1 c:3 b:4"}, {"!!"}}));
}

TEST(Csv, IgnoredColumnsAreNotRead) {
  FormatOptions options = Options(FormatKind::kCsv);
  options.ignored_columns = {"1", "note"};
  ExpectRead(options, {{",a,note,y\n0,2,\"x, y\",1\n1,3,z,-1\n", {"2: 1 a:2", "3: -1 a:3"}}});
  options.ignored_columns = {"y"};
  ExpectRead(options, {{"a,y\n2,1\n", {"!!"}}});
}

TEST(Csv, AQuoteThatIsNotClosedInTimeIsAnErrorWithoutTheRestOfTheFile) {
  FormatOptions options = Options(FormatKind::kCsv);
  options.text_column = "text";
  const std::string line(1000, 'b');
  std::string content = "y,text\n1,\"a\n";
  while (content.size() <= Reader::kMaxRecordBytes + 100) content += "1," + line + "\n";
  const auto lines = static_cast<size_t>(std::count(content.begin(), content.end(), '\n'));
  // The quote's end comes too late, and begins another that has none.
  const std::vector<std::string> read = Read(options, content + "1,\"c\"\n", 1 << 16);
  ASSERT_EQ(read.size(), lines);
  EXPECT_EQ(read[0], "2!");
  EXPECT_EQ(read[1], "3: 1 \"" + line + "\"");
  EXPECT_EQ(read.back(), absl::StrCat(lines + 1, ": 1 \"c\""));
}

TEST(Jsonl, HasExamplesInAllTheirForms) {
  FormatOptions options = Options(FormatKind::kJsonl);
  options.labels.names = {"ham", "spam"};
  ExpectRead(
      options,
      {{R"({"named": {"names": ["a", "b"], "values": [1, 2]}, "labelName": "spam"})",
        {"1: 1 a:1 b:2"}},
       {"\n"
        R"({"sparse": {"indices": [3, 7]}, "label": -1})",
        {"2: -1 3:1 7:1"}},
       {R"({"dense": {"values": [1, 2, 3]}, "label": 1, "weight": 2.5})", {"1: 1 1 2 3 *2.5"}},
       {R"({"text": "Win a prize!", "label": 1})", {"1: 1 \"Win a prize!\""}},
       {R"({"label": 1, "text": "Win a \u0070rize!"})", {"1: 1 \"Win a prize!\""}},
       {R"({"label": 1, "text": "\u0070\u00e9\u20ac\ud83C\uDF44\/"})", {"1: 1 \"pé€🍄/\""}},
       {R"({"predictionId": "0.1.2a.ff", "label": -1})", {"1: -1 #0.1.2a.ff"}}});
  ExpectRefused(options, {"{",
                          "[]",
                          R"({"label": 3})",
                          "{}",
                          R"({"sparse": {"indices": [1], "values": [1, 2]}, "label": 1})",
                          R"({"sparse": {"indices": [1], "values": [1]}, "label": 1)",
                          R"({"text": "free prize", "sparse": {"indices": [1]}, "label": 1})",
                          R"({"dense":{"values":[null,7,3]},"label":1})",
                          R"({"sparse":{"indices":[1],"values":[null]},"label":1})",
                          R"({"named":{"names":["a",null]},"label":1})",
                          R"({"sparse":{"indices":null},"label":1})",
                          R"({"named":null,"label":1})",
                          R"({"text":null,"label":1})",
                          R"({"text":7,"label":1})",
                          R"({"weight":null,"text":"a","label":1})",
                          R"({"dense":{"values":[1,1.8e308]},"label":1})",
                          R"({"sparse":{"indices":[4294967296]},"label":1})",
                          R"({"sparse":{"indices":[1.5]},"label":1})",
                          R"([{"text":"a","label":1}])",
                          "{\"text\":\"caf\xe9\",\"label\":1}",
                          "{\"text\":\"\\n\t\",\"label\":1}"});
  // No escapes of JSON: half a pair of surrogates, two first halves, a letter that is no digit.
  for (const char* escape : {"x20", "ud83c", "udf44", "ud83c\\ud83c", "u00g9"})
    ExpectRefused(options, {absl::StrCat(R"({"label":1,"text":"\)", escape, "\"}")});
}

TEST(Jsonl, HasLabelsByNameAlsoWhereTheyAreNumbers) {
  FormatOptions options = Options(FormatKind::kJsonl);
  options.labels.names = {"ham", "spam"};
  ExpectRead(options, {{R"({"sparse": {}, "label": "ham"})", {"1: -1"}},
                       {R"({"sparse": {}, "label": 1.0})", {"1: 1"}},
                       {R"({"sparse": {}, "label_name": "sp\u0061m"})", {"1: 1"}}});
  ExpectRefused(options, {R"({"sparse": {}, "label": null})", R"({"sparse": {}, "label": true})",
                          R"({"sparse": {}, "label": 1, "labelName": "ham"})"});
  // A number is a name where a name is a number.
  options.labels.names = {"1", "2"};
  ExpectRead(options, {{R"({"sparse": {}, "label": 1})", {"1: -1"}},
                       {R"({"sparse": {}, "label": 2.0})", {"1: 1"}}});
  ExpectRefused(options, {R"({"sparse": {}, "label": -1})"});
}

TEST(Jsonl, HasFeaturesByNameAsFieldsOfTheirOwn) {
  const FormatOptions options = Options(FormatKind::kJsonl);
  ExpectRead(options,
             {{R"({"price": 2.5, "colour": "red", "sold": true, "new": false, "label": 1})",
               {"1: 1 price:2.5 colour=red:1 sold:1 new:0"}}});
  ExpectRefused(
      options,
      {R"({"price": 2.5, "weight": 3, "label": 1})", R"({"price": 2.5, "text": "a", "label": 1})",
       R"({"text": "a", "price": 2.5, "label": 1})", R"({"price": {"eur": 2}, "label": 1})",
       R"({"price": [2], "label": 1})", R"({"price": null, "label": 1})", R"({"label": 1})", "{}"});
}

// What is read is read as protobuf reads it.
TEST(Jsonl, IsReadAsProtobufReadsIt) {
  FormatOptions options = Options(FormatKind::kJsonl);
  options.labels.names = {"ham", "spam"};
  const auto format = MakeFormat(options);
  std::mt19937 random(5);
  const auto any = [&](std::initializer_list<const char*> choices) {
    return std::string(choices.begin()[random() % choices.size()]);
  };
  int read = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string space = any({"", "", " ", "\t"});
    std::string values;
    std::string keys;
    const std::string form = any({"named", "named", "sparse", "dense"});
    for (uint32_t n = random() % 4, j = 0; j < n; ++j) {
      const std::string comma = j == 0 ? "" : "," + space;
      values += comma + any({"1", "0.5", "-2", "1e3", "-0", "0.1", "12.25E-1", "01", "1.", ".5",
                             "+1", "\"1\"", "null", "1e39", "NaN", "true"});
      keys += comma + (form == "sparse"
                           ? any({"0", "7", "4294967295", "4294967296", "-1", "3.0", "1e2"})
                           : any({"\"a\"", "\"caf\xc3\xa9\"", "\"\\n\"", "\"\\u0041\"", "\"\"",
                                  "\"\xff\"", "1"}));
    }
    std::string features =
        any({"\"values\"", "\"values\"", "\"VALUES\""}) + ":" + space + "[" + values + "]";
    if (form != "dense")
      features = any({"\"names\":", "\"indices\":"}) + "[" + keys + "]," + features;
    std::string line = "{\"" + form + "\":" + space + "{" + features + "}," + space;
    line +=
        any({"\"label\":1", "\"label\": -1", "\"labelName\":\"spam\"", "\"label_name\":\"spam\"",
             "\"label\":\"1\"", "\"label\":1.0", "\"weight\":2.5,\"label\":1", "\"nope\":1",
             "\"label\":1,\"labelName\":\"spam\"", "\"label\":1,\"label\":-1"});
    line += any({"}", "}", "} ", "", "}}", ",}"});
    Row row;
    if (!(*format)->Parse(line, &row).ok()) continue;
    ++read;
    perceptron::v1::Example example;
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(line, &example).ok()) << line;
    const auto& expected = form == "named"    ? example.named().values()
                           : form == "sparse" ? example.sparse().values()
                                              : example.dense().values();
    ASSERT_EQ(row.values, std::vector<float>(expected.begin(), expected.end())) << line;
    ASSERT_EQ(row.indices, std::vector<uint32_t>(example.sparse().indices().begin(),
                                                 example.sparse().indices().end()));
    ASSERT_EQ(row.name_count(), static_cast<size_t>(example.named().names_size()));
    for (size_t j = 0; j < row.name_count(); ++j)
      ASSERT_EQ(row.name(j), example.named().names(static_cast<int>(j)));
    ASSERT_EQ(row.label, example.label_name() == "spam" ? 1 : example.label()) << line;
    ASSERT_EQ(row.weight, example.has_weight() ? example.weight() : 1) << line;
  }
  EXPECT_GT(read, 500);
}

TEST(Text, HasALabelBeforeTheFirstTab) {
  FormatOptions options = Options(FormatKind::kText);
  options.labels.names = {"ham", "spam"};
  ExpectRead(options,
             {{"spam\tFree! caf\xc3\xa9 7x\tmore", {"1: 1 \"Free! caf\xc3\xa9 7x\tmore\""}},
              {"ham\t ...\nno tab at all\neggs\tand text\n", {"1: -1 \" ...\"", "2!", "3!"}}});
  options.require_label = false;
  ExpectRead(options, {{"Win now\nWin\tnow\n\twin now\nwin\tspam\tnow\nspam\twin now",
                        {"1: ? \"Win now\"", "2: ? \"Win\tnow\"", "3: ? \"\twin now\"",
                         "4: ? \"win\tspam\tnow\"", "5: 1 \"win now\""}}});
  FormatOptions classes = Options(FormatKind::kText);
  classes.labels.new_names = true;
  classes.labels.max_classes = 10;
  classes.require_label = false;
  ExpectRead(classes, {{"tea\thot leaves", {"1: tea \"hot leaves\""}}});
}

TEST(Ids, AreIdAndLabelWithAHeaderOrWithout) {
  FormatOptions options = Options(FormatKind::kIds);
  options.labels.names = {"ham", "spam"};
  ExpectRead(options, {{"prediction_id,label\n0.1.2a.ff,spam\n0.1.2b.ff\t-1\n",
                        {"2: 1 #0.1.2a.ff", "3: -1 #0.1.2b.ff"}}});
  ExpectRefused(options, {"0.1.2a.ff", "0.1.2a.ff,eggs", ",spam"});
}

// The cases are those of the clients in Python and Node too.
TEST(Labels, AreNamesOrNumbersAsTheModelHasThem) {
  google::protobuf::ListValue cases;
  const std::string text = ReadFileUpTo(LABEL_CASES, 1 << 20, FileKind::kRegular).value();
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(text, &cases).ok());
  for (const google::protobuf::Value& value : cases.values()) {
    const auto& model = value.struct_value().fields();
    LabelRule rule;
    for (const auto& name : model.at("names").list_value().values())
      rule.names.push_back(name.string_value());
    if (model.contains("classes"))
      rule.max_classes = static_cast<uint32_t>(model.at("classes").number_value());
    rule.new_names = model.contains("new");
    Labels labels(rule);
    for (const auto& pair : model.at("read").list_value().values()) {
      const auto& read = pair.list_value().values();
      Row row;
      EXPECT_EQ(labels.Read(read[0].string_value(), &row).ok() ? Rendered(row) : "!",
                read[1].string_value())
          << read[0].string_value() << " among " << absl::StrJoin(rule.names, ", ");
    }
  }
}

TEST(Labels, OfZeroAreThoseOfMinusOneWhereTheRuleSaysSo) {
  LabelsSeen seen;
  LabelsSeen signs;
  LabelRule rule;
  const auto expect = [&rule](const std::vector<std::pair<const char*, const char*>>& read) {
    Labels labels(rule);
    for (const auto& [text, label] : read) {
      Row row;
      EXPECT_EQ(labels.Read(text, &row).ok() ? Rendered(row) : "!", label) << text;
    }
  };
  rule.names = {"ham", "spam"};
  rule.zero_is_negative = true;
  expect({{"0", "-1"}});
  // Zero means -1 where -1 does not occur.
  rule = LabelRule();
  rule.seen = &seen;
  expect({{"1", "1"}, {"0", "-1"}, {"0.0", "-1"}, {"-1", "!"}});
  rule.seen = &signs;
  expect({{"-1", "-1"}, {"0", "!"}});
  rule = LabelRule();
  rule.keep_zero = true;
  expect({{"0", "0"}, {"-1", "-1"}});
}

// A label that is none of the model's is not the same as none.
TEST(Labels, ThatAreUnknownAreToldFromAbsentOnes) {
  const auto is_known = [](FormatKind kind, const std::string& line,
                           const std::string& header = "") {
    FormatOptions options = Options(kind);
    options.labels.names = {"ham", "spam"};
    options.require_label = false;
    const auto format = MakeFormat(options);
    Row row;
    if (!header.empty()) {
      EXPECT_TRUE((*format)->Parse(header, &row).ok());
    }
    EXPECT_TRUE((*format)->Parse(line, &row).ok()) << line;
    return (*format)->label_status().ok();
  };
  for (const char* known : {"spam 1:1", "1:1"}) EXPECT_TRUE(is_known(FormatKind::kSvmlight, known));
  EXPECT_FALSE(is_known(FormatKind::kSvmlight, "Spam 1:1"));
  for (const char* known : {"spam | a", "| a", "'tag | a"})
    EXPECT_TRUE(is_known(FormatKind::kVw, known)) << known;
  EXPECT_FALSE(is_known(FormatKind::kVw, "Spam | a"));
  EXPECT_TRUE(is_known(FormatKind::kCsv, "spam,1", "y,a"));
  for (const char* unknown : {"Spam,1", "unknown,1", ",1", "\"\",1"})
    EXPECT_FALSE(is_known(FormatKind::kCsv, unknown, "y,a")) << unknown;
  EXPECT_TRUE(is_known(FormatKind::kJsonl, R"({"text": "a", "label": "spam"})"));
  EXPECT_TRUE(is_known(FormatKind::kJsonl, R"({"text": "a"})"));
  for (const char* unknown :
       {R"({"text": "a", "label": "Spam"})", R"({"text": "a", "label": null})"})
    EXPECT_FALSE(is_known(FormatKind::kJsonl, unknown)) << unknown;
  EXPECT_TRUE(is_known(FormatKind::kText, "spam\ta"));
  EXPECT_TRUE(is_known(FormatKind::kText, "a"));
  EXPECT_FALSE(is_known(FormatKind::kText, "Spam\ta"));
}

TEST(Lines, EndWithLfOrCrOrBothInEveryFormat) {
  for (const auto& [kind, content] : std::map<FormatKind, std::string>{
           {FormatKind::kSvmlight, "1 1:1\n\n-1 2:1\n1 x\n1 3:1"},
           {FormatKind::kVw, "1 | a\n\n-1 | b\n1 x y\n"},
           {FormatKind::kCsv, "y,a\n1,2\n\n-1,\"3\"\n1,x\n"},
           {FormatKind::kJsonl,
            "{\"text\":\"a\",\"label\":1}\n\n{}\n{\"text\":\"b\",\"label\":-1}\n"},
           {FormatKind::kText, "1\tfree prize now\n-1\tsee you\nno tab\n1\tcall"},
           {FormatKind::kIds, "prediction_id,label\n0.1.2a.ff,1\n\n0.1.2b.ff,-1\n"}}) {
    const FormatOptions options = Options(kind);
    const std::vector<std::string> rows = Read(options, content);
    EXPECT_GT(rows.size(), 1U);
    for (const char* end : {"\r", "\r\n"})
      ExpectRead(options, {{absl::StrReplaceAll(content, {{"\n", end}}), rows}});
  }
  // Together in one file, and within quotes.
  FormatOptions options = Options(FormatKind::kCsv);
  options.text_column = "text";
  ExpectRead(options, {{"y,text\r1,a\n\r\r\n-1,\"b\rc\r\n\nd\"\r1,\"\r\"",
                        {"2: 1 \"a\"", "5: -1 \"b\rc\r\n\nd\"", "9: 1 \"\r\""}}});
}

TEST(Lines, WithoutAnExampleAreCountedButForHeadersAndAtTheEnd) {
  const auto counts = [](const FormatOptions& options, const std::string& content, int64_t skip) {
    const auto format = MakeFormat(options);
    Reader reader("f", OpenMemory(&content), format->get(), skip);
    std::vector<uint64_t> before;
    Row row;
    while (true) {
      const auto more = reader.Next(&row);
      if (more.ok() && !*more) return before;
      before.push_back(reader.lines_without_example());
    }
  };
  using Counts = std::vector<uint64_t>;
  EXPECT_EQ(counts(Options(FormatKind::kSvmlight), "\n# c\n1 1:1\n\n1 x\n1 1:1\n\n#\n", 0),
            (Counts{2, 1, 0}));
  EXPECT_EQ(counts(Options(FormatKind::kSvmlight), "\n# c\n1 1:1\n", 1), Counts{1});
  EXPECT_EQ(counts(Options(FormatKind::kCsv), "a,y\n\n1,1\n1,1\n\n", 0), (Counts{1, 0}));
  EXPECT_EQ(counts(Options(FormatKind::kIds), "prediction_id,label\n0.1.2a.ff,1\n", 0), Counts{0});
  for (const FormatKind kind : {FormatKind::kVw, FormatKind::kJsonl, FormatKind::kText})
    EXPECT_EQ(counts(Options(kind), "\n\nx\n", 0), Counts{2});
}

TEST(Lines, ThatAreTooLongAreRefusedAloneAndTheNextIsRead) {
  const std::string blanks(Reader::kMaxLineBytes + (1 << 20), ' ');
  EXPECT_EQ(Read(Options(FormatKind::kSvmlight), "1 1:1\n1 " + blanks + "\n1 2:1\n1 x\n1 3:1\n"),
            (std::vector<std::string>{"1: 1 0:1", "2!", "3: 1 1:1", "4!", "5: 1 2:1"}));
  EXPECT_EQ(Read(Options(FormatKind::kSvmlight), blanks), std::vector<std::string>{"1!"});
}

TEST(Reader, NamesWhatAFileIsThatIsNoText) {
  const std::pair<std::string, const char*> files[] = {
      {"\x1F\x8B\x08rest", "zcat"},
      {"\x28\xB5\x2F\xFDrest", "zstdcat"},
      {std::string("\xFD\x37\x7A\x58\x5A\0rest", 10), "xzcat"},
      {"BZh91AY&SYrest", "bzcat"},
      {std::string("\xFF\xFE"
                   "1\0 \0",
                   6),
       nullptr},
      {std::string("\xFE\xFF\0"
                   "1\0 ",
                   6),
       nullptr},
  };
  const auto format = MakeFormat(Options(FormatKind::kSvmlight));
  Row row;
  for (const auto& [content, unpack] : files) {
    Reader reader("f", std::make_unique<Trickle>(content, 1), format->get(), 0);
    EXPECT_TRUE(absl::IsFailedPrecondition(reader.Next(&row).status()));
    ASSERT_EQ(reader.compression() != nullptr, unpack != nullptr);
    if (unpack != nullptr) {
      EXPECT_STREQ(reader.compression()->unpack, unpack);
    }
  }
  for (const char* text : {"BZh is a word", "7zXZ", ""}) {
    Reader reader("f", std::make_unique<Trickle>(text, 3), format->get(), 0);
    (void)reader.Next(&row);
    EXPECT_EQ(reader.compression(), nullptr) << text;
  }
  EXPECT_TRUE(absl::IsNotFound(OpenFile("/nonexistent/file").status()));
  // Where waiting was broken off the file ends.
  char byte = 0;
  EXPECT_EQ(*(*OpenFile("/dev/zero", [](int) { return false; }))->Read(&byte, 1), 0U);
}

TEST(Reader, HasLinesLongerThanItsBuffer) {
  std::string line = "1";
  for (int i = 1; i <= 60'000; ++i) absl::StrAppend(&line, " ", i, ":1");
  const auto read = Read(Options(FormatKind::kSvmlight), line + "\n1 9:1\n", 1 << 16);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(std::count(read[0].begin(), read[0].end(), ' '), 60'001);
  EXPECT_EQ(read[1], "2: 1 8:1");
}

TEST(Formats, AreGuessedFromFewExtensionsOnly) {
  for (const auto& [path, kind] :
       std::map<std::string, FormatKind>{{"a/b.svm", FormatKind::kSvmlight},
                                         {"b.svmlight", FormatKind::kSvmlight},
                                         {"b.tsv", FormatKind::kText},
                                         {"b.jsonl", FormatKind::kJsonl},
                                         {"b.json", FormatKind::kJsonl},
                                         {"b.csv", FormatKind::kCsv},
                                         {"b.vw.gz", FormatKind::kVw},
                                         {"b.tsv.zst", FormatKind::kText}})
    EXPECT_EQ(FormatByExtension(path), kind) << path;
  for (const char* path : {"b", "b.text", "b.txt", "b.train", "-", "csv", "a.gz", "gz"})
    EXPECT_EQ(FormatByExtension(path), std::nullopt) << path;
}

}  // namespace
}  // namespace perceptrond::client
