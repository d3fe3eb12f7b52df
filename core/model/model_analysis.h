// The margin analysis of a model's stored examples.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/convergence/analysis/analysis.h"
#include "core/model/analysis_input.h"
#include "core/model/model.h"
#include "core/model/replace_weights.h"

namespace perceptrond {

struct ModelAnalysis {
  AnalysisInput input;
  // Examples of support and certificate are positions in input.rows() and input.examples(); their
  // other_class is the model's number of it. The separator has a vector for each of
  // input.classes().
  Analysis analysis;
  // The entry in the model's report.
  ::perceptron::v1::Analysis record;
  // The separator as weights of the model, scaled so that the least margin over the examples (y s,
  // or of several classes s_y less the best other score) is 1 but for rounding. Absent if there is
  // none.
  std::optional<NewWeights> separator;
  // A margin that exactly these float32 numbers attain.
  double separator_margin = 0;
};

struct ModelAnalysisProgress {
  // Distinct examples.
  size_t examples = 0;
  AnalysisProgress progress;
};

// Called on the analyzing thread. Returns false to cancel.
using ModelAnalysisCallback = absl::FunctionRef<bool(const ModelAnalysisProgress&)>;

// Analyzes the stored examples; options.bias_input and options.classes are set to the model's. What
// was proven is in the model's ledger on return, and durable once a commit is that is submitted
// after that. Does not delay learning. On an error nothing was added to the ledger:
// FAILED_PRECONDITION: see AnalysisInput::Make, and ANALYSIS_TOO_LARGE for more weights than
// options.max_weights. CANCELLED.
absl::StatusOr<ModelAnalysis> AnalyzeModel(Model& model, AnalysisOptions options,
                                           ModelAnalysisCallback keep_going);

}  // namespace perceptrond
