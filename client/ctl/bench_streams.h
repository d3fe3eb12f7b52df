// The threads of a bench, one for each load: they prepare, wait for each other, and run from one
// moment on.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "client/load/load.h"

namespace perceptrond::client {

// Threads: one.
class BenchStreams {
 public:
  // The loads begin to prepare. They must outlive this.
  explicit BenchStreams(const std::vector<std::unique_ptr<Load>>* loads);
  // Without Start() none runs. Waits for all to end.
  ~BenchStreams();

  // Waits until all are prepared, or one has failed, for at most `time`: whether that is so.
  bool WaitPrepared(LoadClock::duration time) ABSL_LOCKS_EXCLUDED(mutex_);
  // Once all are prepared.
  void Start(const std::vector<LoadTimes>& times) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until all have ended, or one has failed, for at most `time`: whether that is so.
  bool WaitEnded(LoadClock::duration time) ABSL_LOCKS_EXCLUDED(mutex_);
  // The first.
  absl::Status failure() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void RunOne(size_t i) ABSL_LOCKS_EXCLUDED(mutex_);
  // Its times; absent: not to run at all.
  std::optional<LoadTimes> WaitForStart(size_t i) ABSL_LOCKS_EXCLUDED(mutex_);
  // One less of those; and how it went.
  void Count(absl::Status status, size_t* of) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::vector<std::unique_ptr<Load>>& loads_;
  mutable Monitor mutex_;
  size_t unprepared_ ABSL_GUARDED_BY(mutex_);
  size_t running_ ABSL_GUARDED_BY(mutex_);
  std::vector<LoadTimes> times_ ABSL_GUARDED_BY(mutex_);
  bool given_up_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace perceptrond::client
