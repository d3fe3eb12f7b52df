// Decides when a polling thread spins instead of sleeping: while requests arrive one at a time,
// each soon after the last was answered. Waking a sleeping processor takes longer than answering
// such a request. Under more load spinning gains nothing: what arrives while the thread sleeps is
// handled right after it wakes, in one go
// (docs/adr/0027-one-queue.md).
#pragma once

#include <chrono>

#include "absl/functional/function_ref.h"

namespace perceptrond {

// A credit that lone requests earn and fruitless spinning costs. A plain value; not thread-safe.
// O(1) throughout.
class SpinPolicy {
 public:
  using Duration = std::chrono::nanoseconds;

  // Never spins for longer than `max_duration`; 0: never spins.
  explicit SpinPolicy(Duration max_duration) : max_duration_(max_duration) {}

  // How long to spin for the next event before sleeping.
  Duration duration() const { return credit_ >= kTimeoutCost ? max_duration_ : Duration::zero(); }

  // No event arrived during a spin.
  void OnTimeout() { credit_ -= kTimeoutCost; }
  // An event arrived after waiting for `waited`, spinning or asleep.
  void OnEvent(Duration waited) {
    if (waited >= kMinWait) {
      const bool alone =
          events_ <= kMaxEvents && idle_ && waited <= kMaxWaitInSpins * max_duration_;
      credit_ = alone ? credit_ + (credit_ < kMaxCredit ? 1 : 0) : 0;
      events_ = 0;
    }
    ++events_;
  }
  // The event was handled. `is_idle` says whether no work is in progress and no client waits; it is
  // called only where the answer matters.
  void OnHandled(absl::FunctionRef<bool()> is_idle) {
    idle_ = max_duration_ > Duration::zero() && events_ <= kMaxEvents && is_idle();
    if (!idle_) credit_ = 0;
  }

 private:
  // A shorter wait is none: the event was in the queue already.
  static constexpr Duration kMinWait = std::chrono::microseconds(5);
  // The events of one request: its call, its message, its end, and its answer.
  static constexpr int kMaxEvents = 8;
  // In units of the longest spin. A thread that sleeps waits for two processors to wake, besides
  // the time that the client takes between requests.
  static constexpr int kMaxWaitInSpins = 4;
  // A lone request earns 1: so at most one request in eight costs a fruitless spin.
  static constexpr int kTimeoutCost = 8;
  static constexpr int kMaxCredit = 64;

  const Duration max_duration_;
  int credit_ = 0;
  // Events since the last wait.
  int events_ = 0;
  bool idle_ = false;
};

}  // namespace perceptrond
