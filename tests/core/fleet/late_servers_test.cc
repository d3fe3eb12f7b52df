// Servers whose copies are late, and the figures that say so.
#include "tests/core/fleet/fleet_fixture.h"
#include "tests/support/held_journal.h"

namespace perceptrond::fleet_test {
namespace {

using testing::HeldJournal;

class LateServersTest : public FleetTest {
 protected:
  // Three servers whose logs may be held, and a model that they learn.
  void SetUp() override {
    // The writer stays the writer.
    fleet_options_.settle_time = absl::Hours(1);
    servers_.reserve(8);
    for (int i = 0; i < 3; ++i) {
      auto journal = std::make_unique<HeldJournal>(journal_.OpenAgain());
      journals_.push_back(journal.get());
      Start(std::move(journal));
    }
    ASSERT_TRUE(Eventually([&] { return AllHaveReadTheLog() && WrittenOnce(); }));
    ASSERT_NO_FATAL_FAILURE(Create("models/m"));
    // All copies are in memory before anything is learned, and follow.
    ASSERT_TRUE(AllHave("models/m", Expected({})));
    ASSERT_NO_FATAL_FAILURE(LearnNext());
    ASSERT_TRUE(Eventually([&] { return AllHave("models/m", Expected({messages_[0]})); }));
  }
  HeldJournal& JournalOf(const Server& server) {
    return *journals_[static_cast<size_t>(&server - servers_.data())];
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
  std::vector<HeldJournal*> journals_;
};

TEST_F(LateServersTest, AServerThatLacksUpdatesForLongShouldNotPredictUntilItHasThem) {
  Server& late = FollowerOf("models/m");
  JournalOf(late).Hold();
  ASSERT_NO_FATAL_FAILURE(LearnNext());
  EXPECT_TRUE(Eventually([&] {
    return LagOf(late) > kMaxLag &&
           std::all_of(servers_.begin(), servers_.end(), [&](const Server& server) {
             return ShouldPredict(server) == (&server != &late);
           });
  }));
  JournalOf(late).Release();
  EXPECT_TRUE(
      Eventually([&] { return ShouldPredict(late) && LagOf(late) == absl::ZeroDuration(); }));
}

TEST_F(LateServersTest, WhereAllAreLateAllShouldPredict) {
  for (HeldJournal* const journal : journals_) journal->Hold();
  ASSERT_NO_FATAL_FAILURE(LearnNext());
  EXPECT_TRUE(Eventually([&] {
    return std::all_of(servers_.begin(), servers_.end(), [&](const Server& server) {
      return LagOf(server) > kMaxLag && ShouldPredict(server);
    });
  }));
  for (HeldJournal* const journal : journals_) journal->Release();
}

TEST_F(LateServersTest, AServerThatCannotReadTheLogDoesNotKnowHowLateItIs) {
  Server& away = FollowerOf("models/m");
  JournalOf(away).BreakOff();
  ASSERT_NO_FATAL_FAILURE(LearnNext());
  const auto partition = journal_.PartitionOf(IdOf("models/m"));
  EXPECT_TRUE(Eventually(
      [&] { return away.store->fleet()->stats()[partition].since_contact > 2 * kMaxLag; }));
  EXPECT_EQ(LagOf(away), absl::ZeroDuration());
  EXPECT_TRUE(ShouldPredict(away));
}

}  // namespace
}  // namespace perceptrond::fleet_test
