// One run of `perceptronctl learn`: passes over the input, pushed to the server, and their summary.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/ctl/analysis_flags.h"
#include "client/ctl/command.h"
#include "client/ctl/complaints.h"
#include "client/ctl/connectivity.h"
#include "client/ctl/input.h"
#include "client/ctl/learn_summary.h"
#include "client/ctl/output.h"
#include "client/ctl/producer_lease.h"
#include "client/ctl/progress.h"
#include "client/learn_stream.h"

namespace perceptrond::client {

struct LearnRunOptions {
  std::string name;
  InputOptions input;
  // Default 1, or with until_converged 1000.
  std::optional<int64_t> passes;
  bool until_converged = false;
  bool analyze = false;
  AnalysisFlags analysis_limits;
  size_t batch = 512;
  size_t window = 64;
  std::string producer;
  bool unnumbered = false;
  std::optional<int64_t> start_offset;
  std::optional<int64_t> passes_before;
};

// Threads: one.
class LearnRun {
 public:
  // Both must outlive the run.
  LearnRun(const Globals& globals, const LearnRunOptions& options)
      : globals_(globals), options_(options), client_(globals.Connect()) {}

  // Returns the exit code.
  int Run();

 private:
  std::string Doing() const;
  int64_t MostPasses() const;
  LearnOptions StreamOptions();

  // Model, input, stream.
  Outcome Open();
  Outcome LearnPasses();
  Outcome LearnPass(int64_t pass);
  Outcome PushAll(int64_t pass);
  Outcome MarkPass(int64_t pass);
  Outcome Finish(Outcome outcome);
  Outcome StreamFailed(const absl::Status& status) const;

  void TakeAnswer(const LearnAnswer& answer);
  void DrawProgress(int64_t pass);
  void Summarize(const Outcome& outcome);
  // Of what was learned, behind the summary of a run that went well.
  Outcome Analyze();

  const Globals& globals_;
  const LearnRunOptions& options_;
  const Client client_;
  std::unique_ptr<Input> input_;
  std::unique_ptr<ProducerLease> lease_;
  LearnSummary summary_;
  Complaints complaints_{options_.input.skip_bad_lines};
  Connectivity connectivity_;
  absl::Time started_;
  DrawPace pace_;
  // Last: its thread calls back into all of the above.
  std::unique_ptr<LearnStream> stream_;
};

}  // namespace perceptrond::client
