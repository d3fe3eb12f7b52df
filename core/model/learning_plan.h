// What of learning depends on the kind of a model, decided once when the model is loaded.
#pragma once

#include <optional>

#include "core/learner/decision.h"
#include "core/learner/kernel_perceptron.h"
#include "core/learner/learner.h"
#include "core/settings/settings.h"

namespace perceptrond {

// Immutable.
struct LearningPlan {
  LearningPlan(const ModelSettings& settings, Learner& learner);

  // ||z||^2 of an example in the space that the rule learns in: of the features with the constant
  // input, or of their image under the kernel. squared_norm: of the features.
  double ExampleNorm(double squared_norm) const {
    return kernel.has_value() ? kernel->OfItself(squared_norm) : squared_norm + bias_squared;
  }
  // The augmented norm of the weights, for the margin of a pass; 0, so that a pass gets no margin,
  // for kernels, since what rounding may add to their scores is not bounded, and for votes, which
  // are no product with the weights.
  double WeightNorm(const Learner& learner) const;

  DecisionRule decision;
  // The rule reads Target::age.
  bool counts_examples = false;
  // Rows that lie in the space of the weights are evaluated some at a time (BatchEvaluation).
  bool evaluates_runs = false;
  // The right rows of a run need nothing but to be counted, if all have weight 1.
  bool counts_right_rows = false;
  // Its state has rows of its own: LearnerStateView::rows.
  bool keeps_rows = false;
  // The square of the constant input.
  double bias_squared = 0;
  // Absent: the rule learns in the space of the features.
  std::optional<Kernel> kernel;
};

}  // namespace perceptrond
