// How one row is learned, under the exclusive lock of the state.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/learner/learner.h"
#include "core/model/batch_rows.h"
#include "core/model/model_core.h"
#include "core/model/segment.h"
#include "core/vector/check.h"

namespace perceptrond {

// The outcome of a row that called for an update when it was first evaluated.
struct RowUpdate {
  // Set: the row cannot be learned, and nothing changed.
  ValidationError error;
  // On the state as it was found. If `evaluation.update` is false, nothing changed.
  Evaluation evaluation;
  // Examples evaluated before the row, for rules that count them; else 0.
  uint64_t age = 0;
  // With evaluation.update and no error: the update, but for the counts of its tally.
  UpdateRow update;
};

// Learns the rows of one message. Not thread-safe.
class RowUpdater {
 public:
  // Both must outlive it.
  RowUpdater(ModelCore& core, BatchRows& rows) : core_(core), rows_(rows) {}

  // Evaluates row i, which BatchRows found valid, on this state, and updates the state if the rule
  // still calls for it. A row may introduce a class, and names, which get weights. The caller holds
  // the state exclusively and has resolved the rows on it. Refused are rows beyond the model's caps
  // (kClassCap, kFeatureCap), and those that would take a weight out of float32's range
  // (kWeightOverflow).
  RowUpdate Learn(ModelState& state, size_t i);

 private:
  ValidationError Prepare(ModelState& state, size_t i, const Target& target,
                          const Evaluation& evaluation, Row& mapped, UpdateRow& update);
  // Gives the row's unknown names weights, and maps it again.
  ValidationError AddNames(ModelState& state, size_t i, Row& mapped, UpdateRow& update);
  ValidationError ClassCap() const;
  ValidationError FeatureCap(const ModelState& state) const;

  ModelCore& core_;
  BatchRows& rows_;
  // Names of one row without a weight.
  std::vector<absl::string_view> unknown_;
};

}  // namespace perceptrond
