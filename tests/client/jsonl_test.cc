#include "client/format/format.h"

#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "perceptron/v1/example.pb.h"

namespace perceptrond::client {
namespace {

// What is read is read as protobuf reads it.
TEST(Jsonl, IsReadAsProtobufReadsIt) {
  FormatOptions options;
  options.kind = FormatKind::kJsonl;
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

}  // namespace
}  // namespace perceptrond::client
