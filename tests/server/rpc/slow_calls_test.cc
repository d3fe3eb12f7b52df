// The log of slow calls: its lines, the parts that a call's time is counted for, and the trace that a line names.
#include "server/rpc/slow_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "server/rpc/call_timing.h"
#include "server/rpc/trace_context.h"

namespace perceptrond {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

SlowCall Example() {
  SlowCall call;
  call.method = "/perceptron.v1.PredictionService/Predict";
  call.model = "models/spam";
  call.peer = "ipv4:127.0.0.1:40622";
  call.bytes = 178;
  call.rows = 40;
  call.total = 1000.0625;
  TimeOf(call.parts, Part::kQueue) = 0.0625;
  TimeOf(call.parts, Part::kWork) = 1000;
  return call;
}

std::string Written(SlowCallLog& log, const SlowCall& call) {
  ::testing::internal::CaptureStderr();
  log.Write(call);
  return ::testing::internal::GetCapturedStderr();
}

TEST(SlowCallLogTest, ALineHasTheCallItsPartsAndItsErrorAndTraceIfThereAreAny) {
  SlowCallLog log;
  SlowCall call = Example();
  const std::string head =
      " warning slow call method=/perceptron.v1.PredictionService/Predict model=models/spam "
      "peer=ipv4:127.0.0.1:40622 ";
  EXPECT_THAT(Written(log, call),
              HasSubstr(head + "bytes=178 rows=40 status=OK total_ms=1000.063 receive_ms=0 "
                               "queue_ms=0.063 parse_ms=0 load_ms=0 lock_ms=0 work_ms=1000 "
                               "commit_ms=0 write_ms=0\n"));
  call.trace = {"4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"};
  call.principal = "reader";
  call.message = 7;
  call.code = 1;
  EXPECT_THAT(
      Written(log, call),
      HasSubstr(head + "principal=reader trace_id=4bf92f3577b34da6a3ce929d0e0e4736 "
                       "span_id=00f067aa0ba902b7 message=7 bytes=178 rows=40 status=CANCELLED "));
}

TEST(SlowCallLogTest, TextOfTheClientIsEscapedAndCut) {
  SlowCallLog log;
  SlowCall call = Example();
  call.method = "/a\nb\xe2\x80\xae";
  call.model = std::string(100'000, 'x');
  const std::string line = Written(log, call);
  EXPECT_THAT(std::vector<std::string>(absl::StrSplit(line, '\n')), SizeIs(2));
  EXPECT_THAT(line, Not(HasSubstr("\xe2")));
  EXPECT_LT(line.size(), 1000u);
}

TEST(SlowCallLogTest, OnlyCallsThatTakeLongerThanTheThresholdAreSlow) {
  SlowCallLog log;
  EXPECT_FALSE(log.enabled());
  EXPECT_FALSE(log.IsSlow(std::chrono::hours(1)));
  log.SetThreshold(absl::Milliseconds(5));
  EXPECT_TRUE(log.enabled());
  EXPECT_FALSE(log.IsSlow(std::chrono::milliseconds(5)));
  EXPECT_TRUE(log.IsSlow(std::chrono::microseconds(5001)));
  log.SetThreshold(absl::ZeroDuration());
  EXPECT_FALSE(log.IsSlow(std::chrono::hours(1)));
}

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

const std::string kTraceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const std::string kSpanId = "00f067aa0ba902b7";
const std::string kValid = "00-" + kTraceId + "-" + kSpanId + "-01";

TEST(TraceContextTest, AValidValueNamesTraceAndSpan) {
  const auto trace = ParseTraceparent(kValid);
  ASSERT_TRUE(trace.has_value());
  EXPECT_EQ(trace->trace_id, kTraceId);
  EXPECT_EQ(trace->span_id, kSpanId);
  EXPECT_TRUE(ParseTraceparent("00-" + kTraceId + "-" + kSpanId + "-00").has_value());
}

TEST(TraceContextTest, ALaterVersionMayHaveMoreFields) {
  for (const char* more : {"", "-", "-what-the-future-brings"})
    EXPECT_TRUE(ParseTraceparent("01-" + kTraceId + "-" + kSpanId + "-01" + more)) << more;
  EXPECT_FALSE(ParseTraceparent("01-" + kTraceId + "-" + kSpanId + "-01.more"));
  EXPECT_FALSE(ParseTraceparent(kValid + "-more"));
}

TEST(TraceContextTest, AnInvalidValueIsNone) {
  const std::string no_trace(32, '0');
  const std::string no_span(16, '0');
  for (const std::string& value : {
           std::string(),
           std::string("00"),
           kValid.substr(0, kValid.size() - 1),
           kValid + "1",
           "ff-" + kTraceId + "-" + kSpanId + "-01",
           "0x-" + kTraceId + "-" + kSpanId + "-01",
           "00-" + no_trace + "-" + kSpanId + "-01",
           "00-" + kTraceId + "-" + no_span + "-01",
           "00-4BF92F3577B34DA6A3CE929D0E0E4736-" + kSpanId + "-01",
           "00-" + kTraceId + "-" + kSpanId + "-0g",
           "00_" + kTraceId + "-" + kSpanId + "-01",
           "00-" + kTraceId + "_" + kSpanId + "-01",
           "00-" + kTraceId + "-" + kSpanId + "_01",
           "00-" + kTraceId.substr(1) + "--" + kSpanId + "-01",
           kValid + "," + kValid,
           std::string(kValid).replace(5, 1, 1, '\0'),
       })
    EXPECT_FALSE(ParseTraceparent(value).has_value()) << value;
}

}  // namespace
}  // namespace perceptrond
