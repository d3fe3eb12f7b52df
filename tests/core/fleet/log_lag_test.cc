// By how much a reader of a log is late, on its own clock.
#include "core/fleet/log_lag.h"

#include <gtest/gtest.h>

namespace perceptrond {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const LogLag::Clock::time_point kStart{seconds(1000)};

TEST(LogLagTest, AReaderThatHasAppliedAllIsNotLate) {
  LogLag lag;
  EXPECT_EQ(lag.At(kStart), seconds(0));
  lag.OnEnd(7, kStart);
  lag.OnApplied(7);
  EXPECT_EQ(lag.At(kStart + seconds(9)), seconds(0));
}

TEST(LogLagTest, TheLagIsTheTimeSinceTheOldestEntryThatIsNotAppliedWasThere) {
  LogLag lag;
  lag.OnEnd(10, kStart);
  lag.OnEnd(20, kStart + seconds(1));
  lag.OnEnd(30, kStart + seconds(2));
  EXPECT_EQ(lag.At(kStart + seconds(5)), seconds(5));
  lag.OnApplied(9);
  EXPECT_EQ(lag.At(kStart + seconds(5)), seconds(5));
  lag.OnApplied(10);
  EXPECT_EQ(lag.At(kStart + seconds(5)), seconds(4));
  lag.OnApplied(25);
  EXPECT_EQ(lag.At(kStart + seconds(5)), seconds(3));
  // An end that was known before says nothing new.
  lag.OnEnd(30, kStart + seconds(4));
  EXPECT_EQ(lag.At(kStart + seconds(5)), seconds(3));
  lag.OnLevel();
  EXPECT_EQ(lag.At(kStart + seconds(5)), seconds(0));
}

// A log that is written all the time, of which a reader never has all.
TEST(LogLagTest, AReaderThatStaysAsFarBehindHasAsMuchLagWhateverHasPassed) {
  LogLag lag;
  constexpr int kLate = 500;
  for (int i = 1; i < 5000; ++i) {
    const auto now = kStart + milliseconds(i);
    lag.OnEnd(static_cast<uint64_t>(i), now);
    if (i <= kLate) continue;
    lag.OnApplied(static_cast<uint64_t>(i - kLate));
    // Ends that are forgotten take something off it, not more than lay between two of them.
    EXPECT_LE(lag.At(now), milliseconds(kLate));
    EXPECT_GT(lag.At(now), milliseconds(kLate - 50)) << i;
  }
}

TEST(LogLagTest, ATimeBeforeTheEndWasKnownIsNoNegativeLag) {
  LogLag lag;
  lag.OnEnd(1, kStart);
  EXPECT_EQ(lag.At(kStart - seconds(1)), seconds(0));
}

}  // namespace
}  // namespace perceptrond
