// Living servers and writers, known from heartbeats.
#include "core/fleet/members.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace perceptrond::members_test {
namespace {

using Clock = Members::Clock;
using std::chrono::seconds;

constexpr uint32_t kPartitions = 256;

fleet_proto::Heartbeat From(const std::string& id) {
  fleet_proto::Heartbeat heartbeat;
  heartbeat.set_server_id(id);
  heartbeat.set_address(id + ":7600");
  return heartbeat;
}

const Clock::time_point kStart{seconds(1000)};

// Every server's view of the others.
std::vector<std::unique_ptr<Members>> MakeServers(int servers) {
  std::vector<std::unique_ptr<Members>> all;
  for (int i = 0; i < servers; ++i) {
    all.push_back(std::make_unique<Members>(absl::StrCat("s", i), kPartitions, seconds(2)));
    for (int j = 0; j < servers; ++j) all.back()->OnHeartbeat(From(absl::StrCat("s", j)), kStart);
  }
  return all;
}

TEST(MembersTest, ServersAgreeOnTheOrderOfAPartition) {
  constexpr int kServers = 5;
  const auto servers = MakeServers(kServers);
  for (uint32_t partition = 0; partition < 64; ++partition) {
    std::vector<int> ranks(kServers);
    for (const auto& server : servers) ++ranks[server->RankOf(partition, kStart)];
    EXPECT_EQ(ranks, std::vector<int>(kServers, 1)) << partition;
  }
}

TEST(MembersTest, AServerThatDiesLeavesTheFirstOfOtherPartitionsAsTheyWere) {
  const auto servers = MakeServers(4);
  const Clock::time_point later = kStart + seconds(3);
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 3; ++j) servers[i]->OnHeartbeat(From(absl::StrCat("s", j)), later);
  }
  int moved = 0;
  for (uint32_t partition = 0; partition < 256; ++partition) {
    for (size_t i = 0; i < 3; ++i) {
      if (servers[i]->RankOf(partition, kStart + seconds(1)) == 0) {
        EXPECT_EQ(servers[i]->RankOf(partition, later), 0U);
      } else if (servers[i]->RankOf(partition, later) == 0) {
        EXPECT_EQ(servers[3]->RankOf(partition, kStart), 0U);
        ++moved;
      }
    }
  }
  // About its quarter.
  EXPECT_GT(moved, 32);
  EXPECT_LT(moved, 96);
  EXPECT_EQ(servers[0]->alive(later), 3U);
}

TEST(MembersTest, AServerThatLeavesOrIsNewDoesNotCount) {
  Members members("a", kPartitions, seconds(2));
  fleet_proto::Heartbeat other = From("b");
  uint32_t partition = 0;
  members.OnHeartbeat(other, kStart);
  while (members.RankOf(partition, kStart) == 0) ++partition;
  EXPECT_EQ(members.RankOf(partition, kStart, kStart - seconds(1)), 0U);
  EXPECT_EQ(members.RankOf(partition, kStart, kStart), 1U);
  other.set_leaving(true);
  members.OnHeartbeat(other, kStart);
  EXPECT_EQ(members.RankOf(partition, kStart), 0U);
}

TEST(MembersTest, ASilentServerMayComeBackForTenTimeoutsUnlessItLeft) {
  Members members("a", kPartitions, seconds(2));
  fleet_proto::Heartbeat other = From("b");
  members.OnHeartbeat(other, kStart);
  const auto find = [&](int after) {
    return members.FindAddress([](const std::string& address) { return address == "b:7600"; },
                               kStart + seconds(after));
  };
  EXPECT_EQ(find(20), "b:7600");
  EXPECT_EQ(find(21), "");
  other.set_leaving(true);
  members.OnHeartbeat(other, kStart);
  EXPECT_EQ(find(2), "b:7600");
  EXPECT_EQ(find(3), "");
}

TEST(MembersTest, TheWritersVersionOfIcuIsWhatItSaysItself) {
  Members members("a", kPartitions, seconds(2));
  fleet_proto::Heartbeat writer = From("b");
  writer.add_written()->set_partition(3);
  writer.mutable_written(0)->set_epoch(9);
  writer.set_icu_version("72.1");
  members.OnHeartbeat(writer, kStart);
  EXPECT_EQ(members.WriterOf(3).icu_version, "72.1");
  members.OnTakeOver(3, 10, "c:7600", kStart);
  EXPECT_EQ(members.WriterOf(3).icu_version, "");
}

TEST(MembersTest, AServerThatStopsWritingWasItsPartitionsWriterUntilThen) {
  Members members("s0", kPartitions, seconds(2));
  members.OnTakeOver(7, 5, "s0:7600", kStart);
  members.OnWritten(7, 5, kStart + seconds(100));
  EXPECT_EQ(members.WriterOf(7).seen, kStart + seconds(100));
  // Another one has taken over.
  members.OnTakeOver(7, 9, "s1:7600", kStart + seconds(101));
  members.OnWritten(7, 5, kStart + seconds(200));
  EXPECT_EQ(members.WriterOf(7).seen, kStart + seconds(101));
}

TEST(MembersTest, TheWriterIsOfTheHighestEpochAndSeenWhenItSaysSo) {
  Members members("a", kPartitions, seconds(2));
  EXPECT_EQ(members.WriterOf(3).epoch, 0);
  members.OnTakeOver(3, 10, "b:7600", kStart);
  fleet_proto::Heartbeat old = From("c");
  old.add_written()->set_partition(3);
  old.mutable_written(0)->set_epoch(9);
  members.OnHeartbeat(old, kStart + seconds(1));
  EXPECT_EQ(members.WriterOf(3).address, "b:7600");
  EXPECT_EQ(members.WriterOf(3).seen, kStart);
  fleet_proto::Heartbeat current = From("b");
  current.add_written()->set_partition(3);
  current.mutable_written(0)->set_epoch(10);
  members.OnHeartbeat(current, kStart + seconds(2));
  EXPECT_EQ(members.WriterOf(3).seen, kStart + seconds(2));
  current.mutable_written(0)->set_released(true);
  members.OnHeartbeat(current, kStart + seconds(3));
  EXPECT_TRUE(members.WriterOf(3).released);
  members.OnTakeOver(3, 11, "c:7600", kStart + seconds(3));
  EXPECT_FALSE(members.WriterOf(3).released);
}

TEST(MembersTest, PartitionsThatTheFleetDoesNotHaveTakeNoMemory) {
  Members members("a", kPartitions, seconds(2));
  fleet_proto::Heartbeat other = From("b");
  for (const uint32_t partition : {kPartitions - 1, kPartitions, UINT32_MAX}) {
    fleet_proto::WrittenPartition& written = *other.add_written();
    written.set_partition(partition);
    written.set_epoch(9);
  }
  members.OnHeartbeat(other, kStart);
  EXPECT_EQ(members.WriterOf(kPartitions - 1).epoch, 9);
  EXPECT_EQ(members.WriterOf(kPartitions).epoch, 0);
  EXPECT_EQ(members.WriterOf(UINT32_MAX).epoch, 0);
}

class NamesakesTest : public ::testing::Test {
 protected:
  static constexpr char kAddress[] = "10.0.0.5:7602";

  static Members Of(const std::string& id, int64_t started) {
    return {id, kPartitions, seconds(2), kAddress, started};
  }
  static fleet_proto::Heartbeat At(const std::string& id, int64_t started) {
    fleet_proto::Heartbeat heartbeat = From(id);
    heartbeat.set_address(kAddress);
    heartbeat.set_started(started);
    return heartbeat;
  }
  static void Hear(Members& members, const fleet_proto::Heartbeat& heartbeat, int from, int to) {
    for (int second = from; second <= to; ++second)
      members.OnHeartbeat(heartbeat, kStart + seconds(second));
  }
};

TEST_F(NamesakesTest, OfTwoTheOneThatStartedLaterYieldsAndBothKnow) {
  // The ids decide where the times do not.
  for (const auto& [first, later] : {std::pair(10, 11), std::pair(10, 10)}) {
    Members a = Of("a", first);
    Members b = Of("b", later);
    Hear(a, At("b", later), 0, 2);
    Hear(b, At("a", first), 0, 2);
    const auto now = kStart + seconds(2);
    ASSERT_TRUE(a.FindNamesake(now).has_value());
    EXPECT_FALSE(a.MustYield(now));
    EXPECT_TRUE(b.MustYield(now));
    EXPECT_FALSE(b.MustYield(now + seconds(3))) << "it is not heard of any more";
  }
}

TEST_F(NamesakesTest, OneThatYieldsIsReportedNevertheless) {
  Members first = Of("a", 10);
  fleet_proto::Heartbeat yielding = At("b", 11);
  yielding.set_leaving(true);
  Hear(first, yielding, 0, 2);
  EXPECT_TRUE(first.FindNamesake(kStart + seconds(2)).has_value());
}

TEST_F(NamesakesTest, AServerThatRanAtTheAddressBeforeIsNone) {
  Members restarted = Of("b", 11);
  // It was killed, and its last heartbeats come late.
  Hear(restarted, At("a", 10), 0, 0);
  EXPECT_FALSE(restarted.FindNamesake(kStart).has_value());
  EXPECT_FALSE(restarted.FindNamesake(kStart + seconds(2)).has_value());
  fleet_proto::Heartbeat leaving = At("before", 9);
  leaving.set_leaving(true);
  Hear(restarted, leaving, 0, 9);
  EXPECT_FALSE(restarted.FindNamesake(kStart + seconds(9)).has_value());
  // At another address.
  Hear(restarted, From("c"), 0, 9);
  EXPECT_FALSE(restarted.FindNamesake(kStart + seconds(9)).has_value());
}

TEST(MembersTest, AServerIsUpToDateWhileItLivesAndStaysAndIsNotLate) {
  Members members("s0", kPartitions, seconds(2));
  EXPECT_FALSE(members.HasOtherUpToDate(kStart));
  fleet_proto::Heartbeat other = From("s1");
  members.OnHeartbeat(other, kStart);
  EXPECT_TRUE(members.HasOtherUpToDate(kStart));
  EXPECT_FALSE(members.HasOtherUpToDate(kStart + seconds(3)));
  other.set_late(true);
  members.OnHeartbeat(other, kStart);
  EXPECT_FALSE(members.HasOtherUpToDate(kStart));
  other.set_late(false);
  other.set_leaving(true);
  members.OnHeartbeat(other, kStart);
  EXPECT_FALSE(members.HasOtherUpToDate(kStart));
}

}  // namespace
}  // namespace perceptrond::members_test
