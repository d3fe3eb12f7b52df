// One run of `perceptronctl bench`: a model, streams of load on it, and the report.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "client/ctl/bench/model.h"
#include "client/ctl/bench/options.h"
#include "client/ctl/bench/report.h"
#include "client/ctl/command.h"
#include "client/ctl/output.h"
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

// Threads: one.
class BenchRun {
 public:
  // Both must outlive the run.
  BenchRun(const Globals& globals, const BenchOptions& options)
      : globals_(globals), options_(options), model_(globals, options) {}

  // Returns the exit code.
  int Run();

 private:
  Outcome MakeLoads();
  Outcome RunLoads();
  LoadOptions Options() const;
  std::vector<LoadTimes> Times() const;
  void DrawProgress() const;
  BenchReport MakeReport() const;
  // Seconds so far since the warm-up.
  double Counted() const;

  const Globals& globals_;
  const BenchOptions& options_;
  BenchModel model_;
  // The clock's zero: not all streams are prepared yet.
  LoadClock::time_point start_;
  // Absent: they run.
  std::optional<LoadClock::time_point> ended_;
  std::vector<std::unique_ptr<Load>> loads_;
};

}  // namespace perceptrond::client
