// How the rows of a message are evaluated: one by one, or in runs.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/convergence/tally.h"
#include "core/learner/learner.h"
#include "core/model/batch_rows.h"
#include "core/model/learning_plan.h"

namespace perceptrond {

// A valid row, evaluated.
struct RowEvaluation {
  Evaluation evaluation;
  // Of the mapped features.
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

  // Checks row i, and evaluates it on the learner's state if it is valid. O(features).
  virtual ValidationCode Evaluate(const Learner& learner, size_t i, RowEvaluation& result) = 0;
  // Counts rows from i on that are right and need nothing else, and returns the first that is left.
  // Costs little if it counts none.
  virtual size_t CountRightRows(size_t i, const RowPredictions& /*predictions*/, Tally& /*tally*/) {
    return i;
  }
  // The state may have changed: what was evaluated ahead is void.
  virtual void Discard() {}
  // Row i called for an update.
  virtual void OnUpdate(size_t /*i*/) {}
};

// Evaluates each row when it is asked for. `rows` must outlive it.
std::unique_ptr<RowEvaluator> MakeRowEvaluator(const LearningPlan& plan, BatchRows& rows,
                                               size_t max_features);
// Evaluates some rows at a time where they lie in the space of the weights as they are, so that
// their weights are fetched together (Learner::EvaluateRows); else as above. Not for several
// classes.
std::unique_ptr<RowEvaluator> MakeRunEvaluator(const LearningPlan& plan, BatchRows& rows,
                                               size_t max_features);

}  // namespace perceptrond
