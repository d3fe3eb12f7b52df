#include "client/message_encoder.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "client/batch_builder.h"
#include "client/row.h"
#include "tests/client/named_columns.h"

namespace perceptrond::client {
namespace {

using perceptron::v1::ExampleColumns;

struct Message {
  ExampleColumns columns;
  MessageEncoder::Examples examples;
};

Message Encode(MessageEncoder& encoder, const ExampleColumns& rows) {
  Message message;
  encoder.Encode(rows, &message.columns, &message.examples);
  return message;
}

ExampleColumns RowsOf(const std::vector<NamedFeatures>& rows) {
  BatchBuilder builder;
  for (const NamedFeatures& features : rows) {
    Row row;
    row.kind = RowKind::kNamed;
    row.label = features.size() % 2 == 0 ? 1 : -1;
    for (const auto& [name, value] : features) {
      row.AddName(name);
      row.values.push_back(value);
    }
    EXPECT_TRUE(builder.Add(row).ok());
  }
  ExampleColumns columns;
  builder.BuildUnsorted(&columns);
  return columns;
}

std::string RandomName(std::mt19937& random) {
  // Few names are frequent, and many rare.
  const uint32_t number = random() % (1 + random() % 60);
  if (number == 7) return std::string(1024, 'x');
  if (number == 8) return "y";
  return (number % 3 == 0 ? "\xe2\x82\xac" : "n") + std::to_string(number);
}

TEST(NameTableSize, IsAPowerOfTwoUpToTheServersMaximum) {
  EXPECT_EQ(NameTableSize(0), 0u);
  EXPECT_EQ(NameTableSize(3), 0u);
  EXPECT_EQ(NameTableSize(4), 4u);
  EXPECT_EQ(NameTableSize(100'000), 65'536u);
  EXPECT_EQ(NameTableSize(UINT32_MAX), kMostTableNames);
}

TEST(MessageEncoder, SendsANameOnceWhileItIsInTheTable) {
  MessageEncoder encoder(false);
  encoder.StartConnection(16);
  NameTableReader reader(16);
  const ExampleColumns first = RowsOf({{{"b", 1}, {"a", 2}}});
  EXPECT_EQ(NamesIn(Encode(encoder, first).columns.stream_names()),
            (std::vector<std::string>{"a", "b"}));
  const ExampleColumns again = Encode(encoder, RowsOf({{{"c", 1}, {"b", 2}}})).columns;
  EXPECT_EQ(NamesIn(again.stream_names()), std::vector<std::string>{"c"});
  EXPECT_FALSE(again.has_feature_names());
  EXPECT_EQ(again.indices(0), 1u);
  EXPECT_EQ(again.indices(1), 2u);
}

TEST(MessageEncoder, StartsAnEmptyTableWithEachConnection) {
  MessageEncoder encoder(false);
  const ExampleColumns rows = RowsOf({{{"a", 1}}});
  for (int connection = 0; connection < 2; ++connection) {
    encoder.StartConnection(16);
    EXPECT_EQ(NamesIn(Encode(encoder, rows).columns.stream_names()), std::vector<std::string>{"a"});
  }
  encoder.StartConnection(0);
  EXPECT_EQ(NamesIn(Encode(encoder, rows).columns.feature_names()), std::vector<std::string>{"a"});
}

TEST(MessageEncoder, SendsNestedExamplesIfThereAreTooManyNames) {
  MessageEncoder encoder(false);
  encoder.StartConnection(8);
  const std::vector<NamedFeatures> rows = {{{"a", 1}, {"b", 2}}, {{"c", 3}}};
  const Message message = Encode(encoder, RowsOf(rows));
  EXPECT_EQ(NameTableReader::Read(message.examples), rows);
  EXPECT_EQ(message.examples[0].label(), 1);
  EXPECT_EQ(message.examples[1].label(), -1);
  EXPECT_EQ(message.columns.ByteSizeLong(), 0u);
}

TEST(MessageEncoder, SendsLabelNamesAndWeightsOfNestedExamples) {
  BatchBuilder builder;
  Row row;
  row.kind = RowKind::kNamed;
  row.AddName("a");
  row.AddName("b");
  row.label_name = "tea";
  row.weight = 2;
  ASSERT_TRUE(builder.Add(row).ok());
  row.label_name.clear();
  ASSERT_TRUE(builder.Add(row).ok());
  ExampleColumns columns;
  builder.BuildUnsorted(&columns);
  MessageEncoder encoder(false);
  encoder.StartConnection(4);
  const Message message = Encode(encoder, columns);
  ASSERT_EQ(message.examples.size(), 2);
  EXPECT_EQ(message.examples[0].label_name(), "tea");
  EXPECT_EQ(message.examples[0].weight(), 2);
  EXPECT_EQ(message.examples[1].target_case(), perceptron::v1::Example::TARGET_NOT_SET);
}

// The server reads what the rows were, whatever names leave the table in between.
TEST(MessageEncoder, MeansWhatTheRowsMeantWithTablesOfAnySize) {
  for (const uint32_t size : {0u, 4u, 8u, 64u, 1024u}) {
    for (const bool compact : {false, true}) {
      std::mt19937 random(size);
      MessageEncoder encoder(compact);
      encoder.StartConnection(size);
      NameTableReader reader(size);
      std::set<std::string> appended;
      for (int i = 0; i < 500; ++i) {
        std::vector<NamedFeatures> rows;
        for (uint32_t n = 1 + random() % 3; n > 0; --n) {
          NamedFeatures features;
          for (uint32_t f = random() % 40; f > 0; --f)
            features[RandomName(random)] = static_cast<float>(random() % 7) / 4;
          // Some messages have few names, which fit into the smallest table.
          while (i % 2 == 0 && features.size() > 1) features.erase(features.begin());
          rows.push_back(features);
        }
        if (i % 2 == 0) rows.resize(1);
        const ExampleColumns columns = RowsOf(rows);
        const Message message = Encode(encoder, columns);
        EXPECT_EQ(message.examples.empty() ? reader.Read(message.columns)
                                           : NameTableReader::Read(message.examples),
                  rows);
        if (message.examples.empty()) {
          EXPECT_EQ(message.columns.labels().size(), columns.labels().size());
        }
      }
      // Names of a large table are appended once, those of a small one again and again.
      appended.insert(reader.names().begin(), reader.names().end());
      if (size == 1024) {
        EXPECT_EQ(appended.size(), reader.names().size());
      } else if (size > 0 && size <= 8) {
        EXPECT_LT(appended.size(), reader.names().size());
      }
    }
  }
}

TEST(MessageEncoder, LeavesRowsByIndexAsTheyAre) {
  BatchBuilder builder;
  Row row;
  row.indices = {3, 9};
  row.values = {1, 0.1f};
  ASSERT_TRUE(builder.Add(row).ok());
  ExampleColumns columns;
  builder.Build(&columns);
  MessageEncoder encoder(false);
  encoder.StartConnection(16);
  EXPECT_FALSE(encoder.Changes(columns));
  encoder.set_compact(true);
  EXPECT_TRUE(encoder.Changes(columns));
}

TEST(MessageEncoder, HalvesValuesOnlyWhereNoneChanges) {
  MessageEncoder encoder(true);
  encoder.StartConnection(0);
  const auto is_halved = [&](float value) {
    BatchBuilder builder;
    Row row;
    row.indices = {1, 4};
    row.values = {value, 2};
    EXPECT_TRUE(builder.Add(row).ok());
    ExampleColumns columns;
    builder.Build(&columns);
    const ExampleColumns sent = Encode(encoder, columns).columns;
    EXPECT_EQ(sent.index_deltas_size(), 2);
    EXPECT_EQ(sent.index_deltas(0), 1u);
    EXPECT_EQ(sent.index_deltas(1), 2u);
    const bool halved = !sent.half_values().empty();
    if (halved) {
      const auto low = static_cast<unsigned char>(sent.half_values()[0]);
      const auto high = static_cast<unsigned char>(sent.half_values()[1]);
      EXPECT_EQ(FromHalf(static_cast<uint16_t>(low | high << 8)), value);
    } else {
      EXPECT_EQ(sent.values(0), value);
    }
    return halved;
  };
  for (const float value : {0.0f, 0.5f, -1.0f, 1023.5f, 65'504.0f, std::ldexp(1.0f, -14),
                            std::ldexp(1.0f, -24), std::ldexp(-1023.0f, -24), 0.333251953125f})
    EXPECT_TRUE(is_halved(value)) << value;
  for (const float value : {0.1f, 65'505.0f, 65'536.0f, 2048.5f, std::ldexp(1.0f, -25),
                            std::ldexp(3.0f, -25), 3e38f, 1e-40f})
    EXPECT_FALSE(is_halved(value)) << value;
}

}  // namespace
}  // namespace perceptrond::client
