// Latency histogram with percentiles.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace perceptrond::client {

// Counts in some four thousand buckets, 64 per power of two of nanoseconds, as in HdrHistogram: a
// percentile is too large by less than 1/64 and never too small; 30 KB, and Add() is O(1).
//
// A plain value.
class LatencyHistogram {
 public:
  // Negative latencies count as zero.
  void Add(absl::Duration latency);
  void Add(const LatencyHistogram& other);

  uint64_t count() const { return count_; }
  absl::Duration max() const { return absl::Nanoseconds(max_); }
  // The smallest duration that `percent` (0 to 100) of all latencies do not exceed; zero if empty.
  absl::Duration Percentile(double percent) const;

 private:
  static constexpr size_t kBucketsPerPower = 64;
  static constexpr size_t kBuckets = (63 - 6 + 1) * kBucketsPerPower;

  std::array<uint64_t, kBuckets> counts_{};
  uint64_t count_ = 0;
  int64_t max_ = 0;
};

}  // namespace perceptrond::client
