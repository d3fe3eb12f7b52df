// Which connections are closed, and that no client that keeps to the protocol has one of them.
#include "server/rpc/connection_watch.h"

#include <gtest/gtest.h>

#include <optional>

namespace perceptrond {
namespace {

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
