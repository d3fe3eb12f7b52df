#include "client/load/latency.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace perceptrond::client {
namespace {

constexpr int kBits = 6;
constexpr uint64_t kBucketsPerPower = uint64_t{1} << kBits;

// Below 64 ns each nanosecond has its own bucket; above, a bucket is 1/64 of its power of two.
size_t BucketOf(uint64_t nanos) {
  if (nanos < kBucketsPerPower) return nanos;
  const int shift = std::bit_width(nanos) - 1 - kBits;
  return (static_cast<size_t>(shift) << kBits) + (nanos >> shift);
}

// The last nanosecond of the bucket.
uint64_t EndOf(size_t bucket) {
  if (bucket < kBucketsPerPower) return bucket;
  const int shift = static_cast<int>(bucket >> kBits) - 1;
  const uint64_t index = kBucketsPerPower + (bucket & (kBucketsPerPower - 1));
  return ((index + 1) << shift) - 1;
}

}  // namespace

void LatencyHistogram::Add(absl::Duration latency) {
  const int64_t nanos = std::max<int64_t>(absl::ToInt64Nanoseconds(latency), 0);
  ++counts_[BucketOf(static_cast<uint64_t>(nanos))];
  ++count_;
  max_ = std::max(max_, nanos);
}

void LatencyHistogram::Add(const LatencyHistogram& other) {
  for (size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

absl::Duration LatencyHistogram::Percentile(double percent) const {
  const double share = std::clamp(percent, 0.0, 100.0) / 100;
  const auto wanted =
      std::max<uint64_t>(1, static_cast<uint64_t>(std::ceil(share * static_cast<double>(count_))));
  uint64_t counted = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    counted += counts_[i];
    if (counted >= wanted) return absl::Nanoseconds(std::min(static_cast<int64_t>(EndOf(i)), max_));
  }
  return absl::ZeroDuration();
}

}  // namespace perceptrond::client
