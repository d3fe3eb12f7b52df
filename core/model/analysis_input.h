// What a model retains, laid out for an analysis: the different examples, features numbered alike.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "core/convergence/analysis/analysis.h"
#include "core/model/model.h"

namespace perceptrond {

// Not thread-safe; shares rows with the model, which goes on meanwhile.
class AnalysisInput {
 public:
  // Copies what is retained, at one moment. FAILED_PRECONDITION: NOTHING_RETAINED; NOT_BINARY:
  // it is of several classes; KERNEL_SPACE: it does not learn in the space of its features.
  // O(features retained).
  static absl::StatusOr<AnalysisInput> Make(const Model& model);

  // One a different example. The views hold as long as this does, also when it is moved.
  const std::vector<LabelledRow>& rows() const { return rows_; }
  // Where each comes from: of those that caused updates, the latest update.
  const std::vector<RetainedUpdate>& examples() const { return examples_; }
  // They are all that the model had judged.
  bool complete() const { return complete_; }
  uint64_t revision() const { return revision_; }
  // Indices of rows from here on stand for names without a weight.
  uint32_t first_new() const { return first_new_; }
  const std::vector<std::string>& new_names() const { return new_names_; }

 private:
  void NumberNames(const Model& model, const RetainedExamples& examples);
  void Add(const RetainedUpdate& example, bool named);
  // The row with its features' numbers, ascending.
  Row Numbered(const RetainedRow& row);

  std::vector<LabelledRow> rows_;
  std::vector<RetainedUpdate> examples_;
  bool complete_ = false;
  uint64_t revision_ = 0;
  uint32_t first_new_ = 0;
  std::vector<std::string> new_names_;
  // Of names that had no weight when their examples came: their numbers now.
  absl::flat_hash_map<std::string, uint32_t> numbers_;
  // What rows_ view: a deque's elements stay where they are.
  std::deque<RetainedRow> numbered_;
  // By hash: a place in rows_.
  absl::flat_hash_map<uint64_t, size_t> known_;
};

}  // namespace perceptrond
