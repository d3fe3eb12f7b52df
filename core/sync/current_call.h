// The call that a thread works for: its trace, which what is written to the journal names, and its
// caller, whom the store asks wherever a name or an id reaches it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace perceptrond {

// The maker of a call. Thread contract: safe for any number of threads.
class Caller {
 public:
  virtual ~Caller() = default;
  // The name of the caller's principal, which owns the ids that the caller chooses; empty without
  // access control.
  virtual std::string principal() const = 0;
  // True if the caller's principal has this name, or had it.
  virtual bool IsNamed(absl::string_view name) const = 0;
  // OK if the caller may read a model of this full name. The error does not tell whether there is
  // one.
  virtual absl::Status CheckRead(absl::string_view name) const = 0;
};

// The W3C traceparent of the call that the thread works for; null if it has none.
inline constinit thread_local const std::string* current_traceparent = nullptr;
// The caller whom the thread works for; null if that is the server itself, or somebody who may do
// everything.
inline constinit thread_local const Caller* current_caller = nullptr;

inline std::string CurrentPrincipal() {
  return current_caller == nullptr ? "" : current_caller->principal();
}

// Sets both as long as it exists. Costs four writes.
class CallScope {
 public:
  // An empty traceparent: none. Both must outlive this.
  CallScope(const std::string& traceparent, const Caller* caller) {
    current_traceparent = traceparent.empty() ? nullptr : &traceparent;
    current_caller = caller;
  }
  ~CallScope() {
    current_traceparent = nullptr;
    current_caller = nullptr;
  }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;
};

}  // namespace perceptrond
