// Settings under which what a rule keeps fills up, goes and turns over within a few examples.
#pragma once

#include "core/learner/catalogue.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond::testing {

inline uint16_t OptionsOf(::perceptron::v1::LearnerKind kind) {
  return FindLearner(static_cast<LearnerKind>(kind - 1)).options;
}

// Whether the rule keeps anything that could be so little.
inline bool CanBeTight(uint16_t options) {
  return (options & (kTakesMiniBatch | kTakesBudget | kTakesRatchet)) != 0;
}

// So little that batches end and rows go; another kernel than the default.
inline void Tighten(::perceptron::v1::Learner& learner) {
  const uint16_t options = OptionsOf(learner.kind());
  if ((options & kTakesMiniBatch) != 0) learner.set_mini_batch(5);
  if ((options & kTakesBudget) != 0) learner.set_budget(4);
  if ((options & kTakesRatchet) != 0) learner.set_ratchet_examples(6);
  if ((options & kTakesKernel) != 0) learner.mutable_kernel()->mutable_polynomial()->set_degree(3);
}

}  // namespace perceptrond::testing
