#include "server/rpc/slow_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"

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

}  // namespace
}  // namespace perceptrond
