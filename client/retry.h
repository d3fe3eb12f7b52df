// Retries: which requests are repeated, and how long to wait before.
//
// Only requests that are safe to repeat are retried: reads, predictions, creations with a
// request_id, and numbered learning. Unnumbered learning is never repeated, because it would learn
// twice.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <random>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace perceptrond::client {

// A plain value.
struct RetryPolicy {
  // Upper bound of the first wait, > 0. Default 100 ms.
  absl::Duration initial_backoff = absl::Milliseconds(100);
  // Upper bound of every wait; RetryInfo in an error may ask for more. Default 10 s.
  absl::Duration max_backoff = absl::Seconds(10);
  // Growth of the upper bound from one wait to the next, >= 1. Default 2.
  double multiplier = 2;
  // Time after which to give up, from the first attempt or, for a stream, from its last progress.
  // 0: no retries. Default 1 minute.
  absl::Duration give_up_after = absl::Minutes(1);

  // The clock and, for calls, the wait, replaceable in tests. Default: the real ones.
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  std::function<void(absl::Duration)> sleep = [](absl::Duration d) { absl::SleepFor(d); };
};

// Whether the same request may succeed later: UNAVAILABLE, or RESOURCE_EXHAUSTED with a RetryInfo
// (without one it is a limit that waiting does not lift).
bool IsTransient(const absl::Status& status);

// Whether proxies and crashing servers report a lost connection with this status.
bool MayBeLostConnection(const absl::Status& status);

// The time after which a stream gave up, if that is why it ended with this error; else absent.
std::optional<absl::Duration> GaveUpAfter(const absl::Status& status);
// The error with this time attached.
absl::Status WithGaveUpAfter(absl::Status status, absl::Duration after);

// Waits between attempts: exponential, drawn uniformly from the upper half of the current bound, so
// that clients disconnected at the same time do not reconnect at the same time. Threads: one at a
// time.
class Backoff {
 public:
  explicit Backoff(const RetryPolicy& policy);
  // The next wait, at least the RetryInfo of `error`.
  absl::Duration Next(const absl::Status& error);
  // Call after progress: starts with the first wait again.
  void Reset();

 private:
  const absl::Duration initial_;
  const absl::Duration max_;
  const double multiplier_;
  absl::Duration ceiling_;
  std::minstd_rand random_;
};

// Calls `attempt` until it succeeds, fails with an error that is not transient, or the next wait
// would exceed give_up_after; returns its last status. `repeatable` false: calls `attempt` once.
absl::Status CallWithRetry(const RetryPolicy& policy, bool repeatable,
                           absl::FunctionRef<absl::Status()> attempt);

}  // namespace perceptrond::client
