// How long things took, counted so that percentiles can be read off.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace perceptrond::client {

// A count for each of some four thousand spans of time, 64 in every power of two of nanoseconds, as
// HdrHistogram has them: a percentile is too large by less than 1/64 and never too small, and
// neither memory (30 KB) nor the time of Add() grows with what is added.
//
// Threads: a plain value.
class LatencyHistogram {
 public:
  // Below zero counts as zero.
  void Add(absl::Duration latency);
  void Add(const LatencyHistogram& other);

  uint64_t count() const { return count_; }
  absl::Duration max() const { return absl::Nanoseconds(max_); }
  // The least duration that `percent` (0 to 100) of all were not longer than; zero of none.
  absl::Duration Percentile(double percent) const;

 private:
  static constexpr size_t kSpansAPower = 64;
  static constexpr size_t kSpans = (63 - 6 + 1) * kSpansAPower;

  std::array<uint64_t, kSpans> counts_{};
  uint64_t count_ = 0;
  int64_t max_ = 0;
};

}  // namespace perceptrond::client
