// One run of `perceptronctl predict`: rows of the input pushed to the server, a line for each
// answer, and their summary.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/ctl/command.h"
#include "client/ctl/complaints.h"
#include "client/ctl/connectivity.h"
#include "client/ctl/input.h"
#include "client/ctl/output.h"
#include "client/ctl/predict_summary.h"
#include "client/ctl/progress.h"
#include "client/predict_stream.h"

namespace perceptrond::client {

struct PredictRunOptions {
  std::string name;
  InputOptions input;
  bool summary_only = false;
  bool all_scores = false;
  int64_t min_revision = 0;
  size_t batch = 512;
};

// Answers come on the stream's thread, and only there is anything counted or printed until the
// stream has ended. Threads: one.
class PredictRun {
 public:
  // Both must outlive the run.
  PredictRun(const Globals& globals, const PredictRunOptions& options)
      : globals_(globals), options_(options), client_(globals.Connect()) {}

  // Returns the exit code.
  int Run();

 private:
  std::string Doing() const;
  PredictOptions StreamOptions();

  // Model, input, stream.
  Outcome Open();
  Outcome PushAll();
  Outcome Finish(Outcome outcome);
  Outcome StreamFailed(const absl::Status& status) const;

  void TakeAnswer(const PredictAnswer& answer);
  // Counts it, and prints its line.
  void TakeRow(const v1::PredictResponse& response, int row, const v1::RowError* error,
               uint64_t tag);
  void DrawProgress();
  void Summarize(const Outcome& outcome);
  // The number of the row's class, if it has one.
  int ActualLabel(const Row& row);
  // Takes over the names of the model's classes.
  void TakeNames(const v1::Model& model);

  const Globals& globals_;
  const PredictRunOptions& options_;
  const Client client_;
  std::unique_ptr<Input> input_;
  PredictSummary summary_;
  Complaints complaints_{options_.input.skip_bad_lines};
  Connectivity connectivity_;
  bool several_classes_ = false;
  // As they were when the run began.
  absl::flat_hash_map<std::string, int> class_numbers_;
  // Read while answers come; everything else about them is in summary_.
  std::atomic<uint64_t> answered_ = 0;
  absl::Time started_;
  DrawPace pace_;
  // Last: its thread calls back into all of the above.
  std::unique_ptr<PredictStream> stream_;
};

}  // namespace perceptrond::client
