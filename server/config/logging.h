// Structured log lines on standard error, one event per line. The library that writes them is used
// in logging.cc alone.
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

// A key and its value: {"model", name} or {"revision", 12}. Holds views of its strings: for use
// within one call of Log only.
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

// Sets the least severe level that is written, and the format; info and text until the first call.
// Also redirects the messages of gRPC (its errors as errors, its info as debug, its debug as trace)
// and of Protobuf (as debug) to this log.
void InitLogging(LogLevel level, LogFormat format);

// Whether Log would write at this level: one atomic read.
bool LogEnabled(LogLevel level);

// Writes one line, formatted by FormatLogText or FormatLogJson. Below the level set it formats and
// writes nothing. Any thread may call it; lines do not mix.
void Log(LogLevel level, std::string_view message, LogFields fields = {});
// The same with a number of fields that is not known before.
void LogAll(LogLevel level, std::string_view message, std::span<const LogField> fields);

// 2026-11-21T06:00:00.123Z info model loaded model=spam revision=12
// Control characters are written as \n, \r, \t or \xNN, so that no value can start a new line. A
// field's value is quoted if it is empty or has a space, '"', '=' or '\'. Without a line end.
std::string FormatLogText(absl::Time time, LogLevel level, std::string_view message,
                          std::span<const LogField> fields);

// {"time":"2026-11-21T06:00:00.123Z","level":"info","message":"model loaded","model":"spam"} A
// valid JSON object for any bytes: bytes that are not UTF-8 become U+FFFD, and numbers that are not
// finite become strings.
std::string FormatLogJson(absl::Time time, LogLevel level, std::string_view message,
                          std::span<const LogField> fields);

}  // namespace perceptrond
