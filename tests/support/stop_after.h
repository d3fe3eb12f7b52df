// A token that stops work at one of its checks, whichever the test asks for.
#pragma once

#include <atomic>

#include "core/sync/cancellation.h"

namespace perceptrond::testing {

// Asked at every check, with the interval 1: work that is stopped at each of its checks in turn is
// stopped wherever it can be.
//   for (int checks = 0; ...; ++checks) {
//     const StopAfter token(checks);
//     const CancellationScope scope(&token, 1);
//     ...
//   }
class StopAfter final : public CancellationToken {
 public:
  explicit StopAfter(int checks, StopReason reason = StopReason::kCancelled)
      : checks_(checks), stop_(reason) {}

  StopReason reason() const override { return ++asked_ > checks_ ? stop_ : StopReason::kNone; }
  // Whether the work was stopped.
  bool has_stopped() const { return asked_ > checks_; }
  int asked() const { return asked_; }

 private:
  const int checks_;
  const StopReason stop_;
  mutable std::atomic<int> asked_ = 0;
};

// Never stops, and counts the checks.
class CountChecks final : public CancellationToken {
 public:
  StopReason reason() const override {
    ++asked_;
    return StopReason::kNone;
  }
  int asked() const { return asked_; }

 private:
  mutable std::atomic<int> asked_ = 0;
};

}  // namespace perceptrond::testing
