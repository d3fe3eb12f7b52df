// One run of `perceptronctl bench`: a model, streams of load on it, and what they came to.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "client/ctl/bench_model.h"
#include "client/ctl/bench_options.h"
#include "client/ctl/bench_report.h"
#include "client/ctl/command.h"
#include "client/ctl/output.h"
#include "client/load/load.h"

namespace perceptrond::client {

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
