#include "server/rpc/call_timing.h"

#include <gtest/gtest.h>

#include <numeric>

namespace perceptrond {
namespace {

using std::chrono::milliseconds;

const SteadyClock::time_point kStart = SteadyClock::now();

// Milliseconds after the start.
SteadyClock::time_point At(int time) { return kStart + milliseconds(time); }

float Sum(const PartTimes& parts) { return std::accumulate(parts.begin(), parts.end(), 0.0F); }

TEST(CallTimingTest, EachMomentCountsForOnePart) {
  CallTiming timing;
  timing.Start(Part::kReceive, At(0));
  timing.SwitchAt(Part::kQueue, At(1));
  timing.SwitchAt(Part::kParse, At(3));
  timing.SwitchAt(Part::kWork, At(6));
  timing.SwitchAt(Part::kCommit, At(10));
  timing.SwitchAt(Part::kWrite, At(15));
  PartTimes parts = timing.PartsUntil(At(21));
  EXPECT_FLOAT_EQ(TimeOf(parts, Part::kReceive), 1);
  EXPECT_FLOAT_EQ(TimeOf(parts, Part::kQueue), 2);
  EXPECT_FLOAT_EQ(TimeOf(parts, Part::kParse), 3);
  EXPECT_FLOAT_EQ(TimeOf(parts, Part::kWork), 4);
  EXPECT_FLOAT_EQ(TimeOf(parts, Part::kCommit), 5);
  EXPECT_FLOAT_EQ(TimeOf(parts, Part::kWrite), 6);
  EXPECT_FLOAT_EQ(Sum(parts), 21);
}

TEST(CallTimingTest, WaitsDuringWorkCountForTheirOwnParts) {
  CallTiming timing;
  timing.Start(Part::kWork, At(0));
  timing.SwitchAt(Part::kWork, At(0));
  for (size_t wait = 0; wait < kWaits; ++wait) wait_times[wait] += milliseconds(wait + 1);
  timing.SwitchAt(Part::kWrite, At(20));
  PartTimes parts = timing.PartsUntil(At(20));
  EXPECT_FLOAT_EQ(TimeOf(parts, Part::kLock), 1);
  EXPECT_FLOAT_EQ(TimeOf(parts, Part::kLoad), 2);
  EXPECT_FLOAT_EQ(TimeOf(parts, Part::kCommit), 3);
  EXPECT_FLOAT_EQ(TimeOf(parts, Part::kWork), 14);
}

}  // namespace
}  // namespace perceptrond
