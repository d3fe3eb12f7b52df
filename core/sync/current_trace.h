// The trace of the call that a thread works for, so that what it has written to the journal names it.
#pragma once

#include <string>

namespace perceptrond {

// A W3C traceparent; null: the call has none.
inline constinit thread_local const std::string* current_traceparent = nullptr;

// Sets it as long as it exists. Costs two writes.
class TraceScope {
 public:
  // Empty: none. Must outlive this.
  explicit TraceScope(const std::string& traceparent) {
    current_traceparent = traceparent.empty() ? nullptr : &traceparent;
  }
  ~TraceScope() { current_traceparent = nullptr; }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;
};

}  // namespace perceptrond
