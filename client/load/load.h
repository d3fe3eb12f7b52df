// One stream of load on a server: messages of made-up examples, each at its time, and how long the
// answers took from that time on.
//
// A message that is due while the sender still waits for the server is late through the server's
// fault, and its latency counts from when it was due, not from when it could be sent: percentiles
// are free of coordinated omission (G. Tene, "How not to measure latency", 2013). Without a rate
// nothing is due: messages go as fast as the window lets them, and latencies count from there.
//
// Nothing that the client has to make counts as the server's: examples are made with the load, and
// Prepare() opens the stream and waits for the answer to a first message.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "client/client.h"
#include "client/load/latency.h"
#include "client/load/synthetic_rows.h"
#include "client/monitor.h"
#include "client/retry.h"

namespace perceptrond::client {

using LoadClock = std::chrono::steady_clock;

struct LoadOptions {
  enum class Work { kLearn, kPredict, kCall };
  Work work = Work::kLearn;
  std::string model;
  // Messages a second; 0: as fast as may be.
  double rate = 0;
  size_t rows_per_message = 100;
  // Messages without an answer. Of kCall: 1, whatever this says.
  size_t window = 64;
  // False: the stream leaves no producer behind in the model, and does not survive a broken
  // connection.
  bool numbered = true;
  RetryPolicy retry;
  absl::Duration patience = absl::Minutes(1);
};

// The first message is due at `start`; those due from `counted_from` to `end` are counted. What is
// overdue at the end is still sent, but nothing after `give_up`.
struct LoadTimes {
  LoadClock::time_point start;
  LoadClock::time_point counted_from;
  LoadClock::time_point end;
  LoadClock::time_point give_up;
};

// Of the messages that are counted.
struct LoadTally {
  uint64_t messages = 0;
  uint64_t examples = 0;
  uint64_t refused = 0;
  // Learning only.
  uint64_t mistakes = 0;
  uint64_t updates = 0;
  // Rows whose answers a broken connection took along; nothing else here knows of them.
  uint64_t lost = 0;
  // With a rate: examples that could be sent only after the end.
  uint64_t overdue = 0;
  // How often the connection broke, however many attempts brought it back.
  uint64_t breaks = 0;
  LatencyHistogram latency;

  void Add(const LoadTally& other);
};

// Threads: Prepare and then Run by one; the others by any, also meanwhile.
class Load {
 public:
  // Makes its examples, which takes a while.
  static std::unique_ptr<Load> Make(const Client& client, const LoadOptions& options,
                                    const SyntheticRowsOptions& rows);
  virtual ~Load() = default;

  // Returns once the server has answered a first message, which is not counted. Errors: as the
  // server or the connection has them.
  absl::Status Prepare() ABSL_LOCKS_EXCLUDED(mutex_);
  // After Prepare() returned OK: until the end, or Stop. Errors as there.
  absl::Status Run(const LoadTimes& times) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends no more; what is under way is waited for.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Breaks off what is under way too.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);
  LoadTally tally() const ABSL_LOCKS_EXCLUDED(mutex_);

 protected:
  Load(const LoadOptions& options, const SyntheticRowsOptions& rows)
      : options_(options), rows_(rows) {}

  virtual absl::Status Open() { return absl::OkStatus(); }
  virtual void BreakOff() {}
  // Sends a message, once the window has room.
  virtual absl::Status Send(uint64_t tag) = 0;
  // Waits for all answers.
  virtual absl::Status Finish() { return absl::OkStatus(); }
  // The answer to that message has come; `answer` has its figures.
  void Answered(uint64_t tag, const LoadTally& answer) ABSL_LOCKS_EXCLUDED(mutex_);
  // An attempt to reach the server has failed, and another will be made.
  void Away() ABSL_LOCKS_EXCLUDED(mutex_);
  // Nothing will be answered any more.
  void Ended() ABSL_LOCKS_EXCLUDED(mutex_);
  bool stopped() const ABSL_LOCKS_EXCLUDED(mutex_);

  const LoadOptions options_;
  SyntheticRows rows_;

 private:
  // Sends what is due, in time or late.
  absl::Status SendAll(const LoadTimes& times) ABSL_LOCKS_EXCLUDED(mutex_);
  // False: stopped meanwhile.
  bool WaitUntil(LoadClock::time_point due) ABSL_LOCKS_EXCLUDED(mutex_);

  mutable Monitor mutex_;
  LoadTimes times_ ABSL_GUARDED_BY(mutex_);
  LoadTally tally_ ABSL_GUARDED_BY(mutex_);
  bool opened_ ABSL_GUARDED_BY(mutex_) = false;
  bool prepared_ ABSL_GUARDED_BY(mutex_) = false;
  bool away_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

// Of LoadOptions::work kCall. A call that fails for a while is made again, as streams are.
std::unique_ptr<Load> MakeCallLoad(const Client& client, const LoadOptions& options,
                                   const SyntheticRowsOptions& rows);

std::unique_ptr<Load> MakeLearnLoad(const Client& client, const LoadOptions& options,
                                    const SyntheticRowsOptions& rows);
std::unique_ptr<Load> MakePredictLoad(const Client& client, const LoadOptions& options,
                                      const SyntheticRowsOptions& rows);

}  // namespace perceptrond::client
