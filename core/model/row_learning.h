// How the rows of a message are learned: evaluated under the state's shared lock, one by one or in
// runs; and those that call for an update again, and learned, under the exclusive one.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/convergence/tally.h"
#include "core/learner/learner.h"
#include "core/ledger/segment.h"
#include "core/model/batch_rows.h"
#include "core/model/learning_plan.h"
#include "core/model/model_core.h"
#include "core/vector/check.h"

namespace perceptrond {

// A valid row, evaluated.
struct RowEvaluation {
  Evaluation evaluation;
  // The squared norm of the mapped features.
  double squared_norm = 0;
};

// Where the predictions of evaluated rows go; either may be null.
struct RowPredictions {
  float* scores = nullptr;
  int32_t* labels = nullptr;

  void Set(size_t row, const Evaluation& evaluation) const;
};

// Evaluates the rows of one message, ascending. Not thread-safe.
class RowEvaluator {
 public:
  virtual ~RowEvaluator() = default;

  // Checks row i, and evaluates it on the learner's state if it is valid. Once KeepGoing returned
  // false the result means nothing. O(features).
  virtual ValidationCode Evaluate(const Learner& learner, size_t i, RowEvaluation& result) = 0;
  // Counts rows from i on, at most `most`, that are right and need nothing else, and returns the
  // first that is left. Costs little if it counts none.
  virtual size_t CountRightRows(size_t i, uint64_t /*most*/, const RowPredictions& /*predictions*/,
                                Tally& /*tally*/) {
    return i;
  }
  // The state may have changed: what was evaluated ahead is void.
  virtual void Discard() {}
  // Row i called for an update.
  virtual void OnUpdate(size_t /*i*/) {}
};

// Evaluates some rows at a time where the plan says so and the feature map is the identity; else
// each when it is asked for. `rows` must outlive it.
std::unique_ptr<RowEvaluator> MakeRowEvaluator(const LearningPlan& plan, BatchRows& rows,
                                               size_t max_features);

// The outcome of a row that called for an update when it was first evaluated.
struct RowUpdate {
  // Set: the row cannot be learned, and nothing changed.
  ValidationError error;
  // The work was stopped before the row was evaluated, and nothing changed.
  bool stopped = false;
  // On the state as it was found. If `evaluation.update` is false, nothing changed.
  Evaluation evaluation;
  // Examples evaluated before the row, for rules that count them; else 0.
  uint64_t age = 0;
};

// Learns the rows of one message. Not thread-safe.
class RowUpdater {
 public:
  // Both must outlive it.
  RowUpdater(ModelCore& core, BatchRows& rows) : core_(core), rows_(rows) {}

  // Evaluates row i, which BatchRows found valid, on this state, and updates the state if the rule
  // still calls for it; then it fills `update`, which is new, but for its tally, and notes the
  // update in `tally`. A row may introduce a class, and names, which get weights. The caller holds
  // the state exclusively and has resolved the rows on it. Errors: rows beyond the model's caps
  // (kClassCap, kFeatureCap), and rows that would take a weight out of float32's range
  // (kWeightOverflow).
  RowUpdate Learn(ModelState& state, size_t i, Tally& tally, UpdateRow& update);

 private:
  ValidationError Prepare(ModelState& state, size_t i, const Target& target,
                          const Evaluation& evaluation, Row& mapped, UpdateRow& update);
  // Gives the row's unknown names weights, and maps it again.
  ValidationError AddNames(ModelState& state, size_t i, Row& mapped, UpdateRow& update);
  ValidationError ClassCap() const;
  ValidationError FeatureCap(const ModelState& state, size_t i);
  // Whether weights and names take less than they may. O(classes) at most.
  bool HasRoom(const ModelState& state) const;
  ValidationError MemoryCap() const;
  ValidationError RowCap() const;

  ModelCore& core_;
  BatchRows& rows_;
};

}  // namespace perceptrond
