// Load: one stream of synthetic examples sent to a server on schedule, with the latencies of the
// answers.
//
// With a rate, every message has a due time, and its latency counts from then, even if the message
// could not be sent because earlier answers were late: percentiles are free of coordinated omission
// (G. Tene, "How not to measure latency", 2013). Without a rate, messages are sent as fast as the
// window allows, and latency counts from sending.
//
// Preparation on the client is not measured: the examples are generated with the load, and
// Prepare() opens the stream and waits for the answer to a first message.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "client/load/synthetic_rows.h"
#include "client/retry.h"
#include "core/sync/mutex.h"

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

using LoadClock = std::chrono::steady_clock;

// A plain value.
struct LoadOptions {
  enum class Work { kLearn, kPredict, kCall };
  Work work = Work::kLearn;
  std::string model;
  // Messages per second; 0: as fast as the window allows.
  double rate = 0;
  size_t rows_per_message = 100;
  // Most unanswered messages. Ignored for kCall, where it is 1.
  size_t window = 64;
  // LearnOptions::compact. Ignored for kCall.
  bool compact = false;
  // False: the model does not store a producer for the stream, and a lost connection ends it.
  bool numbered = true;
  RetryPolicy retry;
  // Longest wait for an overdue answer, reconnecting included.
  absl::Duration response_timeout = absl::Minutes(1);
};

// The first message is due at `start`; those due in [counted_from, end) are measured. Overdue
// messages are still sent after `end`, but none after `give_up`.
struct LoadTimes {
  LoadClock::time_point start;
  LoadClock::time_point counted_from;
  LoadClock::time_point end;
  LoadClock::time_point give_up;
};

// Totals over the measured messages. A plain value.
struct LoadTally {
  uint64_t messages = 0;
  uint64_t examples = 0;
  // Rows with a validation error.
  uint64_t row_errors = 0;
  // Learning only.
  uint64_t mistakes = 0;
  uint64_t updates = 0;
  // Rows whose answers a lost connection took away; they are in no other total.
  uint64_t lost = 0;
  // With a rate: examples sent only after the end.
  uint64_t overdue = 0;
  // How often the connection was lost.
  uint64_t disconnects = 0;
  LatencyHistogram latency;

  void Add(const LoadTally& other);
};

// Threads: Prepare() and then Run() from one thread; the other methods from any, at any time.
class Load {
 public:
  // Generates the examples, which takes up to some seconds.
  static std::unique_ptr<Load> Make(const Client& client, const LoadOptions& options,
                                    const SyntheticRowsOptions& rows);
  virtual ~Load() = default;

  // Opens the stream and waits for the answer to a first, unmeasured message. Errors of the server
  // or the connection.
  absl::Status Prepare() ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends messages until times.end or Stop(), and waits for their answers. Call after Prepare()
  // returned OK. Errors of the server or the connection.
  absl::Status Run(const LoadTimes& times) ABSL_LOCKS_EXCLUDED(mutex_);
  // Stops sending; Run() still waits for the answers to what was sent.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Stop(), and cancels the stream.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);
  LoadTally tally() const ABSL_LOCKS_EXCLUDED(mutex_);

 protected:
  Load(const LoadOptions& options, const SyntheticRowsOptions& rows)
      : options_(options), rows_(rows) {}

  virtual absl::Status Open() { return absl::OkStatus(); }
  virtual void CancelStream() {}
  // Sends a message, waiting until the window has room.
  virtual absl::Status Send(uint64_t tag) = 0;
  // Waits for all answers.
  virtual absl::Status Finish() { return absl::OkStatus(); }
  // Call with the totals of each answered message.
  void OnAnswer(uint64_t tag, const LoadTally& answer) ABSL_LOCKS_EXCLUDED(mutex_);
  // Call when the connection was lost and will be tried again.
  void OnDisconnect() ABSL_LOCKS_EXCLUDED(mutex_);
  // Call when no more answers will come.
  void OnEnd() ABSL_LOCKS_EXCLUDED(mutex_);
  bool stopped() const ABSL_LOCKS_EXCLUDED(mutex_);

  const LoadOptions options_;
  SyntheticRows rows_;

 private:
  // Sends all messages up to times.end, late ones included.
  absl::Status SendAll(const LoadTimes& times) ABSL_LOCKS_EXCLUDED(mutex_);
  // False: Stop() was called.
  bool WaitUntil(LoadClock::time_point due) ABSL_LOCKS_EXCLUDED(mutex_);

  mutable Mutex mutex_;
  LoadTimes times_ ABSL_GUARDED_BY(mutex_);
  LoadTally tally_ ABSL_GUARDED_BY(mutex_);
  bool opened_ ABSL_GUARDED_BY(mutex_) = false;
  bool prepared_ ABSL_GUARDED_BY(mutex_) = false;
  bool disconnected_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

// The kinds of load, by LoadOptions::work. A call that fails for a while is retried, as streams
// are.
std::unique_ptr<Load> MakeCallLoad(const Client& client, const LoadOptions& options,
                                   const SyntheticRowsOptions& rows);

std::unique_ptr<Load> MakeLearnLoad(const Client& client, const LoadOptions& options,
                                    const SyntheticRowsOptions& rows);
std::unique_ptr<Load> MakePredictLoad(const Client& client, const LoadOptions& options,
                                      const SyntheticRowsOptions& rows);

}  // namespace perceptrond::client
