#include "server/rpc/trace_context.h"

#include <algorithm>

namespace perceptrond {
namespace {

constexpr size_t kTraceIdDigits = 32;
constexpr size_t kSpanIdDigits = 16;
// Of version 00: "00-" + trace id + "-" + span id + "-01".
constexpr size_t kLength = 3 + kTraceIdDigits + 1 + kSpanIdDigits + 1 + 2;

// Upper case is invalid by the specification.
bool IsLowerHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool IsZero(absl::string_view digits) {
  return digits.find_first_not_of('0') == absl::string_view::npos;
}

}  // namespace

std::optional<TraceContext> ParseTraceparent(absl::string_view value) {
  if (value.size() < kLength) return std::nullopt;
  const absl::string_view version = value.substr(0, 2);
  const absl::string_view trace_id = value.substr(3, kTraceIdDigits);
  const absl::string_view span_id = value.substr(4 + kTraceIdDigits, kSpanIdDigits);
  const absl::string_view flags = value.substr(kLength - 2, 2);
  for (const size_t dash : {size_t{2}, 3 + kTraceIdDigits, kLength - 3}) {
    if (value[dash] != '-') return std::nullopt;
  }
  for (const absl::string_view digits : {version, trace_id, span_id, flags}) {
    if (!IsLowerHex(digits)) return std::nullopt;
  }
  if (version == "ff" || IsZero(trace_id) || IsZero(span_id)) return std::nullopt;
  // Later versions may append fields, each after a dash.
  const bool has_more = value.size() > kLength;
  if (has_more && (version == "00" || value[kLength] != '-')) return std::nullopt;
  return TraceContext{std::string(trace_id), std::string(span_id)};
}

}  // namespace perceptrond
