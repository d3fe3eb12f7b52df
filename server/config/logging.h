// Structured log lines on standard error, one event a line. What writes them is hidden in
// logging.cc.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace perceptrond {

enum class LogLevel : uint8_t { kTrace, kDebug, kInfo, kWarning, kError };
enum class LogFormat : uint8_t { kText, kJson };

// "trace", "debug", "info", "warning", "error".
std::string_view LogLevelName(LogLevel level);

// A key and its value, as in {"model", name} or {"revision", 12}. Refers to the strings it is made
// from: for use within one call of Log only.
class LogField {
 public:
  LogField(std::string_view key, std::string_view value) : key_(key), value_(value) {}
#ifndef ABSL_USES_STD_STRING_VIEW
  LogField(std::string_view key, absl::string_view value)
      : key_(key), value_(std::string_view(value.data(), value.size())) {}
#endif
  LogField(std::string_view key, const char* value) : key_(key), value_(std::string_view(value)) {}
  LogField(std::string_view key, const std::string& value)
      : key_(key), value_(std::string_view(value)) {}
  LogField(std::string_view key, std::same_as<bool> auto value) : key_(key), value_(value) {}
  LogField(std::string_view key, std::signed_integral auto value)
      : key_(key), value_(int64_t{value}) {}
  LogField(std::string_view key,
           std::unsigned_integral auto value) requires(!std::same_as<decltype(value), bool>)
      : key_(key), value_(uint64_t{value}) {}
  LogField(std::string_view key, std::floating_point auto value)
      : key_(key), value_(static_cast<double>(value)) {}

  std::string_view key() const { return key_; }
  const std::variant<std::string_view, bool, int64_t, uint64_t, double>& value() const {
    return value_;
  }

 private:
  std::string_view key_;
  std::variant<std::string_view, bool, int64_t, uint64_t, double> value_;
};

using LogFields = std::initializer_list<LogField>;

// Says from which level on lines are written, and how. Default, also before the first call: info,
// text. Routes gRPC's and Protobuf's own messages here too: gRPC's errors as errors, its
// information as debug, its debug as trace; Protobuf's as debug.
void InitLogging(LogLevel level, LogFormat format);

// Whether Log would write at this level: one atomic read.
bool LogEnabled(LogLevel level);

// Writes one line, or nothing below the level set: then nothing is formatted either. Any thread may
// call it; lines do not mix. Text and JSON forms are those of FormatLogText and FormatLogJson.
void Log(LogLevel level, std::string_view message, LogFields fields = {});

// 2026-11-21T06:00:00.123Z info model loaded model=spam revision=12
// Control characters become \n, \r, \t or \xNN, so that no value can start a line of its own; a
// field's value that is empty or holds a space, '"', '=' or '\' stands in double quotes. Without
// the line's end.
std::string FormatLogText(absl::Time time, LogLevel level, std::string_view message,
                          std::span<const LogField> fields);

// {"time":"2026-11-21T06:00:00.123Z","level":"info","message":"model
// loaded","model":"spam","revision":12} One valid JSON object whatever the bytes: what is not UTF-8
// becomes U+FFFD, what is no finite number a string.
std::string FormatLogJson(absl::Time time, LogLevel level, std::string_view message,
                          std::span<const LogField> fields);

}  // namespace perceptrond
