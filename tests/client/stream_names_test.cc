// Tables of names under LearnStream and PredictStream: a name is sent once a connection, and every
// row arrives once and in order, whatever breaks.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "client/learn_stream.h"
#include "client/predict_stream.h"
#include "tests/client/fake_server.h"

namespace perceptrond::client {
namespace {

using Fate = FakeServer::Fate;

// A row whose first name is its own, among names that are frequent.
Row NamedRow(uint32_t id) {
  Row row;
  row.kind = RowKind::kNamed;
  row.label = 1;
  row.AddName("z" + std::to_string(id % 3));
  row.AddName("n" + std::to_string(id));
  row.AddName("z" + std::to_string(3 + id % 7));
  row.values = {1, static_cast<float>(id), 3};
  return row;
}

std::vector<uint32_t> UpTo(uint32_t n) {
  std::vector<uint32_t> ids(n);
  std::iota(ids.begin(), ids.end(), 0u);
  return ids;
}

template <typename Options>
Options NamedOptions() {
  Options options;
  options.rows_per_message = 4;
  options.window_messages = 5;
  options.retry.initial_backoff = absl::Microseconds(100);
  options.retry.max_backoff = absl::Milliseconds(1);
  options.retry.give_up_after = absl::Seconds(30);
  return options;
}

TEST(StreamNames, ANameIsSentOnceOnAStream) {
  FakeServer server;
  server.most_table_names = 1 << 16;
  size_t names_sent = 0;
  server.on_result = [&](const v1::LearnStreamRequest& request, v1::LearnResult*) {
    EXPECT_TRUE(request.columns().has_stream_names());
    names_sent += static_cast<size_t>(request.columns().stream_names().lengths_size());
  };
  auto options = NamedOptions<LearnOptions>();
  options.producer_id = "p";
  auto stream = LearnStream::Open(server.Connect(), "m", std::move(options));
  ASSERT_TRUE(stream.ok()) << stream.status();
  for (uint32_t id = 0; id < 200; ++id) ASSERT_TRUE((*stream)->Push(NamedRow(id)).ok());
  ASSERT_TRUE((*stream)->Finish().ok());
  EXPECT_EQ(server.producer("p").account, UpTo(200));
  EXPECT_EQ(names_sent, 210u);
}

TEST(StreamNames, AMessageHasNoMoreNewNamesThanAQuarterOfTheTable) {
  FakeServer server;
  server.most_table_names = 64;
  server.on_result = [&](const v1::LearnStreamRequest& request, v1::LearnResult*) {
    EXPECT_TRUE(request.columns().has_stream_names());
    EXPECT_LE(request.columns().stream_names().lengths_size(), 16);
  };
  auto options = NamedOptions<LearnOptions>();
  options.producer_id = "p";
  options.rows_per_message = 100;
  options.name_table_size = 64;
  options.compact = true;  // which uses the table although most names leave it
  auto stream = LearnStream::Open(server.Connect(), "m", std::move(options));
  ASSERT_TRUE(stream.ok()) << stream.status();
  for (uint32_t id = 0; id < 300; ++id) ASSERT_TRUE((*stream)->Push(NamedRow(id)).ok());
  ASSERT_TRUE((*stream)->Finish().ok());
  EXPECT_EQ(server.producer("p").account, UpTo(300));
}

class StreamNamesUnderFaults : public testing::TestWithParam<uint32_t> {};

TEST_P(StreamNamesUnderFaults, EveryRowIsLearnedOnceInOrder) {
  std::mt19937 random(GetParam());
  std::mt19937 fates(GetParam() + 1000);
  FakeServer server;
  server.crash_on_drop = GetParam() % 2 == 0;
  server.most_table_names = std::vector<uint32_t>{8, 64, 1 << 16}[GetParam() % 3];
  int faults = 0;
  server.fate = [&](const v1::LearnStreamRequest&) {
    const uint32_t drawn = fates() % 12;
    if (drawn >= 3 || faults == 40) return Fate::kAnswer;
    ++faults;
    return drawn == 0 ? Fate::kDropBefore : drawn == 1 ? Fate::kDropHalfway : Fate::kDropAfter;
  };
  auto options = NamedOptions<LearnOptions>();
  options.producer_id = "p";
  options.compact = GetParam() % 5 == 0;
  options.name_table_size = GetParam() % 7 == 0 ? 64 : 1 << 16;
  auto stream = LearnStream::Open(server.Connect(), "m", std::move(options));
  ASSERT_TRUE(stream.ok()) << stream.status();
  for (uint32_t id = 0; id < 400; ++id) {
    ASSERT_TRUE((*stream)->Push(NamedRow(id), id).ok());
    if (random() % 20 == 0) {
      ASSERT_TRUE((*stream)->Flush().ok());
    }
  }
  const auto totals = (*stream)->Finish();
  ASSERT_TRUE(totals.ok()) << totals.status();
  EXPECT_EQ(server.producer("p").account, UpTo(400));
  EXPECT_EQ(totals->reconnects, faults);
}

INSTANTIATE_TEST_SUITE_P(Seeds, StreamNamesUnderFaults, testing::Range(0u, 12u));

TEST(StreamNames, PredictionsAreOfTheRowsAskedFor) {
  for (const uint32_t most : {0u, 8u, 1u << 16}) {
    for (const int break_after : {-1, 3}) {
      for (const bool refuses : {false, true}) {
        FakeServer server;
        server.most_table_names = most;
        server.refuses_name_tables = refuses;
        server.predict_break_after = break_after;
        std::vector<float> scores;
        auto options = NamedOptions<PredictOptions>();
        options.compact = most == 8;
        options.on_answer = [&](const PredictAnswer& answer) {
          scores.insert(scores.end(), answer.response.scores().begin(),
                        answer.response.scores().end());
        };
        PredictStream stream(server.Connect(), "m", std::move(options));
        const std::vector<uint32_t> ids = UpTo(100);
        for (const uint32_t id : ids) ASSERT_TRUE(stream.Push(NamedRow(id)).ok());
        ASSERT_TRUE(stream.Finish().ok());
        EXPECT_EQ(scores, std::vector<float>(ids.begin(), ids.end()));
      }
    }
  }
}

}  // namespace
}  // namespace perceptrond::client
