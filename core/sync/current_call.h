// The caller that a thread works for, whom the store asks wherever a name or an id reaches it.
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

// The caller whom the thread works for; null if that is the server itself, or somebody who may do
// everything.
inline constinit thread_local const Caller* current_caller = nullptr;

inline std::string CurrentPrincipal() {
  return current_caller == nullptr ? "" : current_caller->principal();
}

// Sets it as long as this exists.
class CallScope {
 public:
  // It must outlive this.
  explicit CallScope(const Caller* caller) { current_caller = caller; }
  ~CallScope() { current_caller = nullptr; }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;
};

}  // namespace perceptrond
