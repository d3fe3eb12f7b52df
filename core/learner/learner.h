// The interface of an update rule. One rule a file; core/learner/catalogue.h lists them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/vector/row.h"

namespace perceptrond {

// What a learner thinks of a labelled example before learning it.
struct Judgement {
  // s = theta . x + offset.
  double score = 0;
  // The label the score predicts, by the tie rule.
  int32_t predicted = 0;
  // The rule calls for an update.
  bool mistake = false;
};

// Everything that makes up a learner's state, in the learner's own fixed order.
struct LearnerState {
  std::vector<std::vector<float>> arrays;
  std::vector<double> scalars;
};

// The same, seen where it lies.
struct LearnerStateView {
  std::vector<std::span<const float>> arrays;
  std::vector<double> scalars;
};

// Holds weights and the rule that changes them.
//
// Thread contract: const methods may run at once with each other; every other method excludes
// everything. core/model sees to that with one lock.
//
// Contract of every learner (tests/core/learner/conformance_test.cc runs over the whole catalogue):
//   - Judge, Score and Predict change nothing;
//   - Update is called only with the judgement of this very state, and only if it is a mistake;
//   - the same updates in the same order from the same settings give the same bits, on every
//   machine;
//   - rows are well formed (core/vector/check.h) and their indices below weights().size().
class Learner {
 public:
  virtual ~Learner() = default;

  // O(row.size).
  virtual double Score(const Row& row) const = 0;
  // The label a score stands for. O(1).
  virtual int32_t Predict(double score) const = 0;
  // Whether (row, label) is a mistake on this state. label is -1 or +1. O(row.size).
  virtual Judgement Judge(const Row& row, int32_t label) const = 0;
  // Whether Update would leave every weight within float32's range. A row's index may stand for
  // several new features of weight 0. O(row.size).
  virtual bool CanUpdate(const Row& row, int32_t label, const Judgement& judgement) const = 0;
  // Learns from a mistake that CanUpdate allows. O(row.size).
  virtual void Update(const Row& row, int32_t label, const Judgement& judgement) = 0;

  // Makes room for features up to `size` - 1, with weight 0. Never shrinks.
  virtual void Grow(size_t size) = 0;
  // The linear weights, by feature.
  virtual std::span<const float> weights() const = 0;
  // The constant in the score.
  virtual double offset() const = 0;
  // ||theta||^2 of the weights alone, and with the offset's weight among them (augmented). O(1).
  virtual double squared_norm() const = 0;
  virtual double augmented_squared_norm() const = 0;

  // For saving. The view holds until the next change.
  virtual LearnerStateView State() const = 0;
  // Takes a state that State() gave, of a learner with the same settings: the same bits from then
  // on. False, and nothing changed, if the state has another shape.
  virtual bool Restore(LearnerState state) = 0;
};

}  // namespace perceptrond
