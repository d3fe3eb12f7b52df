// The limits of connections and of the calls on them; which connections are closed, and that no client that keeps to the protocol has
// one of them.
#include "server/rpc/connections.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <memory>
#include <optional>
#include <string>

#include "server/rpc/connection_watch.h"
#include "server/rpc/transport.h"
#include "tests/support/status.h"

namespace perceptrond {
namespace {

using ::perceptrond::testing::ReasonOf;
using ::testing::HasSubstr;

// Port 0: a Unix socket.
SocketAddress Address(const std::string& host, uint16_t port) {
  SocketAddress address;
  if (port == 0) {
    address.storage.ss_family = AF_UNIX;
    address.size = sizeof(sa_family_t);
    return address;
  }
  const bool v6 = host.find(':') != std::string::npos;
  auto* const in = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* const in6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  address.storage.ss_family = v6 ? AF_INET6 : AF_INET;
  (v6 ? in6->sin6_port : in->sin_port) = htons(port);
  void* const bytes = v6 ? static_cast<void*>(&in6->sin6_addr) : &in->sin_addr;
  EXPECT_EQ(inet_pton(v6 ? AF_INET6 : AF_INET, host.c_str(), bytes), 1);
  address.size = v6 ? sizeof *in6 : sizeof *in;
  return address;
}

// Begins a call, which ends at once if it is refused.
absl::Status Begin(Connections& connections, const std::string& peer, const char* path) {
  std::shared_ptr<Connection> found;
  const absl::Status status = connections.BeginCall(peer, path, found);
  if (!status.ok()) connections.EndCall(found.get(), path, false);
  return status;
}
constexpr Connections::Limits kLimits = {.connections = 5,
                                         .connections_per_address = 2,
                                         .streams_per_connection = 2,
                                         .streams = 3,
                                         .open_refused = 0};

TEST(ConnectionsTest, NoMoreConnectionsThanTheLimitAndOneThatEndsMakesRoom) {
  Connections connections(kLimits);
  std::vector<std::shared_ptr<Connection>> open;
  for (uint16_t i = 1; i < 6; ++i) open.push_back(connections.Add(Address("127.0.0.1", i)));
  EXPECT_EQ(connections.Add(Address("127.0.0.1", 9)), nullptr);
  EXPECT_NE(connections.AddOwn(Address("127.0.0.1", 10)), nullptr);
  EXPECT_EQ(connections.stats().open, 6);
  EXPECT_EQ(connections.stats().refused[0], 1);
  connections.Remove(*open[0]);
  connections.Remove(*open[1]);
  EXPECT_NE(connections.Add(Address("127.0.0.1", 9)), nullptr);
}

TEST(ConnectionsTest, AnAddressHasItsOwnLimitButNotThisMachine) {
  for (const auto& [first, second, third, other] :
       {std::tuple{Address("192.0.2.1", 1), Address("192.0.2.1", 2), Address("192.0.2.1", 3),
                   Address("192.0.2.2", 1)},
        std::tuple{Address("192.0.2.1", 1), Address("::ffff:192.0.2.1", 2),
                   Address("::ffff:192.0.2.1", 3), Address("::ffff:192.0.2.2", 1)},
        std::tuple{Address("2001:db8::1", 1), Address("2001:db8::1", 2),
                   Address("2001:db8::ffff:1", 3), Address("2001:db8:0:1::1", 1)}}) {
    Connections connections(kLimits);
    const auto one = connections.Add(first);
    EXPECT_NE(one, nullptr);
    EXPECT_NE(connections.Add(second), nullptr);
    EXPECT_EQ(connections.Add(third), nullptr);
    EXPECT_EQ(connections.stats().refused[1], 1);
    EXPECT_NE(connections.Add(other), nullptr);
    connections.Remove(*one);
    EXPECT_NE(connections.Add(third), nullptr);
  }
  Connections connections(kLimits);
  EXPECT_NE(connections.Add(Address("::1", 1)), nullptr);
  EXPECT_NE(connections.Add(Address("::1", 2)), nullptr);
  EXPECT_NE(connections.Add(Address("::1", 3)), nullptr);
  EXPECT_NE(connections.Add(Address("", 0)), nullptr);
  EXPECT_NE(connections.Add(Address("", 0)), nullptr);
  EXPECT_EQ(connections.stats().refused[1], 0);
}

TEST(ConnectionsTest, CallsAreCountedOnTheConnectionOfTheirPeer) {
  Connections connections(kLimits);
  const auto open = connections.Add(Address("2001:db8::1", 7));
  std::shared_ptr<Connection> found;
  EXPECT_TRUE(connections.BeginCall("ipv6:%5B2001:db8::1%5D:7", "/a.B/C", found).ok());
  EXPECT_EQ(found, open);
  found->OnMessage(100);
  EXPECT_EQ(open->counts().in_flight, 1);
  EXPECT_EQ(open->counts().message_bytes, 100);
  connections.EndCall(found.get(), "/a.B/C", true);
  EXPECT_EQ(open->counts().in_flight, 0);
  EXPECT_EQ(open->counts().cancelled, 1);
  EXPECT_EQ(open->counts().progress, 1);
  EXPECT_TRUE(connections.BeginCall("unix:", "/a.B/C", found).ok());
  EXPECT_EQ(found, nullptr);
  EXPECT_EQ(connections.stats().streams, 1);
  connections.EndCall(nullptr, "/a.B/C", false);
  EXPECT_EQ(connections.stats().streams, 0);
}

TEST(ConnectionsTest, TooManyCallsAreRefusedWithTheOptionToRaiseButHealthIsNot) {
  Connections connections(kLimits);
  const auto one = connections.Add(Address("127.0.0.1", 1));
  const auto two = connections.Add(Address("127.0.0.1", 2));
  const auto begin = [&](int port, const char* path) {
    return Begin(connections, absl::StrCat("ipv4:127.0.0.1:", port), path);
  };
  EXPECT_TRUE(begin(1, "/a.B/C").ok());
  EXPECT_TRUE(begin(1, "/a.B/C").ok());
  const absl::Status third = begin(1, "/a.B/C");
  EXPECT_EQ(third.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(third), "TOO_MANY_STREAMS");
  EXPECT_THAT(std::string(third.message()), HasSubstr("raise --max-streams-per-connection"));
  EXPECT_TRUE(begin(2, "/a.B/C").ok());
  EXPECT_THAT(std::string(begin(2, "/a.B/C").message()), HasSubstr("raise --max-streams"));
  EXPECT_TRUE(begin(1, "/grpc.health.v1.Health/Check").ok());
  EXPECT_TRUE(begin(2, "/perceptron.v1.ModelService/ListModels").ok());
  EXPECT_FALSE(begin(2, "/grpc.health.v1.Health/Watch").ok());
  EXPECT_FALSE(begin(2, "/perceptron.v1.ModelService/WatchModel").ok());
  EXPECT_EQ(connections.stats().streams_refused_connection, 3);
  EXPECT_EQ(connections.stats().streams_refused_all, 1);
}

// A client that has the right HEALTH alone can open these.
TEST(ConnectionsTest, HealthWatchesLeaveThreeQuartersOfTheCallsToOthers) {
  Connections connections({.streams_per_connection = 100, .streams = 20});
  const auto one = connections.Add(Address("127.0.0.1", 1));
  const auto begin = [&](const char* path) { return Begin(connections, "ipv4:127.0.0.1:1", path); };
  const char* const watch = "/grpc.health.v1.Health/Watch";
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(begin(watch).ok()) << i;
  const absl::Status sixth = begin(watch);
  EXPECT_EQ(ReasonOf(sixth), "TOO_MANY_STREAMS");
  EXPECT_THAT(std::string(sixth.message()), HasSubstr("raise --max-streams"));
  for (int i = 0; i < 15; ++i) EXPECT_TRUE(begin("/a.B/C").ok()) << i;
  connections.EndCall(one.get(), watch, false);
  EXPECT_TRUE(begin(watch).ok());
}

TEST(ConnectionsTest, SomeBeyondTheLimitsAreOpenUntilACallNamesTheOptionToRaise) {
  Connections connections({.connections = 2, .connections_per_address = 1, .open_refused = 2});
  const auto call = [&](const char* host, const char* path) {
    std::shared_ptr<Connection> found;
    const absl::Status status = connections.BeginCall(absl::StrCat("ipv4:", host), path, found);
    connections.EndCall(found.get(), path, false);
    return status;
  };
  const auto first = connections.Add(Address("192.0.2.1", 1));
  EXPECT_FALSE(first->refusal().has_value());
  const auto same = connections.Add(Address("192.0.2.1", 2));
  EXPECT_EQ(same->refusal(), RefusalReason::kConnectionsPerAddress);
  const auto second = connections.Add(Address("192.0.2.2", 1));
  EXPECT_FALSE(second->refusal().has_value());
  const auto third = connections.Add(Address("192.0.2.3", 1));
  EXPECT_EQ(third->refusal(), RefusalReason::kConnections);
  EXPECT_EQ(connections.Add(Address("192.0.2.4", 1)), nullptr);

  EXPECT_TRUE(call("192.0.2.1:1", "/a.B/C").ok());
  const absl::Status per_address = call("192.0.2.1:2", "/a.B/C");
  EXPECT_EQ(per_address.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(per_address), "TOO_MANY_CONNECTIONS");
  EXPECT_THAT(std::string(per_address.message()),
              HasSubstr("has reached --max-connections-per-address (1)"));
  EXPECT_THAT(std::string(call("192.0.2.3:1", "/a.B/C").message()),
              HasSubstr("has reached --max-connections (2)"));
  EXPECT_TRUE(call("192.0.2.3:1", "/grpc.health.v1.Health/Check").ok());
  EXPECT_FALSE(call("192.0.2.3:1", "/grpc.health.v1.Health/Watch").ok());

  // They take no room from others, nor do their ends make any.
  EXPECT_EQ(connections.stats().open, 2);
  connections.Remove(*same);
  EXPECT_EQ(connections.Add(Address("192.0.2.1", 3))->refusal(), RefusalReason::kConnections);
  connections.Remove(*first);
  EXPECT_FALSE(connections.Add(Address("192.0.2.1", 4))->refusal().has_value());
  EXPECT_EQ(connections.stats().refused[0], 3);
  EXPECT_EQ(connections.stats().refused[1], 1);
}

TEST(ConnectionLimitsTest, LeaveDescriptorsForTheJournal) {
  EXPECT_EQ(ConnectionLimits({0, 0}, 1024)->connections, 384);
  EXPECT_EQ(ConnectionLimits({0, 0}, 1024)->connections_per_address, 96);
  EXPECT_EQ(ConnectionLimits({0, 0}, 1 << 20)->connections, 10000);
  EXPECT_EQ(ConnectionLimits({384, 7}, 1024)->connections_per_address, 7);
  for (const auto& [asked, descriptors] : {std::pair{385, 1024}, std::pair{0, 100}}) {
    const auto limits =
        ConnectionLimits({static_cast<size_t>(asked), 0}, static_cast<uint64_t>(descriptors));
    EXPECT_EQ(limits.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(limits.status().message()), HasSubstr("LimitNOFILE"));
  }
}

constexpr uint64_t kMiB = 1 << 20;
constexpr absl::Duration kLook = absl::Milliseconds(50);

class ConnectionWatchTest : public ::testing::Test {
 protected:
  // Looks after `step`; what was found first stays.
  void Check(absl::Duration step = kLook) {
    now_ += step;
    if (const auto reason = watch_.Check(figures_, limits_, now_); reason && !closed_)
      closed_ = reason;
  }
  void Begin(uint64_t calls = 1) {
    figures_.counts.begun += calls;
    figures_.counts.in_flight += calls;
  }
  void End(uint64_t calls = 1, bool cancelled = false) {
    figures_.counts.in_flight -= calls;
    (cancelled ? figures_.counts.cancelled : figures_.counts.progress) += calls;
  }
  void Message(uint64_t bytes) {
    figures_.counts.message_bytes += bytes;
    ++figures_.counts.progress;
  }

  absl::Time now_ = absl::UnixEpoch();
  WatchLimits limits_{16 * kMiB, absl::Minutes(5), absl::Minutes(15)};
  ConnectionWatch watch_{now_};
  ConnectionWatch::Figures figures_;
  std::optional<CloseReason> closed_;
};

TEST_F(ConnectionWatchTest, BytesWithoutACallCloseAtTheSecondLook) {
  figures_.read_bytes = kMiB + 1000;
  Check();
  EXPECT_EQ(closed_, std::nullopt);
  Check();
  EXPECT_EQ(closed_, CloseReason::kNoCall);
}

TEST_F(ConnectionWatchTest, ACallThatIsSeenLateClearsItsBytes) {
  figures_.read_bytes = 4 * kMiB;
  Check();
  Begin();
  Check();
  Message(4 * kMiB);
  End();
  Check();
  EXPECT_EQ(closed_, std::nullopt);
  EXPECT_EQ(watch_.held_bytes(), 0);
}

TEST_F(ConnectionWatchTest, MoreBytesThanItsCallsMaySendCloseAConnection) {
  Begin(2);
  Check();
  figures_.read_bytes = 33 * kMiB;
  Check();
  EXPECT_EQ(closed_, std::nullopt);
  figures_.read_bytes += 1000;
  Check();
  EXPECT_EQ(closed_, CloseReason::kUnfinishedBytes);
}

TEST_F(ConnectionWatchTest, AMessageThatIsNotFinishedInTimeClosesAConnection) {
  Begin();
  Check();
  figures_.read_bytes = kMiB;
  Check();
  Check(absl::Minutes(5));
  EXPECT_EQ(closed_, CloseReason::kReceiveTimeout);
}

TEST_F(ConnectionWatchTest, AConnectionWithoutACallClosesAfterTheIdleTimeout) {
  Begin();
  End();
  Check();
  Check(absl::Minutes(15) + absl::Seconds(1));
  EXPECT_EQ(closed_, CloseReason::kNoCall);
}

TEST_F(ConnectionWatchTest, ManyResetsCloseAConnection) {
  for (int i = 0; i < 200; ++i) {
    Begin(100);
    Check();
    End(100, true);
  }
  EXPECT_EQ(closed_, CloseReason::kResets);
}

TEST_F(ConnectionWatchTest, AsManyCancelledCallsAsABusyClientHasOverHoursAreForgiven) {
  for (int i = 0; i < 20 * 3600; ++i) {
    Begin(20);
    figures_.read_bytes += 4000;
    Check();
    End(20, true);
  }
  EXPECT_EQ(closed_, std::nullopt);
}

TEST_F(ConnectionWatchTest, AStreamOfLargeMessagesGoesOn) {
  Begin();
  for (int i = 0; i < 10000; ++i) {
    figures_.read_bytes += 16 * kMiB;
    Check();
    Message(16 * kMiB);
  }
  EXPECT_EQ(closed_, std::nullopt);
}

TEST_F(ConnectionWatchTest, ASlowMessageWithinTheTimeoutGoesOn) {
  Begin();
  for (int i = 0; i < 290; ++i) {
    figures_.read_bytes += 16 * kMiB / 290;
    Check(absl::Seconds(1));
  }
  Message(16 * kMiB);
  Check();
  EXPECT_EQ(closed_, std::nullopt);
}

TEST_F(ConnectionWatchTest, AnIdleStreamWithPingsGoesOnForDays) {
  Begin();
  for (int i = 0; i < 100000; ++i) {
    figures_.read_bytes += 17;
    Check(absl::Seconds(10));
  }
  EXPECT_EQ(closed_, std::nullopt);
}

TEST_F(ConnectionWatchTest, PartsOfMessagesStayHeldWhileOtherCallsEnd) {
  Begin();
  figures_.read_bytes = 10 * kMiB;
  for (int i = 0; i < 100; ++i) {
    Begin();
    figures_.read_bytes += 100;
    End();
    Check();
  }
  EXPECT_GT(watch_.held_bytes(), 6 * kMiB);
  EXPECT_EQ(closed_, std::nullopt);
}

}  // namespace
}  // namespace perceptrond
