// A stream on real servers: conditional appends of which one wins, also while the leader dies, and
// readers that miss nothing.
#include "core/journal/jetstream/stream.h"

#include <atomic>
#include <barrier>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/journal/jetstream/parts.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/nats_cluster.h"
#include "tests/support/status.h"

namespace perceptrond::jetstream {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::NatsCluster;

constexpr absl::Duration kTimeout = absl::Seconds(5);
constexpr absl::Duration kLong = absl::Seconds(60);

class StreamTest : public ::testing::TestWithParam<int> {
 protected:
  StreamTest() : cluster_(GetParam()) {}

  std::shared_ptr<Connection> Connect(int server) {
    ConnectionOptions options;
    options.servers = {cluster_.url(server)};
    absl::StatusOr<std::shared_ptr<Connection>> connection = Connection::Open(options);
    for (const absl::Time end = absl::Now() + kLong; !connection.ok() && absl::Now() < end;)
      connection = Connection::Open(options);
    EXPECT_OK(connection.status());
    return connection.ok() ? *connection : nullptr;
  }
  std::shared_ptr<Connection> ConnectToAll() {
    ConnectionOptions options;
    options.servers = cluster_.urls();
    absl::StatusOr<std::shared_ptr<Connection>> connection = Connection::Open(options);
    for (const absl::Time end = absl::Now() + kLong; !connection.ok() && absl::Now() < end;)
      connection = Connection::Open(options);
    EXPECT_OK(connection.status());
    return connection.ok() ? *connection : nullptr;
  }
  // Waits until the cluster can have it.
  std::unique_ptr<Stream> Open(const std::shared_ptr<Connection>& connection) {
    StreamOptions options{"fleet-p0", "fleet.p0", GetParam(), false};
    absl::StatusOr<std::unique_ptr<Stream>> stream = Stream::Open(connection, options);
    for (const absl::Time end = absl::Now() + kLong; !stream.ok() && absl::Now() < end;)
      stream = Stream::Open(connection, options);
    EXPECT_OK(stream.status());
    return stream.ok() ? *std::move(stream) : nullptr;
  }
  static absl::StatusOr<AppendOutcome> Append(Stream& stream, const std::string& data,
                                              std::optional<uint64_t> expected) {
    const NewMessage message{"fleet.p0.a", data, ""};
    return stream.Append({&message, 1}, expected, kTimeout);
  }
  // The data of the first `count` messages after a sequence number.
  static std::vector<std::string> Read(Stream& stream, uint64_t after, size_t count) {
    std::vector<std::string> data;
    const absl::Time end = absl::Now() + kLong;
    auto reader = stream.Read("fleet.p0.>", after);
    while (!reader.ok() && absl::Now() < end) reader = stream.Read("fleet.p0.>", after);
    EXPECT_OK(reader.status());
    while (reader.ok() && data.size() < count && absl::Now() < end) {
      const auto message = (*reader)->Next(absl::Milliseconds(100));
      // A server may have died.
      if (absl::IsUnavailable(message.status())) continue;
      EXPECT_OK(message.status());
      if (message.ok() && message->has_value()) data.push_back((*message)->data);
    }
    return data;
  }

  NatsCluster cluster_;
};

TEST_P(StreamTest, MessagesAreAppendedInOrderFromAnEmptyStreamOn) {
  const auto connection = ConnectToAll();
  const auto stream = Open(connection);
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(stream->LastSequence().value(), 0U);
  EXPECT_FALSE(stream->Last("fleet.p0.a")->has_value());
  const std::vector<NewMessage> messages = {{"fleet.p0.a", "one", ""},
                                            {"fleet.p0.b", "two", ""},
                                            {"fleet.p0.a", std::string("t\0x", 3), ""}};
  const auto outcome = stream->Append(messages, 0, kTimeout);
  ASSERT_OK(outcome.status());
  EXPECT_EQ(outcome->written, 3U);
  EXPECT_EQ(outcome->first, 1U);
  EXPECT_EQ(outcome->sequence, 3U);
  EXPECT_EQ(stream->LastSequence().value(), 3U);
  EXPECT_THAT(Read(*stream, 0, 3), ElementsAre("one", "two", std::string("t\0x", 3)));
  EXPECT_THAT(Read(*stream, 2, 1), ElementsAre(std::string("t\0x", 3)));
  const auto last = stream->Last("fleet.p0.b");
  ASSERT_OK(last.status());
  ASSERT_TRUE(last->has_value());
  EXPECT_EQ((*last)->data, "two");
  EXPECT_EQ((*last)->sequence, 2U);
}

TEST_P(StreamTest, AStaleAppendChangesNothingNorDoThoseAfterIt) {
  const auto connection = ConnectToAll();
  const auto stream = Open(connection);
  ASSERT_NE(stream, nullptr);
  ASSERT_EQ(Append(*stream, "one", 0)->written, 1U);
  for (const uint64_t expected : {uint64_t{0}, uint64_t{2}, uint64_t{7}}) {
    const auto outcome = Append(*stream, "late", expected);
    ASSERT_OK(outcome.status());
    EXPECT_TRUE(outcome->stale) << expected;
    EXPECT_EQ(outcome->written, 0U);
  }
  EXPECT_EQ(stream->LastSequence().value(), 1U);
}

TEST_P(StreamTest, OfEightEqualAppendsOneWins) {
  constexpr int kWriters = 8;
  std::vector<std::shared_ptr<Connection>> connections;
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < kWriters; ++i) {
    connections.push_back(Connect(i % cluster_.size()));
    streams.push_back(Open(connections.back()));
    ASSERT_NE(streams.back(), nullptr);
  }
  for (uint64_t round = 0; round < 50; ++round) {
    std::atomic<int> written = 0;
    std::atomic<int> stale = 0;
    std::barrier start(kWriters);
    std::vector<std::thread> threads;
    for (int i = 0; i < kWriters; ++i) {
      threads.emplace_back([&, i] {
        start.arrive_and_wait();
        const auto outcome = Append(*streams[i], absl::StrCat("round ", round), round);
        EXPECT_OK(outcome.status());
        if (outcome.ok()) ++(outcome->stale ? stale : written);
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(written, 1) << round;
    ASSERT_EQ(stale, kWriters - 1) << round;
  }
  EXPECT_EQ(streams[0]->LastSequence().value(), 50U);
}

TEST_P(StreamTest, APipelineIsWrittenUpToItsFirstStaleMessage) {
  const auto connection = ConnectToAll();
  const auto stream = Open(connection);
  ASSERT_NE(stream, nullptr);
  std::vector<NewMessage> messages;
  for (int i = 0; i < 500; ++i)
    messages.push_back({"fleet.p0.a", absl::StrCat("pipelined ", i), ""});
  const auto all = stream->Append(messages, 0, kTimeout);
  ASSERT_OK(all.status());
  EXPECT_EQ(all->written, 500U);
  EXPECT_EQ(all->sequence, 500U);
  ASSERT_EQ(Append(*stream, "another's", 500)->written, 1U);
  const auto refused = stream->Append(messages, 500, kTimeout);
  ASSERT_OK(refused.status());
  EXPECT_TRUE(refused->stale);
  EXPECT_EQ(refused->written, 0U);
  // Which is why entries have an epoch: the second expected 501, and found it.
  EXPECT_EQ(stream->LastSequence().value(), 1000U);
  EXPECT_THAT(Read(*stream, 501, 1), ElementsAre("pipelined 1"));
}

TEST_P(StreamTest, LargeMessagesComeWholeAndUnfinishedOnesNotAtAll) {
  const auto connection = ConnectToAll();
  const auto stream = Open(connection);
  ASSERT_NE(stream, nullptr);
  const std::string large(5 << 19, 'x');
  std::vector<NewMessage> parts;
  AddInParts("fleet.p0.a", large, stream->max_data(), parts);
  ASSERT_EQ(parts.size(), 3U);
  // There is room for headers.
  for (NewMessage& part : parts)
    part.traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  // Their writer ended after two.
  ASSERT_EQ(stream->Append(std::span(parts).first(2), 0, kTimeout)->written, 2U);
  ASSERT_EQ(Append(*stream, "small", 2)->written, 1U);
  ASSERT_EQ(stream->Append(parts, 3, kTimeout)->written, 3U);
  auto reader = stream->Read("fleet.p0.>", 0);
  ASSERT_OK(reader.status());
  PartJoiner joiner;
  std::vector<StreamMessage> whole;
  for (int read = 0; read < 6;) {
    auto message = (*reader)->Next(kLong);
    ASSERT_OK(message.status());
    ASSERT_TRUE(message->has_value());
    ++read;
    if (auto joined = joiner.Add(**std::move(message))) whole.push_back(*std::move(joined));
  }
  ASSERT_EQ(whole.size(), 2U);
  EXPECT_EQ(whole[0].data, "small");
  EXPECT_EQ(whole[1].sequence, 6U);
  EXPECT_TRUE(whole[1].data == large);
}

TEST_P(StreamTest, WhatIsDeletedIsPassedOver) {
  const auto connection = ConnectToAll();
  const auto stream = Open(connection);
  ASSERT_NE(stream, nullptr);
  for (uint64_t i = 0; i < 4; ++i) {
    const NewMessage message{i % 2 == 0 ? "fleet.p0.a" : "fleet.p0.b", absl::StrCat(i), ""};
    ASSERT_EQ(stream->Append({&message, 1}, i, kTimeout)->written, 1U);
  }
  ASSERT_OK(stream->DeleteUpTo("fleet.p0.a", 3));
  EXPECT_THAT(Read(*stream, 0, 2), ElementsAre("1", "3"));
  EXPECT_FALSE(stream->Last("fleet.p0.a")->has_value());
  EXPECT_EQ(stream->LastSequence().value(), 4U);
  EXPECT_EQ(Append(*stream, "4", 4)->written, 1U);
}

TEST_P(StreamTest, OtherSettingsAreRefused) {
  const auto connection = ConnectToAll();
  const auto stream = Open(connection);
  ASSERT_NE(stream, nullptr);
  StreamOptions options = stream->options();
  options.in_memory = !options.in_memory;
  const auto other = Stream::Open(connection, options);
  EXPECT_TRUE(absl::IsFailedPrecondition(other.status())) << other.status();
  EXPECT_OK(Stream::Open(connection, stream->options()).status());
}

TEST_P(StreamTest, AReaderSaysThatThereIsNoConnectionAndGoesOnWhenThereIs) {
  const auto connection = ConnectToAll();
  const auto stream = Open(connection);
  ASSERT_NE(stream, nullptr);
  ASSERT_EQ(Append(*stream, "1", 0)->written, 1U);
  const auto reader = stream->Read("fleet.p0.>", 0);
  ASSERT_OK(reader.status());
  const auto next = [&] { return (*reader)->Next(absl::Milliseconds(20)); };
  absl::StatusOr<std::optional<StreamMessage>> message = next();
  for (const absl::Time end = absl::Now() + kLong; absl::Now() < end && !message->has_value();)
    message = next();
  ASSERT_TRUE(message->has_value());
  for (int i = 0; i < cluster_.size(); ++i) cluster_.Kill(i);
  for (const absl::Time end = absl::Now() + kLong; message.ok() && absl::Now() < end;)
    message = next();
  EXPECT_TRUE(absl::IsUnavailable(message.status())) << message.status();
  for (int i = 0; i < cluster_.size(); ++i) cluster_.Start(i);
  for (const absl::Time end = absl::Now() + kLong; !message.ok() && absl::Now() < end;)
    message = next();
  EXPECT_OK(message.status());
}

INSTANTIATE_TEST_SUITE_P(Servers, StreamTest, ::testing::Values(1, 3));

using ClusterTest = StreamTest;

// The writers do not know who leads, and retry nothing whose outcome is not known.
TEST_P(ClusterTest, OneOfEqualAppendsWinsWhileServersDieAndNothingAcknowledgedIsLost) {
  constexpr int kWriters = 8;
  std::vector<std::shared_ptr<Connection>> connections;
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < kWriters; ++i) {
    connections.push_back(ConnectToAll());
    streams.push_back(Open(connections.back()));
    ASSERT_NE(streams.back(), nullptr);
  }
  std::atomic<bool> ended = false;
  std::atomic<int> kills = 0;
  std::thread killer([&] {
    for (int server = 0; !ended; server = (server + 1) % cluster_.size(), ++kills) {
      // The schedule of the faults: a server is away for less than an election, then back for long enough
      // to catch up.
      absl::SleepFor(absl::Milliseconds(700));
      cluster_.Kill(server);
      absl::SleepFor(absl::Milliseconds(700));
      cluster_.Start(server);
      absl::SleepFor(absl::Seconds(2));
    }
  });
  std::vector<std::string> acknowledged;
  int unknown = 0;
  // How many appends there are between two elections, and how long those take, depends on the machine.
  for (int round = 0; kills < 2 * cluster_.size() || acknowledged.size() <= 50; ++round) {
    absl::StatusOr<uint64_t> last = streams[0]->LastSequence();
    if (!last.ok()) continue;
    std::vector<absl::StatusOr<AppendOutcome>> outcomes(kWriters, absl::UnknownError(""));
    std::barrier start(kWriters);
    std::vector<std::thread> threads;
    for (int i = 0; i < kWriters; ++i) {
      threads.emplace_back([&, i] {
        start.arrive_and_wait();
        outcomes[i] = Append(*streams[i], absl::StrCat(round, " by ", i), *last);
      });
    }
    for (std::thread& thread : threads) thread.join();
    int written = 0;
    for (int i = 0; i < kWriters; ++i) {
      if (!outcomes[i].ok()) {
        unknown += absl::IsUnknown(outcomes[i].status()) ? 1 : 0;
      } else if (!outcomes[i]->stale) {
        ++written;
        acknowledged.push_back(absl::StrCat(round, " by ", i));
        EXPECT_EQ(outcomes[i]->sequence, *last + 1);
      }
    }
    EXPECT_LE(written, 1) << round;
  }
  ended = true;
  killer.join();
  absl::StatusOr<uint64_t> last = streams[0]->LastSequence();
  for (const absl::Time until = absl::Now() + kLong; !last.ok() && absl::Now() < until;)
    last = streams[0]->LastSequence();
  ASSERT_OK(last.status());
  const std::vector<std::string> all = Read(*streams[0], 0, *last);
  EXPECT_EQ(all.size(), *last);
  for (const std::string& one : acknowledged) EXPECT_THAT(all, ::testing::Contains(one));
  std::printf("%zu rounds acknowledged, %d appends of unknown outcome, %llu messages\n",
              acknowledged.size(), unknown, static_cast<unsigned long long>(*last));
}

// A server that is left alone goes on answering.
TEST_P(ClusterTest, AStreamWithoutAMajorityIsUnavailableUntilItIsBack) {
  const auto connection = Connect(0);
  const auto stream = Open(connection);
  ASSERT_NE(stream, nullptr);
  ASSERT_EQ(Append(*stream, "1", 0)->written, 1U);
  const std::shared_ptr<Link> before = connection->link();
  cluster_.Kill(1);
  cluster_.Kill(2);
  const auto last = [&](bool there) {
    absl::StatusOr<uint64_t> found = stream->LastSequence();
    for (const absl::Time end = absl::Now() + kLong; found.ok() != there && absl::Now() < end;)
      found = stream->LastSequence();
    return found;
  };
  EXPECT_TRUE(absl::IsUnavailable(last(false).status()));
  // By now nobody is in time for an election.
  for (const absl::Time end = absl::Now() + absl::Seconds(15); absl::Now() < end;)
    ASSERT_TRUE(absl::IsUnavailable(stream->LastSequence().status()));
  // Another server, if there were one, would be tried.
  for (const absl::Time end = absl::Now() + kLong;
       connection->link() == before && absl::Now() < end;)
    ASSERT_TRUE(absl::IsUnavailable(stream->LastSequence().status()));
  EXPECT_NE(connection->link(), before);
  cluster_.Start(1);
  EXPECT_EQ(last(true).value_or(0), 1U);
}

// nats-server before 2.9.18 repeats the purge of one subject as one of all, once it is started again.
TEST_P(ClusterTest, OnlyWhatIsDeletedIsMissingAfterAllServersHaveRestarted) {
  const auto connection = ConnectToAll();
  const auto stream = Open(connection);
  ASSERT_NE(stream, nullptr);
  for (uint64_t i = 0; i < 40; ++i) {
    const NewMessage message{i % 2 == 0 ? "fleet.p0.a" : "fleet.p0.b", absl::StrCat(i), ""};
    ASSERT_EQ(stream->Append({&message, 1}, i, kTimeout)->written, 1U);
  }
  ASSERT_OK(stream->DeleteUpTo("fleet.p0.a", 30));
  for (int server = 0; server < cluster_.size(); ++server) cluster_.Kill(server);
  for (int server = 0; server < cluster_.size(); ++server) cluster_.Start(server);
  absl::StatusOr<uint64_t> last = stream->LastSequence();
  for (const absl::Time end = absl::Now() + kLong; !last.ok() && absl::Now() < end;)
    last = stream->LastSequence();
  ASSERT_OK(last.status());
  EXPECT_EQ(*last, 40U);
  std::vector<std::string> left;
  for (int i = 0; i < 40; ++i) {
    if (i % 2 == 1 || i >= 30) left.push_back(absl::StrCat(i));
  }
  EXPECT_EQ(Read(*stream, 0, left.size()), left);
}

INSTANTIATE_TEST_SUITE_P(Three, ClusterTest, ::testing::Values(3));

}  // namespace
}  // namespace perceptrond::jetstream
