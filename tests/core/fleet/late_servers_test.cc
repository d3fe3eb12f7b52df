// Servers whose copies are late, and the figures that say so.
#include "tests/core/fleet/fleet_fixture.h"

namespace perceptrond::fleet_test {
namespace {

class LateServersTest : public FleetTest {
 protected:
  // Three servers whose logs may be held, and a model that they learn.
  void SetUp() override {
    // The writer stays the writer.
    fleet_options_.settle_time = absl::Hours(1);
    ASSERT_NO_FATAL_FAILURE(Start(3));
    ASSERT_NO_FATAL_FAILURE(Create("models/m"));
    // All copies are in memory before anything is learned, and follow.
    ASSERT_TRUE(AllHave("models/m", Expected({})));
    ASSERT_NO_FATAL_FAILURE(LearnNext());
    PassUntil([&] { return AllHave("models/m", Expected({messages_[0]})); });
  }
  void LearnNext() { ASSERT_NO_FATAL_FAILURE(Learn("models/m", messages_[next_++])); }
  absl::Duration LagOf(const Server& server) {
    return server.store->fleet()->stats()[journal_.PartitionOf(IdOf("models/m"))].lag;
  }
  static bool ShouldPredict(const Server& server) {
    return server.store->fleet()->should_predict();
  }

  const std::vector<Message> messages_ = MakeTraffic(1, traffic_);
  size_t next_ = 0;
};

TEST_F(LateServersTest, AServerThatLacksUpdatesForLongShouldNotPredictUntilItHasThem) {
  Server& late = FollowerOf("models/m");
  late.journal->Hold();
  ASSERT_NO_FATAL_FAILURE(LearnNext());
  PassUntil([&] {
    return LagOf(late) > kMaxLag &&
           std::all_of(servers_.begin(), servers_.end(), [&](const Server& server) {
             return ShouldPredict(server) == (&server != &late);
           });
  });
  late.journal->Release();
  PassUntil([&] { return ShouldPredict(late) && LagOf(late) == absl::ZeroDuration(); });
}

TEST_F(LateServersTest, WhereAllAreLateAllShouldPredict) {
  for (Server& server : servers_) server.journal->Hold();
  ASSERT_NO_FATAL_FAILURE(LearnNext());
  PassUntil([&] {
    return std::all_of(servers_.begin(), servers_.end(), [&](const Server& server) {
      return LagOf(server) > kMaxLag && ShouldPredict(server);
    });
  });
  for (Server& server : servers_) server.journal->Release();
}

TEST_F(LateServersTest, AServerThatCannotReadTheLogDoesNotKnowHowLateItIs) {
  Server& away = FollowerOf("models/m");
  away.journal->BreakOff();
  ASSERT_NO_FATAL_FAILURE(LearnNext());
  const auto partition = journal_.PartitionOf(IdOf("models/m"));
  PassUntil([&] { return away.store->fleet()->stats()[partition].since_contact > 2 * kMaxLag; });
  EXPECT_EQ(LagOf(away), absl::ZeroDuration());
  EXPECT_TRUE(ShouldPredict(away));
}

TEST_F(LateServersTest, AWriterIsNotTakenForDeadByAServerThatCouldNotHearIt) {
  Server& away = FollowerOf("models/m");
  const auto partition = journal_.PartitionOf(IdOf("models/m"));
  const auto stats = [&] { return away.store->fleet()->stats()[partition]; };
  const int64_t epoch = stats().epoch;
  away.journal->Deafen(true);
  away.journal->BreakOff();
  PassUntil([&] { return stats().since_contact > 2 * fleet_options_.writer_timeout; });
  // It reads the log before it hears of the writer.
  away.journal->Mend();
  PassUntil([&] { return stats().since_contact < fleet_options_.writer_timeout; });
  for (int i = 0; i < 10; ++i) Pass();
  away.journal->Deafen(false);
  for (int i = 0; i < 10; ++i) Pass();
  EXPECT_EQ(stats().epoch, epoch);
}

}  // namespace
}  // namespace perceptrond::fleet_test
