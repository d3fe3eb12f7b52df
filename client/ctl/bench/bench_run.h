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

// The threads of a bench, one per load: they prepare, wait for each other, and start together.
// Threads: one.
class BenchStreams {
 public:
  // Starts to prepare the loads, which must outlive this.
  explicit BenchStreams(const std::vector<std::unique_ptr<Load>>* loads);
  // Waits for all threads to end. Loads that were not started do not run.
  ~BenchStreams();

  // Waits for at most `time` until all are prepared or one has failed; whether that is so.
  bool WaitPrepared(LoadClock::duration time) ABSL_LOCKS_EXCLUDED(mutex_);
  // Starts the loads. Call when all are prepared.
  void Start(const std::vector<LoadTimes>& times) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for at most `time` until all have ended or one has failed; whether that is so.
  bool WaitEnded(LoadClock::duration time) ABSL_LOCKS_EXCLUDED(mutex_);
  // The first failure; OK if there is none.
  absl::Status failure() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void RunOne(size_t i) ABSL_LOCKS_EXCLUDED(mutex_);
  // The times of load i; absent: do not run it.
  std::optional<LoadTimes> WaitForStart(size_t i) ABSL_LOCKS_EXCLUDED(mutex_);
  // Decrements *count and records a failure.
  void CountDown(absl::Status status, size_t* count) ABSL_LOCKS_EXCLUDED(mutex_);

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
  // Both arguments must outlive the run.
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
  // Measured seconds so far, warm-up excluded.
  double MeasuredSeconds() const;

  const Globals& globals_;
  const BenchOptions& options_;
  BenchModel model_;
  // Start of the load; zero until all streams are prepared.
  LoadClock::time_point start_;
  // End of the load; absent while it runs.
  std::optional<LoadClock::time_point> ended_;
  std::vector<std::unique_ptr<Load>> loads_;
};

}  // namespace perceptrond::client
