// One run of `perceptronctl learn`: sends the input to the server, pass by pass, and sums up.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/ctl/analysis.h"
#include "client/ctl/command.h"
#include "client/ctl/commands/learn_summary.h"
#include "client/ctl/commands/producer_lease.h"
#include "client/ctl/input.h"
#include "client/ctl/interrupt.h"
#include "client/ctl/output.h"
#include "client/ctl/terminal.h"
#include "client/learn_stream.h"

namespace perceptrond::client {

struct LearnRunOptions {
  std::string name;
  InputOptions input;
  // Default 1, with until_converged 1000.
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
  std::string ErrorPrefix() const;
  int64_t MostPasses() const;
  LearnOptions StreamOptions();

  // Opens the model, the input and the stream.
  Outcome Open();
  Outcome LearnPasses();
  Outcome LearnPass(int64_t pass);
  Outcome PushAll(int64_t pass);
  Outcome MarkPass(int64_t pass);
  Outcome Finish(Outcome outcome);
  Outcome StreamFailed(const absl::Status& status) const;

  void OnAnswer(const LearnAnswer& answer);
  void DrawProgress(int64_t pass);
  void Summarize(const Outcome& outcome);
  // Analyzes the retained examples after a successful run.
  Outcome Analyze();

  const Globals& globals_;
  const LearnRunOptions& options_;
  const Client client_;
  std::unique_ptr<Input> input_;
  std::unique_ptr<ProducerLease> lease_;
  LearnSummary summary_;
  RowErrors row_errors_{options_.input.skip_bad_lines};
  Connectivity connectivity_;
  absl::Time started_;
  RedrawTimer redraw_timer_;
  // Declared last: its thread calls back into the members above.
  std::unique_ptr<LearnStream> stream_;
};

}  // namespace perceptrond::client
