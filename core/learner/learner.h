// The interface of a learner: evaluate an example, update on it, save and restore the state.
// core/learner/catalogue.h lists the learners and makes them.
#pragma once

#include <cstddef>
#include <span>

#include "core/learner/capabilities.h"
#include "core/learner/evaluation.h"
#include "core/learner/predictor.h"
#include "core/learner/state.h"
#include "core/vector/row.h"

namespace perceptrond {

class ScoreVectors;

// Weights, and the rule that changes them.
//
//   const Evaluation evaluation = learner.Evaluate(row, target.label);
//   if (evaluation.update && learner.CanUpdate(row, target, evaluation))
//     learner.Update(row, target, evaluation);
//
// Thread contract: const methods may run concurrently with each other; every other method must run
// alone. core/model guards this with one lock.
//
// Every learner keeps to this (tests/core/learner/conformance_test.cc runs over all of them):
//   - const methods change nothing;
//   - the same updates in the same order from the same settings give the same bits, on every
//     machine: no function is called whose last digit a C library may choose;
//   - rows are well formed (core/vector/check.h) and their indices below size().
class Learner {
 public:
  virtual ~Learner() = default;

  // Evaluates an example on the current weights. label is -1 or +1, or the number of a class below
  // max_classes. O(K row.size).
  virtual Evaluation Evaluate(const Row& row, int32_t label) const = 0;
  // CheckRow, for rows of size() features, and Evaluate for the rows of a batch from `first` on, as
  // many as there is room for. Their labels may be anything: for one that the learner cannot learn
  // the evaluation means nothing. Two labels: rules that need no more than the score read each
  // feature once.
  virtual void EvaluateRows(const Batch& batch, size_t first, size_t max_features,
                            std::span<EvaluatedRow> evaluated) const = 0;
  // Whether Update would leave every weight within float32's range. A row's index may stand for
  // several new features of weight 0. O(row.size).
  virtual bool CanUpdate(const Row& row, const Target& target,
                         const Evaluation& evaluation) const = 0;
  // Learns an example. The evaluation must be that of the current weights, call for an update, and
  // pass CanUpdate. O(row.size) unless the banner of the rule or wrapper says otherwise.
  virtual void Update(const Row& row, const Target& target, const Evaluation& evaluation) = 0;

  // Makes room for features up to `size` - 1, with weight 0. Never shrinks.
  virtual void Grow(size_t size) = 0;
  // Features there is room for. O(1).
  virtual size_t size() const = 0;
  // ||theta||^2 of the weights the rule learns with, biases included. O(K).
  virtual double augmented_squared_norm() const = 0;

  // The state, for saving. The view is valid until the next change.
  virtual LearnerStateView State() const = 0;
  // The most arrays that State() can ever have.
  virtual size_t max_arrays() const = 0;
  // Restores what State() returned for a learner with the same settings: the same bits from then
  // on. Returns false and changes nothing if the state has another shape or numbers that are not
  // finite.
  virtual bool Restore(LearnerState state) = 0;

  // The decision function. Valid until the next change.
  virtual const Predictor& predictor() const = 0;

  // The weights it learns with; null: it is not linear.
  virtual const ScoreVectors* score_vectors() const { return nullptr; }
  // Optional capabilities; null: it does not have them.
  virtual BatchLearning* batch_learning() { return nullptr; }
  virtual ReplaceableWeights* replaceable_weights() { return nullptr; }
  virtual const Explainable* explainable() const { return nullptr; }
  virtual const Probabilistic* probabilistic() const { return nullptr; }
};

}  // namespace perceptrond
