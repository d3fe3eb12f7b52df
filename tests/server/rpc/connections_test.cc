// The limits of connections and of the calls on them.
#include "server/rpc/connections.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <memory>
#include <string>

#include "server/rpc/transport.h"
#include "tests/support/status.h"

namespace perceptrond {
namespace {

using ::testing::HasSubstr;

SocketAddress V4(const char* host, uint16_t port) {
  SocketAddress address;
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  v4->sin_family = AF_INET;
  v4->sin_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET, host, &v4->sin_addr), 1);
  address.size = sizeof *v4;
  return address;
}

SocketAddress V6(const char* host, uint16_t port) {
  SocketAddress address;
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET6, host, &v6->sin6_addr), 1);
  address.size = sizeof *v6;
  return address;
}

SocketAddress Unix() {
  SocketAddress address;
  address.storage.ss_family = AF_UNIX;
  address.size = sizeof(sa_family_t);
  return address;
}

constexpr Connections::Limits kLimits = {.connections = 5,
                                         .connections_per_address = 2,
                                         .streams_per_connection = 2,
                                         .streams = 3,
                                         .open_refused = 0};

TEST(ConnectionsTest, NoMoreConnectionsThanTheLimitAndOneThatEndsMakesRoom) {
  Connections connections(kLimits);
  std::vector<std::shared_ptr<Connection>> open;
  for (uint16_t i = 0; i < 5; ++i) open.push_back(connections.Add(V4("127.0.0.1", i)));
  EXPECT_EQ(connections.Add(V4("127.0.0.1", 9)), nullptr);
  EXPECT_NE(connections.AddOwn(V4("127.0.0.1", 10)), nullptr);
  EXPECT_EQ(connections.stats().open, 6);
  EXPECT_EQ(connections.stats().refused[0], 1);
  connections.Remove(*open[0]);
  connections.Remove(*open[1]);
  EXPECT_NE(connections.Add(V4("127.0.0.1", 9)), nullptr);
}

TEST(ConnectionsTest, AnAddressHasItsOwnLimitButNotThisMachine) {
  for (const auto& [first, second, third, other] :
       {std::tuple{V4("192.0.2.1", 1), V4("192.0.2.1", 2), V4("192.0.2.1", 3), V4("192.0.2.2", 1)},
        std::tuple{V4("192.0.2.1", 1), V6("::ffff:192.0.2.1", 2), V6("::ffff:192.0.2.1", 3),
                   V6("::ffff:192.0.2.2", 1)},
        std::tuple{V6("2001:db8::1", 1), V6("2001:db8::1", 2), V6("2001:db8::ffff:1", 3),
                   V6("2001:db8:0:1::1", 1)}}) {
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
  EXPECT_NE(connections.Add(V6("::1", 1)), nullptr);
  EXPECT_NE(connections.Add(V6("::1", 2)), nullptr);
  EXPECT_NE(connections.Add(V6("::1", 3)), nullptr);
  EXPECT_NE(connections.Add(Unix()), nullptr);
  EXPECT_NE(connections.Add(Unix()), nullptr);
  EXPECT_EQ(connections.stats().refused[1], 0);
}

TEST(ConnectionsTest, CallsAreCountedOnTheConnectionOfTheirPeer) {
  Connections connections(kLimits);
  const auto open = connections.Add(V6("2001:db8::1", 7));
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
  const auto one = connections.Add(V4("127.0.0.1", 1));
  const auto two = connections.Add(V4("127.0.0.1", 2));
  std::shared_ptr<Connection> found;
  const auto begin = [&](int port, const char* path) {
    const absl::Status status =
        connections.BeginCall(absl::StrCat("ipv4:127.0.0.1:", port), path, found);
    if (!status.ok()) connections.EndCall(found.get(), path, false);
    return status;
  };
  EXPECT_TRUE(begin(1, "/a.B/C").ok());
  EXPECT_TRUE(begin(1, "/a.B/C").ok());
  const absl::Status third = begin(1, "/a.B/C");
  EXPECT_EQ(third.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(perceptrond::testing::ReasonOf(third), "TOO_MANY_STREAMS");
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
  const auto one = connections.Add(V4("127.0.0.1", 1));
  std::shared_ptr<Connection> found;
  const auto begin = [&](const char* path) {
    const absl::Status status = connections.BeginCall("ipv4:127.0.0.1:1", path, found);
    if (!status.ok()) connections.EndCall(found.get(), path, false);
    return status;
  };
  const char* const watch = "/grpc.health.v1.Health/Watch";
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(begin(watch).ok()) << i;
  const absl::Status sixth = begin(watch);
  EXPECT_EQ(perceptrond::testing::ReasonOf(sixth), "TOO_MANY_STREAMS");
  EXPECT_THAT(std::string(sixth.message()), HasSubstr("raise --max-streams"));
  for (int i = 0; i < 15; ++i) EXPECT_TRUE(begin("/a.B/C").ok()) << i;
  connections.EndCall(found.get(), watch, false);
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
  const auto first = connections.Add(V4("192.0.2.1", 1));
  EXPECT_FALSE(first->refusal().has_value());
  const auto same = connections.Add(V4("192.0.2.1", 2));
  EXPECT_EQ(same->refusal(), RefusalReason::kConnectionsPerAddress);
  const auto second = connections.Add(V4("192.0.2.2", 1));
  EXPECT_FALSE(second->refusal().has_value());
  const auto third = connections.Add(V4("192.0.2.3", 1));
  EXPECT_EQ(third->refusal(), RefusalReason::kConnections);
  EXPECT_EQ(connections.Add(V4("192.0.2.4", 1)), nullptr);

  EXPECT_TRUE(call("192.0.2.1:1", "/a.B/C").ok());
  const absl::Status per_address = call("192.0.2.1:2", "/a.B/C");
  EXPECT_EQ(per_address.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(perceptrond::testing::ReasonOf(per_address), "TOO_MANY_CONNECTIONS");
  EXPECT_THAT(std::string(per_address.message()),
              HasSubstr("has reached --max-connections-per-address (1)"));
  EXPECT_THAT(std::string(call("192.0.2.3:1", "/a.B/C").message()),
              HasSubstr("has reached --max-connections (2)"));
  EXPECT_TRUE(call("192.0.2.3:1", "/grpc.health.v1.Health/Check").ok());
  EXPECT_FALSE(call("192.0.2.3:1", "/grpc.health.v1.Health/Watch").ok());

  // They take no room from others, nor do their ends make any.
  EXPECT_EQ(connections.stats().open, 2);
  connections.Remove(*same);
  EXPECT_EQ(connections.Add(V4("192.0.2.1", 3))->refusal(), RefusalReason::kConnections);
  connections.Remove(*first);
  EXPECT_FALSE(connections.Add(V4("192.0.2.1", 4))->refusal().has_value());
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

}  // namespace
}  // namespace perceptrond
