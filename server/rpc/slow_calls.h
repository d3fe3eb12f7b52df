// The log of slow calls: a line for each unary call, and each message of a stream, that took longer
// than a threshold, with what the time was spent on.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/sync/mutex.h"
#include "server/rpc/call_timing.h"
#include "server/rpc/trace_context.h"

namespace perceptrond {

// What a line states. It has no name and no value of an example.
struct SlowCall {
  // The path on the wire.
  std::string method;
  std::string model;
  std::string peer;
  // Empty without access control, and if the caller was not recognized.
  std::string principal;
  TraceContext trace;
  // Of a stream's message: its number, from 0.
  std::optional<uint64_t> message = std::nullopt;
  size_t bytes = 0;
  size_t rows = 0;
  // A grpc::StatusCode.
  int code = 0;
  // In milliseconds.
  double total = 0;
  PartTimes parts{};
};

// Thread contract: any thread may call any method.
class SlowCallLog {
 public:
  // More lines in one second are counted and left out.
  static constexpr int kMaxLinesPerSecond = 10;

  // Takes effect with the next request. Zero turns the log off.
  void SetThreshold(absl::Duration threshold) {
    threshold_.store(absl::ToInt64Nanoseconds(threshold), std::memory_order_relaxed);
  }
  // Whether requests should be timed.
  bool enabled() const { return threshold_.load(std::memory_order_relaxed) > 0; }
  // Whether a request that took this long should be written. False while the log is off.
  bool IsSlow(SteadyClock::duration time) const {
    const int64_t threshold = threshold_.load(std::memory_order_relaxed);
    return threshold > 0 && time.count() > threshold;
  }
  // Writes a line, or counts it as left out. The next line that is written states that number.
  void Write(const SlowCall& call) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Whether this second has room for a line; takes the number of those left out before.
  bool TakeLine(uint64_t& left_out) ABSL_LOCKS_EXCLUDED(mutex_);

  std::atomic<int64_t> threshold_ = 0;
  Mutex mutex_;
  // When the current second began.
  SteadyClock::time_point second_ ABSL_GUARDED_BY(mutex_);
  int lines_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace perceptrond
