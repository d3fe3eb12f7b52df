// A stream that several servers of a fleet create at once.
#include <barrier>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/journal/jetstream/stream.h"
#include "gtest/gtest.h"
#include "tests/support/fleets.h"
#include "tests/support/status.h"

namespace perceptrond::jetstream {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);

TEST(StreamCreationTest, EveryServerThatCreatesItHasItOrMayTryAgain) {
  constexpr int kServers = 6;
  constexpr int kRounds = 3;
  testing::NatsCluster& cluster = testing::SharedNats(3);
  // Until the cluster can have streams.
  const std::string fleet = testing::NewFleet();
  ASSERT_NE(testing::OpenFleet(cluster, fleet), nullptr);
  std::vector<std::shared_ptr<Connection>> connections;
  for (int i = 0; i < kServers; ++i) {
    ConnectionOptions options;
    options.servers = {cluster.url(i % cluster.size())};
    const auto connection = Connection::Open(options);
    ASSERT_OK(connection.status());
    connections.push_back(*connection);
  }
  for (int round = 0; round < kRounds; ++round) {
    const StreamOptions options{absl::StrCat(fleet, "-c", round), absl::StrCat(fleet, ".c", round),
                                cluster.size(), false};
    std::vector<absl::Status> statuses(kServers);
    std::barrier start(kServers);
    std::vector<std::thread> threads;
    for (int i = 0; i < kServers; ++i) {
      threads.emplace_back([&, i] {
        start.arrive_and_wait();
        statuses[i] = Stream::Open(connections[i], options).status();
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (int i = 0; i < kServers; ++i) {
      EXPECT_TRUE(statuses[i].ok() || absl::IsUnavailable(statuses[i])) << statuses[i];
      for (const absl::Time end = absl::Now() + kLong; !statuses[i].ok() && absl::Now() < end;)
        statuses[i] = Stream::Open(connections[i], options).status();
      EXPECT_OK(statuses[i]);
    }
  }
}

}  // namespace
}  // namespace perceptrond::jetstream
