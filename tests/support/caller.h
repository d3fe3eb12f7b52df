// A caller without a server, who may read models of some names.
#pragma once

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "core/sync/current_call.h"

namespace perceptrond::testing {

class TestCaller final : public Caller {
 public:
  // `readable`: what the full names begin with that it may read.
  explicit TestCaller(std::string principal, std::string former = "", std::string readable = "")
      : principal_(std::move(principal)),
        former_(std::move(former)),
        readable_(std::move(readable)) {}

  std::string principal() const override { return principal_; }
  bool IsNamed(absl::string_view name) const override {
    return name == principal_ || name == former_;
  }
  absl::Status CheckRead(absl::string_view name) const override {
    return absl::StartsWith(name, readable_) ? absl::OkStatus() : absl::PermissionDeniedError("");
  }

 private:
  const std::string principal_;
  const std::string former_;
  const std::string readable_;
};

// What `work` returns when it is done for this caller.
template <typename Work>
auto As(const Caller& caller, const Work& work) {
  const CallScope scope(&caller);
  return work();
}

}  // namespace perceptrond::testing
