#include "server/config/logging.h"

#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <grpc/support/log.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/time.h"

namespace perceptrond {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

const absl::Time kTime = absl::FromUnixMillis(1795240800123);  // 2026-11-21T06:00:00.123Z

std::string Text(std::string_view message, std::vector<LogField> fields = {}) {
  return FormatLogText(kTime, LogLevel::kInfo, message, fields);
}

std::string Json(std::string_view message, std::vector<LogField> fields = {}) {
  return FormatLogJson(kTime, LogLevel::kInfo, message, fields);
}

// Parses it with a parser that is not ours.
google::protobuf::Struct Parsed(const std::string& json) {
  google::protobuf::Struct object;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &object);
  EXPECT_TRUE(status.ok()) << status.ToString() << ": " << json;
  return object;
}

std::string Captured(const std::function<void()>& what) {
  ::testing::internal::CaptureStderr();
  what();
  return ::testing::internal::GetCapturedStderr();
}

TEST(TextLine, HoldsTimeLevelMessageAndFields) {
  EXPECT_EQ(Text("model loaded", {{"model", "spam"}, {"revision", 12}}),
            "2026-11-21T06:00:00.123Z info model loaded model=spam revision=12");
  EXPECT_THAT(Text("m", {{"a", true},
                         {"b", -3},
                         {"c", std::numeric_limits<uint64_t>::max()},
                         {"d", 0.25},
                         {"f", absl::string_view("y")}}),
              EndsWith(" m a=true b=-3 c=18446744073709551615 d=0.25 f=y"));
}

TEST(TextLine, QuotesValuesThatCouldBeMisread) {
  EXPECT_THAT(Text("m", {{"v", ""}}), EndsWith("v=\"\""));
  EXPECT_THAT(Text("m", {{"v", "two words"}}), EndsWith("v=\"two words\""));
  EXPECT_THAT(Text("m", {{"v", "a=b"}}), EndsWith("v=\"a=b\""));
  EXPECT_THAT(Text("m", {{"v", "say \"hi\" \\"}}), EndsWith("v=\"say \\\"hi\\\" \\\\\""));
}

TEST(TextLine, EscapesControlCharactersSoThatNoValueStartsALine) {
  EXPECT_THAT(Text("one\ntwo\x1b[31m", {{"v", "a\r\n\tb\x7f"}}),
              EndsWith(" one\\ntwo\\x1b[31m v=\"a\\r\\n\\tb\\x7f\""));
}

TEST(JsonLine, HoldsTimeLevelMessageAndFields) {
  EXPECT_EQ(Json("model loaded", {{"model", "spam"}, {"revision", 12}, {"ok", true}}),
            "{\"time\":\"2026-11-21T06:00:00.123Z\",\"level\":\"info\",\"message\":\"model "
            "loaded\",\"model\":\"spam\",\"revision\":12,\"ok\":true}");
}

TEST(JsonLine, IsValidWhateverTheCharacter) {
  std::string all;
  for (int c = 0; c < 128; ++c) all.push_back(static_cast<char>(c));
  all += "\u00e9\u20ac\U0001f600";
  const std::string line = Json(all, {{"value", all}});
  EXPECT_EQ(std::count_if(line.begin(), line.end(),
                          [](unsigned char c) { return c < 0x20 || c == 0x7f; }),
            0);
  const auto object = Parsed(line);
  EXPECT_EQ(object.fields().at("message").string_value(), all);
  EXPECT_EQ(object.fields().at("value").string_value(), all);
}

TEST(JsonLine, ReplacesWhatIsNotUtf8) {
  // A stray byte, a cut sequence, an overlong form, a surrogate, and beyond U+10FFFF.
  for (const std::string bad : {"\xff", "\xe2\x82", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80",
                                "\xf4\x90\x80\x80", "\xe0\x80\x80", "\xf0\x80\x80\x80"}) {
    const std::string seen =
        Parsed(Json("m", {{"v", "a" + bad + "b"}})).fields().at("v").string_value();
    EXPECT_THAT(seen, ::testing::StartsWith("a\ufffd"));
    EXPECT_THAT(seen, EndsWith("b"));
  }
}

TEST(JsonLine, WritesNumbersThatAreNoneAsStrings) {
  const auto object = Parsed(Json("m", {{"nan", std::nan("")},
                                        {"inf", std::numeric_limits<double>::infinity()},
                                        {"tenth", 0.1},
                                        {"huge", 1e300}}));
  EXPECT_EQ(object.fields().at("nan").string_value(), "nan");
  EXPECT_EQ(object.fields().at("inf").string_value(), "inf");
  EXPECT_EQ(object.fields().at("tenth").number_value(), 0.1);
  EXPECT_EQ(object.fields().at("huge").number_value(), 1e300);
}

TEST(Log, WritesWholeLinesToStandardErrorFromTheLevelOn) {
  InitLogging(LogLevel::kWarning, LogFormat::kText);
  EXPECT_FALSE(LogEnabled(LogLevel::kInfo));
  EXPECT_TRUE(LogEnabled(LogLevel::kError));
  const std::string out = Captured([] {
    Log(LogLevel::kInfo, "not this");
    Log(LogLevel::kWarning, "100% {} of it", {{"model", "spam"}});
    Log(LogLevel::kError, "and this");
  });
  const std::vector<std::string> lines = absl::StrSplit(out, '\n');
  ASSERT_EQ(lines.size(), 3u) << out;
  EXPECT_THAT(lines[0], EndsWith("Z warning 100% {} of it model=spam"));
  EXPECT_THAT(lines[1], EndsWith("Z error and this"));
}

TEST(Log, LinesOfManyThreadsDoNotMix) {
  InitLogging(LogLevel::kInfo, LogFormat::kText);
  const std::string out = Captured([] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([] {
        for (int i = 0; i < 200; ++i) Log(LogLevel::kInfo, "line", {{"v", std::string(100, 'x')}});
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  const std::vector<std::string> lines = absl::StrSplit(out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 800u);
  for (const std::string& line : lines) {
    EXPECT_THAT(line, EndsWith("Z info line v=" + std::string(100, 'x')));
  }
}

TEST(Log, CarriesGrpcsOwnMessages) {
  InitLogging(LogLevel::kInfo, LogFormat::kText);
  const std::string out = Captured([] {
    gpr_log(GPR_ERROR, "port %d is taken", 7600);
    gpr_log(GPR_INFO, "chatter");
    // What one client causes, as often as it likes.
    gpr_log("lib/surface/call.cc", 1, GPR_LOG_SEVERITY_ERROR, "chatter of a call");
  });
  EXPECT_THAT(out, HasSubstr(" error port 7600 is taken component=grpc file="));
  EXPECT_THAT(out, ::testing::Not(HasSubstr("chatter")));
}

}  // namespace
}  // namespace perceptrond
