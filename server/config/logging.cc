#include "server/config/logging.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <atomic>
#include <charconv>
#include <cmath>
#include <memory>
#include <type_traits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "core/vector/json.h"

namespace perceptrond {
namespace {

using spdlog::level::level_enum;

std::atomic<LogFormat> log_format{LogFormat::kText};

// Never destroyed: other threads may log while the process exits.
spdlog::logger& Logger() {
  static spdlog::logger* const logger = [] {
    auto* made =
        new spdlog::logger("perceptrond", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%v");
    made->set_level(level_enum::info);
    made->flush_on(level_enum::trace);
    return made;
  }();
  return *logger;
}

level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return level_enum::trace;
    case LogLevel::kDebug:
      return level_enum::debug;
    case LogLevel::kInfo:
      return level_enum::info;
    case LogLevel::kWarning:
      return level_enum::warn;
    case LogLevel::kError:
      return level_enum::err;
  }
  return level_enum::err;
}

// Errors of one call, as that its messages are compressed, are for its client, which gets them.
void LogFromGrpc(gpr_log_func_args* args) {
  const bool of_a_call = absl::EndsWith(args->file, "/surface/call.cc");
  const LogLevel level = args->severity == GPR_LOG_SEVERITY_ERROR && !of_a_call ? LogLevel::kError
                         : args->severity == GPR_LOG_SEVERITY_DEBUG             ? LogLevel::kTrace
                                                                                : LogLevel::kDebug;
  Log(level, args->message, {{"component", "grpc"}, {"file", args->file}, {"line", args->line}});
}

// Protobuf reports messages that it cannot parse. The client receives that error anyway, so that
// the log needs it for debugging only.
void LogFromProtobuf(google::protobuf::LogLevel severity, const char* file, int line,
                     const std::string& message) {
  const LogLevel level =
      severity >= google::protobuf::LOGLEVEL_FATAL ? LogLevel::kError : LogLevel::kDebug;
  Log(level, message, {{"component", "protobuf"}, {"file", file}, {"line", line}});
}

// The level below which gRPC need not format messages.
gpr_log_severity GrpcVerbosity(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return GPR_LOG_SEVERITY_DEBUG;
    case LogLevel::kDebug:
      return GPR_LOG_SEVERITY_INFO;
    default:
      return GPR_LOG_SEVERITY_ERROR;
  }
}

std::string TimeStamp(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

bool IsControl(unsigned char c) { return c < 0x20 || c == 0x7f; }

void AppendEscaped(std::string_view text, bool quoted, std::string* out) {
  for (const char c : text) {
    if (c == '\n') {
      out->append("\\n");
    } else if (c == '\r') {
      out->append("\\r");
    } else if (c == '\t') {
      out->append("\\t");
    } else if (IsControl(static_cast<unsigned char>(c))) {
      absl::StrAppendFormat(out, "\\x%02x", static_cast<unsigned char>(c));
    } else {
      if (quoted && (c == '"' || c == '\\')) out->push_back('\\');
      out->push_back(c);
    }
  }
}

bool NeedsQuotes(std::string_view text) {
  if (text.empty()) return true;
  for (const char c : text) {
    if (c == ' ' || c == '"' || c == '=' || c == '\\' || IsControl(static_cast<unsigned char>(c))) {
      return true;
    }
  }
  return false;
}

// The shortest form that parses to the same number.
std::string Number(double value) {
  char buffer[32];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
}

void AppendTextValue(const LogField& field, std::string* out) {
  std::visit(
      [out](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::string_view>) {
          const bool quoted = NeedsQuotes(value);
          if (quoted) out->push_back('"');
          AppendEscaped(value, quoted, out);
          if (quoted) out->push_back('"');
        } else if constexpr (std::is_same_v<T, bool>) {
          out->append(value ? "true" : "false");
        } else if constexpr (std::is_same_v<T, double>) {
          out->append(Number(value));
        } else {
          absl::StrAppend(out, value);
        }
      },
      field.value());
}

void AppendJsonValue(const LogField& field, std::string* out) {
  std::visit(
      [out](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::string_view>) {
          AppendJsonString(value, out);
        } else if constexpr (std::is_same_v<T, bool>) {
          out->append(value ? "true" : "false");
        } else if constexpr (std::is_same_v<T, double>) {
          if (std::isfinite(value)) {
            out->append(Number(value));
          } else {
            AppendJsonString(Number(value), out);
          }
        } else {
          absl::StrAppend(out, value);
        }
      },
      field.value());
}

}  // namespace

std::string_view LogLevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return "trace";
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "error";
}

void InitLogging(LogLevel level, LogFormat format) {
  log_format.store(format, std::memory_order_relaxed);
  Logger().set_level(SpdlogLevel(level));
  gpr_set_log_verbosity(GrpcVerbosity(level));
  gpr_set_log_function(LogFromGrpc);
  google::protobuf::SetLogHandler(LogFromProtobuf);
}

bool LogEnabled(LogLevel level) { return Logger().should_log(SpdlogLevel(level)); }

void Log(LogLevel level, std::string_view message, LogFields fields) {
  LogAll(level, message, std::span<const LogField>(fields.begin(), fields.size()));
}

void LogAll(LogLevel level, std::string_view message, std::span<const LogField> fields) {
  if (!LogEnabled(level)) return;
  const std::string line = log_format.load(std::memory_order_relaxed) == LogFormat::kJson
                               ? FormatLogJson(absl::Now(), level, message, fields)
                               : FormatLogText(absl::Now(), level, message, fields);
  Logger().log(SpdlogLevel(level), spdlog::string_view_t(line.data(), line.size()));
}

std::string FormatLogText(absl::Time time, LogLevel level, std::string_view message,
                          std::span<const LogField> fields) {
  std::string line = TimeStamp(time);
  line.append(" ").append(LogLevelName(level)).append(" ");
  AppendEscaped(message, /*quoted=*/false, &line);
  for (const LogField& field : fields) {
    line.append(" ").append(field.key()).append("=");
    AppendTextValue(field, &line);
  }
  return line;
}

std::string FormatLogJson(absl::Time time, LogLevel level, std::string_view message,
                          std::span<const LogField> fields) {
  std::string line = "{\"time\":\"" + TimeStamp(time) + "\",\"level\":\"";
  line.append(LogLevelName(level)).append("\",\"message\":");
  AppendJsonString(message, &line);
  for (const LogField& field : fields) {
    line.push_back(',');
    AppendJsonString(field.key(), &line);
    line.push_back(':');
    AppendJsonValue(field, &line);
  }
  line.push_back('}');
  return line;
}

}  // namespace perceptrond
