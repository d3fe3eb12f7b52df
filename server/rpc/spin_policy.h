// When whoever polls looks again instead of sleeping: while requests come one at a time, each soon
// after the last was answered. Waking a processor that sleeps takes longer than such a request
// does; with more to do, what comes while one sleeps is done at once afterwards, for less
// (docs/adr/0027-one-queue.md).
#pragma once

#include <chrono>

#include "absl/functional/function_ref.h"

namespace perceptrond {

// A plain value; not thread-safe. O(1) throughout.
class SpinPolicy {
 public:
  using Duration = std::chrono::nanoseconds;

  // Never looks longer than `most`; zero: never.
  explicit SpinPolicy(Duration most) : most_(most) {}

  // How long to look before sleeping, for the next event.
  Duration spin() const { return credit_ >= kVainCost ? most_ : Duration::zero(); }

  // Nothing came while looking.
  void InVain() { credit_ -= kVainCost; }
  // An event came, after so long a wait, looking or asleep.
  void Came(Duration waited) {
    if (waited >= kLeastWait) {
      const bool alone = events_ <= kMostEvents && quiet_ && waited <= kLongestWait * most_;
      credit_ = alone ? credit_ + (credit_ < kMostCredit ? 1 : 0) : 0;
      events_ = 0;
    }
    ++events_;
  }
  // And was handled. Asks whether nothing is being done and nobody waits for an answer only where
  // that matters.
  void Handled(absl::FunctionRef<bool()> quiet) {
    quiet_ = most_ > Duration::zero() && events_ <= kMostEvents && quiet();
    if (!quiet_) credit_ = 0;
  }

 private:
  // Shorter is no wait: the event was there.
  static constexpr Duration kLeastWait = std::chrono::microseconds(5);
  // Of one request: a call comes, its message, its end, and its answer goes out.
  static constexpr int kMostEvents = 8;
  // Times the longest look. Asleep, one waits for two processors to wake, on top of what a client
  // does between requests.
  static constexpr int kLongestWait = 4;
  // What a request that comes alone earns is 1: so at most one request in eight is looked for in
  // vain.
  static constexpr int kVainCost = 8;
  static constexpr int kMostCredit = 64;

  const Duration most_;
  int credit_ = 0;
  // Since the last wait.
  int events_ = 0;
  bool quiet_ = false;
};

}  // namespace perceptrond
