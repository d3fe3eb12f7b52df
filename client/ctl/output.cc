#include "client/ctl/output.h"

#include <google/protobuf/util/json_util.h>

#include <charconv>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/command.h"
#include "client/error.h"

namespace perceptrond::client {
namespace {

// What a person can do about it; null where the message says it all.
const char* Advice(const absl::Status& status, const std::string& reason) {
  if (reason == "MODEL_NOT_FOUND") return "'perceptronctl list' shows the models there are";
  if (reason == "MODEL_EXISTS") return "choose another name, or delete that model first";
  if (reason == "MODEL_FROZEN") return "'perceptronctl unfreeze' lets it learn again";
  if (reason == "ETAG_MISMATCH") return "somebody changed it since: get it again and look";
  if (reason == "PRODUCER_SUPERSEDED") return "another stream uses the same --producer";
  if (reason == "OFFSET_GAP") return "check --start-offset against what the server has";
  if (reason == "DRAINING") return "the server is stopping: try again when it is back";
  if (reason.empty() && absl::IsUnavailable(status)) {
    return "is perceptrond running there? --server or PERCEPTROND_SERVER says where to look";
  }
  if (absl::IsDeadlineExceeded(status)) return "--timeout allows it more time";
  if (absl::IsUnimplemented(status)) return "is that a perceptrond server?";
  return nullptr;
}

template <typename Number>
std::string ShortestOf(Number value) {
  char buffer[64];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, result.ptr);
}

}  // namespace

int PrintError(const std::string& doing, const absl::Status& status) {
  const std::string reason = ErrorReason(status);
  const std::string code = absl::StatusCodeToString(status.code());
  std::fprintf(stderr, "perceptronctl: %s: %s (%s)\n", doing.c_str(),
               std::string(status.message()).c_str(),
               reason.empty() ? code.c_str() : absl::StrCat(code, ", ", reason).c_str());
  for (const auto& [field, description] : FieldViolations(status)) {
    std::fprintf(stderr, "  %s: %s\n", field.c_str(), description.c_str());
  }
  if (const char* advice = Advice(status, reason); advice != nullptr) {
    std::fprintf(stderr, "  hint: %s\n", advice);
  }
  return kExitFailed;
}

int PrintUsageError(const std::string& message) {
  std::fprintf(stderr, "perceptronctl: %s\n", message.c_str());
  return kExitUsage;
}

std::string ToJson(const google::protobuf::Message& message, bool pretty) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = pretty;
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(message, &json, options).ok()) return "{}";
  while (!json.empty() && json.back() == '\n') json.pop_back();
  return json;
}

std::string Percent(double ratio) { return absl::StrFormat("%.2f%%", 100 * ratio); }
std::string Shortest(float value) { return ShortestOf(value); }
std::string Shortest(double value) { return ShortestOf(value); }

}  // namespace perceptrond::client
