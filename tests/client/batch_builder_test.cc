#include "client/batch_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "client/error.h"
#include "core/vector/name.h"
#include "tests/client/named_columns.h"

namespace perceptrond::client {
namespace {

using perceptron::v1::ExampleColumns;

Row Sparse(std::vector<uint32_t> indices, std::vector<float> values = {}, int label = 1) {
  Row row;
  row.indices = std::move(indices);
  row.values = std::move(values);
  row.label = label;
  return row;
}

Row Named(const std::vector<std::string>& names, std::vector<float> values = {}, int label = 1) {
  Row row;
  row.kind = RowKind::kNamed;
  for (const std::string& name : names) row.AddName(name);
  row.values = std::move(values);
  row.label = label;
  return row;
}

ExampleColumns Build(BatchBuilder* builder) {
  ExampleColumns columns;
  builder->Build(&columns);
  return columns;
}

std::string ReasonOf(const absl::Status& status) {
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return ErrorReason(status);
}

TEST(BatchBuilder, LeavesOutValuesIffAllAreOneAndLabelsIffNoRowHasOne) {
  const auto sizes = [](const Row& first, const Row& second) {
    BatchBuilder builder;
    EXPECT_TRUE(builder.Add(first).ok());
    EXPECT_TRUE(builder.Add(second).ok());
    const ExampleColumns columns = Build(&builder);
    return std::pair(columns.values_size(), columns.labels_size());
  };
  EXPECT_EQ(sizes(Sparse({1, 2}, {1, 1}), Sparse({3})), std::pair(0, 2));
  EXPECT_EQ(sizes(Sparse({1, 2}), Sparse({3}, {2}, Row::kNoLabel)), std::pair(3, 2));
  EXPECT_EQ(sizes(Sparse({1}, {}, Row::kNoLabel), Sparse({3}, {}, Row::kNoLabel)), std::pair(0, 0));
}

TEST(BatchBuilder, KeepsDenseRowsAsTheyAre) {
  BatchBuilder builder;
  Row row;
  row.kind = RowKind::kDense;
  row.values = {1, 0, 1};
  ASSERT_TRUE(builder.Add(row).ok());
  const ExampleColumns columns = Build(&builder);
  EXPECT_EQ(columns.dense_width(), 3u);
  EXPECT_EQ(columns.values_size(), 3);
  EXPECT_EQ(columns.row_ends_size(), 0);
}

TEST(BatchBuilder, HasNoMoreThanOneMessageTakes) {
  BatchBuilder builder;
  Row row;
  row.kind = RowKind::kDense;
  row.values.assign(2 << 20, 1);
  ASSERT_TRUE(builder.Add(row).ok());
  EXPECT_FALSE(builder.Fits(row));
  Build(&builder);
  EXPECT_TRUE(builder.Fits(row));
}

TEST(BatchBuilder, TakesNoServersLimitThatNoServerHas) {
  for (const size_t wrong : {size_t{0}, size_t{1023}, std::numeric_limits<size_t>::max()}) {
    BatchBuilder builder;
    builder.SetMostBytes(wrong);
    EXPECT_TRUE(builder.Add(Sparse({1})).ok()) << wrong;
    const Row large = Sparse(std::vector<uint32_t>(16 << 10));
    EXPECT_EQ(builder.Fits(large), wrong > 1023) << wrong;
  }
}

TEST(BatchBuilder, AddsTheValuesOfRepeatedNamesWhereTheRowSaysSo) {
  const auto add = [](BatchBuilder* builder, Row row) {
    row.adds_repeated_names = true;
    return builder->Add(row);
  };
  BatchBuilder builder;
  ASSERT_TRUE(builder.Add(Named({"b"})).ok());
  ASSERT_TRUE(add(&builder, Named({"a", "b", "a", "a"}, {.5F, 2, 1, .25F})).ok());
  ASSERT_TRUE(add(&builder, Named({"c", "a", "c"})).ok());
  ASSERT_TRUE(add(&builder, Named({"c", "a"})).ok());
  const ExampleColumns columns = Build(&builder);
  EXPECT_EQ(NamesIn(columns.feature_names()), (std::vector<std::string>{"b", "a", "c"}));
  ExampleColumns expected;
  for (const uint32_t end : {1, 3, 5, 7}) expected.add_row_ends(end);
  for (const uint32_t index : {0, 0, 1, 1, 2, 1, 2}) expected.add_indices(index);
  for (const float value : {1.F, 2.F, 1.75F, 1.F, 2.F, 1.F, 1.F}) expected.add_values(value);
  for (int i = 0; i < 4; ++i) expected.add_labels(1);
  *expected.mutable_feature_names() = columns.feature_names();
  EXPECT_EQ(columns.ShortDebugString(), expected.ShortDebugString());
  constexpr float kLargest = std::numeric_limits<float>::max();
  EXPECT_EQ(ReasonOf(add(&builder, Named({"d", "d"}, {kLargest, kLargest}))), "NON_FINITE_VALUE");
  EXPECT_EQ(ReasonOf(add(&builder, Named({"d", "", "d"}))), "BAD_NAME");
  EXPECT_TRUE(builder.empty());
}

Row Text(const std::string& text, int label = 1) {
  Row row;
  row.kind = RowKind::kText;
  row.text = text;
  row.label = label;
  return row;
}

Row WithLabelName(const std::string& label) {
  Row row = Sparse({1}, {}, Row::kNoLabel);
  row.label_name = label;
  return row;
}

TEST(BatchBuilder, RefusesRowsThatTheServerWouldRefuse) {
  BatchBuilder builder;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kMax = std::numeric_limits<float>::max();
  const std::pair<Row, const char*> refused[] = {
      {Sparse({1}, {kNan}), "NON_FINITE_VALUE"},
      {Sparse({1, 2}, {kInfinity, -kInfinity}), "NON_FINITE_VALUE"},
      {Sparse({1, 2}, {1}), "MALFORMED_ROW"},
      {Sparse({3, 1, 3}), "REPEATED_INDEX"},
      {Sparse({1}, {}, -2), "UNKNOWN_LABEL"},
      {Named({"b", "a", "b"}), "REPEATED_NAME"},
      {Named({""}), "BAD_NAME"},
      {Named({std::string(1025, 'x')}), "BAD_NAME"},
      {Named({"\xff"}), "BAD_NAME"},
      {Text("prize \xff"), "BAD_TEXT"},
      {Text(std::string((1 << 20) + 1, 'a')), "BAD_TEXT"},
      {Sparse(std::vector<uint32_t>((4 << 20) + 1)), "ROW_TOO_LARGE"},
      {Text(std::string(17 << 20, 'a')), "ROW_TOO_LARGE"},
  };
  for (const auto& [row, reason] : refused) EXPECT_EQ(ReasonOf(builder.Add(row)), reason);
  EXPECT_FALSE(builder.Add(WithLabelName(std::string(1025, 'a'))).ok());
  EXPECT_FALSE(builder.Add(WithLabelName("\xff")).ok());
  EXPECT_TRUE(builder.empty());
  for (const Row& row : {Named({std::string(1024, 'x')}), Text(std::string(1 << 20, 'a')),
                         Sparse({1, 2, 3}, {kMax, kMax, kMax})}) {
    EXPECT_TRUE(builder.Add(row).ok());
    Build(&builder);
  }
}

TEST(BatchBuilder, SendsTextsAlone) {
  BatchBuilder builder;
  ASSERT_TRUE(builder.Add(Text("Free prize")).ok());
  EXPECT_FALSE(builder.Fits(Named({"a"})));
  EXPECT_FALSE(builder.Fits(Sparse({})));
  ASSERT_TRUE(builder.Add(Text("", -1)).ok());
  EXPECT_EQ(Build(&builder).ShortDebugString(),
            "labels: 1 labels: -1 texts: \"Free prize\" texts: \"\"");
  ASSERT_TRUE(builder.Add(Sparse({1})).ok());
  EXPECT_FALSE(builder.Fits(Text("a")));
}

TEST(BatchBuilder, SendsLabelNamesAsPositionsInThoseOfTheMessage) {
  BatchBuilder builder;
  for (const char* label : {"tea", "rum", "tea"})
    ASSERT_TRUE(builder.Add(WithLabelName(label)).ok());
  EXPECT_TRUE(builder.Fits(WithLabelName("")));
  EXPECT_FALSE(builder.Fits(Sparse({1}))) << "names and numbers do not go together";
  EXPECT_FALSE(builder.Add(Sparse({1})).ok());
  ExampleColumns columns = Build(&builder);
  EXPECT_THAT(columns.label_names(), ::testing::ElementsAre("tea", "rum"));
  EXPECT_THAT(columns.labels(), ::testing::ElementsAre(0, 1, 0));
  ASSERT_TRUE(builder.Add(Sparse({1})).ok());
  EXPECT_FALSE(builder.Fits(WithLabelName("tea")));
  EXPECT_EQ(Build(&builder).label_names_size(), 0);
}

TEST(BatchBuilder, SaysWhichRowsGoTogether) {
  BatchBuilder builder;
  ASSERT_TRUE(builder.Add(Sparse({})).ok());
  EXPECT_TRUE(builder.Fits(Named({"a"})));
  ASSERT_TRUE(builder.Add(Named({"a"})).ok());
  EXPECT_TRUE(builder.Fits(Sparse({})));
  EXPECT_FALSE(builder.Fits(Sparse({1})));
  EXPECT_TRUE(absl::IsFailedPrecondition(builder.Add(Sparse({1}))));
}

TEST(BatchBuilder, SortsLongRowsOfAnyIndicesWithTheirValues) {
  std::mt19937 random(3);
  BatchBuilder builder;
  for (const size_t count : {23u, 24u, 75u, 255u, 256u, 3000u}) {
    for (const uint32_t below : {4000u, 1u << 20, std::numeric_limits<uint32_t>::max()}) {
      std::map<uint32_t, float> features;
      while (features.size() < count)
        features[random() % below] = static_cast<float>(random() % 100);
      std::vector<uint32_t> indices;
      for (const auto& [index, value] : features) indices.push_back(index);
      std::shuffle(indices.begin(), indices.end(), random);
      std::vector<float> values;
      for (const uint32_t index : indices) values.push_back(features[index]);
      ASSERT_TRUE(builder.Add(Sparse(indices, values)).ok());
      const ExampleColumns columns = Build(&builder);
      int i = 0;
      for (const auto& [index, value] : features) {
        ASSERT_EQ(columns.indices(i), index);
        ASSERT_EQ(columns.values(i++), value);
      }
    }
  }
}

TEST(BatchBuilder, GoesOnAfterRowsThatItRefused) {
  BatchBuilder builder;
  ASSERT_TRUE(builder.Add(Named({"a", "b"})).ok());
  EXPECT_FALSE(builder.Add(Named({"c", "a", "d", "a"})).ok());
  ASSERT_TRUE(builder.Add(Named({"a", "d"})).ok());
  EXPECT_FALSE(builder.Add(Named({"e", "\xff"}, {2, 2})).ok());
  ASSERT_TRUE(builder.Add(Named({"e", "c"})).ok());
  const ExampleColumns columns = Build(&builder);
  // By their first occurrence.
  EXPECT_EQ(NamesIn(columns.feature_names()), (std::vector<std::string>{"a", "b", "d", "e", "c"}));
  EXPECT_EQ(columns.values_size(), 0);
  EXPECT_EQ(builder.names(), 0u);
}

// The message says what the rows did, whatever names they have and in whatever order.
TEST(BatchBuilder, BuildsNamedMessagesThatMeanWhatTheRowsMeant) {
  std::mt19937 random(7);
  BatchBuilder builder;
  for (int round = 0; round < 200; ++round) {
    std::vector<NamedFeatures> meant;
    for (int row = 0; row < 20; ++row) {
      NamedFeatures features;
      for (uint32_t i = random() % (round % 4 == 0 ? 60 : 8); i > 0; --i) {
        std::string name = "w" + std::to_string(random() % 300);
        if (random() % 4 == 0) name = "\xc3\xa9" + name;
        if (random() % 50 == 0) name = std::string(1024, static_cast<char>('a' + random() % 9));
        if (random() % 20 == 0) name = std::string(1, static_cast<char>('a' + random() % 26));
        features[name] = static_cast<float>(random() % 5);
      }
      std::vector<std::string> names;
      for (const auto& [name, value] : features) names.push_back(name);
      std::shuffle(names.begin(), names.end(), random);
      std::vector<float> values;
      for (const std::string& name : names) values.push_back(features[name]);
      ASSERT_TRUE(builder.Add(Named(names, values)).ok());
      meant.push_back(features);
    }
    EXPECT_EQ(NameTableReader(0).Read(Build(&builder)), meant);
  }
}

TEST(Utf8, TellsTextFromBytes) {
  EXPECT_TRUE(IsValidUtf8("plain"));
  EXPECT_TRUE(IsValidUtf8("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"));
  for (const char* bad : {"\x80", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\xf8\x88\x80\x80", "\xe2\x82"}) {
    EXPECT_FALSE(IsValidUtf8(bad));
  }
}

}  // namespace
}  // namespace perceptrond::client
