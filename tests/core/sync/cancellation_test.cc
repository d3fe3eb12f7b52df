#include "core/sync/cancellation.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/stop_after.h"

namespace perceptrond {
namespace {

using Clock = CancellationToken::Clock;

TEST(Cancellation, WorkGoesOnWithoutAToken) {
  EXPECT_TRUE(KeepGoing(size_t{1} << 40));
  EXPECT_TRUE(KeepGoing());
  EXPECT_FALSE(Stopped());
}

TEST(Cancellation, ATokenIsAskedOnceForEachInterval) {
  const testing::CountChecks token;
  const CancellationScope scope(&token, 100);
  EXPECT_EQ(token.asked(), 1);
  for (int i = 0; i < 99; ++i) EXPECT_TRUE(KeepGoing(1));
  EXPECT_EQ(token.asked(), 1);
  EXPECT_TRUE(KeepGoing(1));
  EXPECT_EQ(token.asked(), 2);
  EXPECT_TRUE(KeepGoing(5000));
  EXPECT_EQ(token.asked(), 3);
}

TEST(Cancellation, AnotherThreadStopsTheWorkAndItStaysStopped) {
  CancellationToken token;
  const CancellationScope scope(&token, 1);
  EXPECT_TRUE(KeepGoing(1));
  std::thread([&] { token.Cancel(); }).join();
  EXPECT_FALSE(KeepGoing(1));
  EXPECT_TRUE(Stopped());
  EXPECT_EQ(StoppedBy(), StopReason::kCancelled);
  EXPECT_FALSE(KeepGoing(0));
}

TEST(Cancellation, ADeadlineStopsTheWork) {
  const CancellationToken token(nullptr, Clock::now());
  const CancellationScope scope(&token);
  EXPECT_EQ(StoppedBy(), StopReason::kDeadline);
  EXPECT_FALSE(KeepGoing(1));
}

TEST(Cancellation, AParentStopsItsChildAndTheFirstReasonStays) {
  CancellationToken all;
  const CancellationToken one(&all, Clock::time_point::max());
  EXPECT_EQ(one.reason(), StopReason::kNone);
  all.Cancel(StopReason::kDraining);
  all.Cancel(StopReason::kCancelled);
  EXPECT_EQ(one.reason(), StopReason::kDraining);
}

TEST(Cancellation, AScopeHasATokenOfItsOwnOrNone) {
  CancellationToken outer;
  const CancellationToken inner;
  const CancellationScope scope(&outer);
  {
    const CancellationScope nested(&inner);
    EXPECT_EQ(CurrentToken(), &inner);
    outer.Cancel();
    EXPECT_TRUE(KeepGoing());
  }
  EXPECT_EQ(CurrentToken(), &outer);
  EXPECT_FALSE(Stopped());
  EXPECT_FALSE(KeepGoing());
  EXPECT_TRUE(Stopped());
  {
    // This must not be stopped.
    const CancellationScope whole(nullptr);
    EXPECT_FALSE(Stopped());
    EXPECT_TRUE(KeepGoing(size_t{1} << 40));
  }
  EXPECT_FALSE(KeepGoing());
}

}  // namespace
}  // namespace perceptrond
