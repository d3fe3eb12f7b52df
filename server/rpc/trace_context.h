// The W3C trace context of a call: which request of a larger system it belongs to.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace perceptrond {

// The name of the request metadata that holds it.
inline constexpr char kTraceparent[] = "traceparent";
// Bytes of one of version 00.
inline constexpr size_t kTraceparentBytes = 55;

// A plain value; empty for a call without a trace.
struct TraceContext {
  bool empty() const { return trace_id.empty(); }

  // 32 hexadecimal digits in lower case.
  std::string trace_id;
  // The caller's span: 16 hexadecimal digits in lower case.
  std::string span_id;
};

// Reads a value of the form VERSION-TRACE_ID-SPAN_ID-FLAGS, as Trace Context Level 1 of the W3C
// states it; of a version above 00 the part that version 00 has. Absent for an invalid value, which
// a server must ignore. O(1).
std::optional<TraceContext> ParseTraceparent(absl::string_view value);

}  // namespace perceptrond
