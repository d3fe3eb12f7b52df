// The margin analysis of what a model retains: taken from it, solved beside it, reported to it.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/convergence/analysis/analysis.h"
#include "core/model/analysis_input.h"
#include "core/model/model.h"

namespace perceptrond {

struct ModelAnalysis {
  AnalysisInput input;
  // Rows of support and certificate are places in input.rows() and input.examples().
  Analysis analysis;
  // What the model's report says of it.
  ::perceptron::v1::Analysis record;
  // The separator in the model's form, the least y s over the examples scaled to 1 but for
  // rounding; and a margin that exactly these float32 numbers attain. Absent if there is none.
  std::optional<NewWeights> separator;
  double separator_margin = 0;
};

struct ModelAnalysisProgress {
  // Different examples.
  size_t examples = 0;
  AnalysisProgress progress;
};

// Called on the thread that analyzes. False cancels.
using ModelAnalysisCallback = absl::FunctionRef<bool(const ModelAnalysisProgress&)>;

// Analyzes; options.offset_value is the model's. What was proven is in the model's books when it
// returns, and durable once a commit submitted after that is. FAILED_PRECONDITION: see
// AnalysisInput; CANCELLED, and nothing is reported. Learning goes on meanwhile.
absl::StatusOr<ModelAnalysis> AnalyzeModel(Model& model, AnalysisOptions options,
                                           ModelAnalysisCallback keep_going);

}  // namespace perceptrond
