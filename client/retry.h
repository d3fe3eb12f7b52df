// When to send a request again, and how long to wait first.
//
// Only requests that may arrive twice are sent twice: reads, predictions, a creation with a
// request_id, and learning that is numbered by a producer. Learning without numbers would learn
// twice, so nothing here ever repeats it.
#pragma once

#include <functional>
#include <optional>
#include <random>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace perceptrond::client {

struct RetryPolicy {
  // The first wait, at most so long. Default 100 ms.
  absl::Duration initial_backoff = absl::Milliseconds(100);
  // No wait is drawn longer than this; a server's RetryInfo may ask for more. Default 10 s.
  absl::Duration max_backoff = absl::Seconds(10);
  // Each wait may be this many times the one before, >= 1. Default 2.
  double multiplier = 2;
  // How long to keep trying, from the first attempt or, on a stream, from its last progress. 0:
  // never try again. Default 1 minute.
  absl::Duration give_up_after = absl::Minutes(1);

  // What the clock says and how to wait: for tests. Default: the real ones.
  std::function<absl::Time()> now = [] { return absl::Now(); };
  std::function<void(absl::Duration)> sleep = [](absl::Duration d) { absl::SleepFor(d); };
};

// True iff the same request may succeed later without anybody's help: UNAVAILABLE, or
// RESOURCE_EXHAUSTED that names a RetryInfo (without one it is a cap that waiting does not lift).
bool IsTransient(const absl::Status& status);

// Of the error that ended a stream because RetryPolicy::give_up_after had passed: how long that
// was. Absent for any other error.
std::optional<absl::Duration> GaveUpAfter(const absl::Status& status);
// The error with that said.
absl::Status WithGaveUpAfter(absl::Status status, absl::Duration after);

// The waits between attempts: exponential, each drawn evenly from half its ceiling to the whole, so
// that clients which were cut off together do not come back together. Threads: one at a time.
class Backoff {
 public:
  explicit Backoff(const RetryPolicy& policy);
  // The next wait after `error`; at least what the error's RetryInfo asks for.
  absl::Duration Next(const absl::Status& error);
  // After progress: the next wait is the first again.
  void Reset();

 private:
  const absl::Duration initial_;
  const absl::Duration max_;
  const double multiplier_;
  absl::Duration ceiling_;
  std::minstd_rand random_;
};

// Calls `attempt` until it succeeds, fails for good, or the next wait would pass give_up_after;
// returns its last status. `repeatable` says whether the request may arrive twice; if not,
// `attempt` is called once.
absl::Status CallWithRetry(const RetryPolicy& policy, bool repeatable,
                           absl::FunctionRef<absl::Status()> attempt);

}  // namespace perceptrond::client
