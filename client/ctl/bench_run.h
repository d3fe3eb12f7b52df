// One run of `perceptronctl bench`: a model, streams of load on it, and what they came to.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/client.h"
#include "client/ctl/bench_report.h"
#include "client/ctl/command.h"
#include "client/ctl/output.h"
#include "client/load/load.h"

namespace perceptrond::client {

struct BenchOptions {
  // Empty: a model made for the run, and deleted after it.
  std::string name;
  std::string work = "learn";
  size_t streams = 1;
  // Examples a second of all streams together; 0: as many as may be.
  double rate = 0;
  // Default 100, of calls 1.
  std::optional<size_t> batch;
  size_t window = 64;
  double seconds = 10;
  double warmup = 1;
  uint32_t features = 75;
  // Of the model made for the run.
  uint32_t size = 1U << 20;
  bool dense = false;
  double mistakes = 0;
  double refused = 0;
  uint32_t seed = 1;
};

// Threads: one.
class BenchRun {
 public:
  // Both must outlive the run.
  BenchRun(const Globals& globals, const BenchOptions& options)
      : globals_(globals), options_(options), client_(globals.Connect()) {}

  // Returns the exit code.
  int Run();

 private:
  LoadOptions::Work Work() const;
  size_t Batch() const;
  // Which model, and the shape of its examples.
  Outcome FindModel();
  Outcome ReadShape(const v1::Model& model);
  Outcome MakeLoads();
  Outcome MakeModel();
  Outcome RunLoads();
  // If it was made.
  void DeleteModel();
  LoadOptions Options() const;
  std::vector<LoadTimes> Times() const;
  void DrawProgress() const;
  BenchReport MakeReport() const;
  // Seconds so far since the warm-up.
  double Counted() const;

  const Globals& globals_;
  const BenchOptions& options_;
  const Client client_;
  std::string model_;
  MadeRowsOptions shape_;
  // The clock's zero: not all streams are prepared yet.
  LoadClock::time_point start_;
  // Absent: they run.
  std::optional<LoadClock::time_point> ended_;
  std::vector<std::unique_ptr<Load>> loads_;
};

}  // namespace perceptrond::client
