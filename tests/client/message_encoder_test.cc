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

// A message as a BatchBuilder makes it.
struct Message {
  ExampleColumns columns;
  NameNumbers names;
};

ExampleColumns Encode(MessageEncoder& encoder, const Message& message) {
  ExampleColumns columns;
  encoder.Encode(message.columns, message.names, &columns);
  return columns;
}

Message RowsOf(BatchBuilder& builder, const std::vector<NamedFeatures>& rows) {
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
  Message message;
  builder.BuildUnsorted(&message.columns, &message.names);
  return message;
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

TEST(MessageEncoder, AppendsNoMoreNamesOfOtherMessagesThanAMessageHasRoomFor) {
  constexpr size_t kBytes = 1000;
  BatchBuilder builder;
  for (int i = 0; i < 400; ++i) RowsOf(builder, {{{"early" + std::to_string(i), 1}}});
  const Message message = RowsOf(builder, {{{"early7", 1}, {"late", 1}}});
  for (const size_t room : {kBytes, size_t{1} << 20}) {
    MessageEncoder encoder(1 << 12, false, room);
    encoder.StartConnection(1 << 12);
    const ExampleColumns columns = Encode(encoder, message);
    // 401 names, or its own two.
    EXPECT_EQ(columns.stream_names().lengths_size(), room == kBytes ? 2 : 401);
    EXPECT_EQ(columns.indices_size(), 2);
    // The next message names none again.
    EXPECT_EQ(Encode(encoder, message).stream_names().lengths_size(), 0);
  }
}

// The server reads what the rows were, whatever names leave the table in between.
TEST(MessageEncoder, MeansWhatTheRowsMeantWithTablesOfAnySize) {
  for (const uint32_t size : {0u, 4u, 8u, 64u, 1024u}) {
    for (const bool compact : {false, true}) {
      std::mt19937 random(size);
      BatchBuilder builder;
      MessageEncoder encoder(0, compact);
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
        const Message message = RowsOf(builder, rows);
        const ExampleColumns sent = Encode(encoder, message);
        EXPECT_EQ(reader.Read(sent), rows);
        EXPECT_EQ(sent.has_feature_names() != sent.has_stream_names(),
                  message.columns.has_feature_names());
        EXPECT_EQ(sent.labels().size(), message.columns.labels().size());
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

// Names are numbered anew after the builder has forgotten them.
TEST(MessageEncoder, GoesOnInTheBuildersNextEra) {
  BatchBuilder builder;
  MessageEncoder encoder(0, false);
  encoder.StartConnection(kMostTableNames);
  NameTableReader reader(kMostTableNames);
  int eras = 0;
  std::shared_ptr<const EraNames> era;
  for (int i = 0; i < 12; ++i) {
    std::vector<NamedFeatures> rows(500);
    for (size_t row = 0; row < rows.size(); ++row) {
      for (int j = 0; j < 100; ++j)
        rows[row][std::to_string(i) + "." + std::to_string(row * 100 + static_cast<size_t>(j))] = 1;
      rows[row]["always"] = 2;
    }
    const Message message = RowsOf(builder, rows);
    eras += std::exchange(era, message.names.era) != message.names.era ? 1 : 0;
    EXPECT_EQ(reader.Read(Encode(encoder, message)), rows);
  }
  EXPECT_GE(eras, 1);
}

TEST(MessageEncoder, LeavesRowsByIndexAsTheyAre) {
  BatchBuilder builder;
  Row row;
  row.indices = {3, 9};
  row.values = {1, 0.1f};
  ASSERT_TRUE(builder.Add(row).ok());
  ExampleColumns columns;
  builder.Build(&columns);
  MessageEncoder encoder(0, false);
  encoder.StartConnection(16);
  EXPECT_FALSE(encoder.Changes(columns));
  EXPECT_TRUE(MessageEncoder(0, true).Changes(columns));
}

TEST(MessageEncoder, HalvesValuesOnlyWhereNoneChanges) {
  MessageEncoder encoder(0, true);
  encoder.StartConnection(0);
  const auto is_halved = [&](float value) {
    BatchBuilder builder;
    Row row;
    row.indices = {1, 4};
    row.values = {value, 2};
    EXPECT_TRUE(builder.Add(row).ok());
    Message message;
    builder.BuildUnsorted(&message.columns, &message.names);
    const ExampleColumns sent = Encode(encoder, message);
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
