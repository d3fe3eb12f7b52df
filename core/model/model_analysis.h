// The margin analysis of a model's stored examples.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "core/convergence/analysis/analysis.h"
#include "core/model/model.h"
#include "core/model/views.h"

namespace perceptrond {

// Shares rows with the model, which learns on. Not thread-safe.
class AnalysisInput {
 public:
  // Copies the stored examples of one moment. FAILED_PRECONDITION: NOTHING_STORED; KERNEL_SPACE:
  // the model does not learn in the space of its features. StoppedError. O(features stored).
  static absl::StatusOr<AnalysisInput> Make(const Model& model);

  // One a distinct example; of several classes the label is a position in classes(). The views are
  // valid as long as this lives, also after a move.
  const std::vector<LabelledRow>& rows() const { return rows_; }
  // The example of each row: the example's latest update, if it caused any.
  const std::vector<StoredUpdate>& examples() const { return examples_; }
  // The classes that the model has, by number, ascending; empty with two labels.
  const std::vector<int32_t>& classes() const { return classes_; }
  // The rows are all examples that the model had evaluated.
  bool complete() const { return complete_; }
  uint64_t revision() const { return revision_; }
  // Indices from here on stand for new_names.
  uint32_t first_new() const { return first_new_; }
  // Names without a weight.
  const std::vector<std::string>& new_names() const { return new_names_; }

 private:
  void CollectClasses(const ModelReader& reader, const StoredExamplesCopy& examples);
  int32_t LabelOf(const StoredRow& row) const;
  void NumberNames(const Model& model, const StoredExamplesCopy& examples);
  void Add(const StoredUpdate& example, bool named);
  // The row with the numbers of its features, ascending.
  Row Numbered(const StoredRow& row);

  std::vector<LabelledRow> rows_;
  std::vector<StoredUpdate> examples_;
  std::vector<int32_t> classes_;
  bool complete_ = false;
  uint64_t revision_ = 0;
  uint32_t first_new_ = 0;
  std::vector<std::string> new_names_;
  // The current numbers of names that had no weight when their examples came.
  absl::flat_hash_map<std::string, uint32_t> numbers_;
  // What rows_ view. A deque does not move its elements.
  std::deque<StoredRow> numbered_;
  // Positions in rows_, by hash.
  absl::flat_hash_map<uint64_t, size_t> known_;
};

struct ModelAnalysis {
  AnalysisInput input;
  // Examples of support and certificate are positions in input.rows() and input.examples(); their
  // rival is the model's number of it. The separator has a vector for each of
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
// was proven, also by options.deadline, is in the model's ledger on return, and durable once a
// commit submitted after that is written; measuring the separator after the deadline takes as long
// as two or three rounds. Does not delay learning. On an error nothing was added to the ledger:
// FAILED_PRECONDITION: see AnalysisInput::Make, and ANALYSIS_TOO_LARGE for more weights than
// options.max_weights. CANCELLED; StoppedError.
absl::StatusOr<ModelAnalysis> AnalyzeModel(Model& model, AnalysisOptions options,
                                           ModelAnalysisCallback keep_going);

}  // namespace perceptrond
