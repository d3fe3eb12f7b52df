#include "client/load/load.h"

#include <sys/prctl.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

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

// Tag of the message that Prepare() sends. The tag of any other message is its due time, in
// nanoseconds after the start.
constexpr uint64_t kFirstTag = std::numeric_limits<uint64_t>::max();

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

void LoadTally::Add(const LoadTally& other) {
  messages += other.messages;
  examples += other.examples;
  row_errors += other.row_errors;
  mistakes += other.mistakes;
  updates += other.updates;
  lost += other.lost;
  overdue += other.overdue;
  disconnects += other.disconnects;
  latency.Add(other.latency);
}

std::unique_ptr<Load> Load::Make(const Client& client, const LoadOptions& options,
                                 const SyntheticRowsOptions& rows) {
  switch (options.work) {
    case LoadOptions::Work::kLearn:
      return MakeLearnLoad(client, options, rows);
    case LoadOptions::Work::kPredict:
      return MakePredictLoad(client, options, rows);
    case LoadOptions::Work::kCall:
      break;
  }
  return MakeCallLoad(client, options, rows);
}

absl::Status Load::Prepare() {
  if (absl::Status status = Open(); !status.ok()) return status;
  bool cancelled = false;
  {
    MutexLock lock(&mutex_);
    opened_ = true;
    cancelled = cancelled_;
  }
  if (cancelled) CancelStream();
  if (absl::Status status = Send(kFirstTag); !status.ok()) return status;
  {
    MutexLock lock(&mutex_);
    const auto answered = [this]()
                              ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return prepared_ || ended_; };
    mutex_.Await(absl::Condition(&answered));
    if (prepared_) return absl::OkStatus();
  }
  return Finish();
}

absl::Status Load::Run(const LoadTimes& times) {
  // The default timer slack of 50 us would count as the server's latency.
  prctl(PR_SET_TIMERSLACK, 1);
  {
    MutexLock lock(&mutex_);
    times_ = times;
  }
  const absl::Status sent = SendAll(times);
  const absl::Status finished = Finish();
  return sent.ok() ? finished : sent;
}

absl::Status Load::SendAll(const LoadTimes& times) {
  for (uint64_t message = 0;; ++message) {
    const LoadClock::time_point now = LoadClock::now();
    LoadClock::time_point due = std::max(now, times.start);
    if (options_.rate > 0) {
      const std::chrono::duration<double> offset(static_cast<double>(message) / options_.rate);
      due = times.start + std::chrono::duration_cast<LoadClock::duration>(offset);
    }
    if (due >= times.end || now >= times.give_up || !WaitUntil(due)) return absl::OkStatus();
    const std::chrono::nanoseconds tag = due - times.start;
    if (absl::Status status = Send(static_cast<uint64_t>(tag.count())); !status.ok()) return status;
    if (options_.rate > 0 && LoadClock::now() >= times.end) {
      MutexLock lock(&mutex_);
      tally_.overdue += options_.rows_per_message;
    }
  }
}

bool Load::WaitUntil(LoadClock::time_point due) {
  MutexLock lock(&mutex_);
  // The timeout counts on another clock and may end early.
  for (auto now = LoadClock::now(); !stopped_ && now < due; now = LoadClock::now()) {
    mutex_.AwaitWithTimeout(absl::Condition(&stopped_), absl::FromChrono(due - now));
  }
  return !stopped_;
}

void Load::Stop() {
  MutexLock lock(&mutex_);
  stopped_ = true;
}

void Load::Cancel() {
  Stop();
  bool opened = false;
  {
    MutexLock lock(&mutex_);
    cancelled_ = true;
    opened = opened_;
  }
  if (opened) CancelStream();
}

void Load::OnAnswer(uint64_t tag, const LoadTally& answer) {
  const LoadClock::time_point now = LoadClock::now();
  MutexLock lock(&mutex_);
  disconnected_ = false;
  if (tag == kFirstTag) {
    prepared_ = true;
    return;
  }
  const LoadClock::time_point due = times_.start + std::chrono::nanoseconds(tag);
  if (due < times_.counted_from || due >= times_.end) return;
  tally_.messages += answer.messages;
  tally_.examples += answer.examples;
  tally_.row_errors += answer.row_errors;
  tally_.mistakes += answer.mistakes;
  tally_.updates += answer.updates;
  tally_.lost += answer.lost;
  if (answer.messages > 0) tally_.latency.Add(absl::FromChrono(now - due));
}

void Load::OnDisconnect() {
  MutexLock lock(&mutex_);
  if (!disconnected_) ++tally_.disconnects;
  disconnected_ = true;
}

void Load::OnEnd() {
  MutexLock lock(&mutex_);
  ended_ = true;
}

bool Load::stopped() const {
  MutexLock lock(&mutex_);
  return stopped_;
}

LoadTally Load::tally() const {
  MutexLock lock(&mutex_);
  return tally_;
}

}  // namespace perceptrond::client
