#include "server/rpc/trace_context.h"

#include <gtest/gtest.h>

#include <string>

namespace perceptrond {
namespace {

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
