// What of learning and predicting depends on the kind of a model, decided once when the model is
// loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/learner/kernel_perceptron.h"
#include "core/learner/learner.h"
#include "core/settings/settings.h"

namespace perceptrond {

class BatchRows;
class Ledger;
class RowEvaluator;

// ||z||^2 of examples in the space that the rule learns in: of the features with the constant
// input, or of their image under the kernel. Immutable.
class ExampleNorm {
 public:
  explicit ExampleNorm(const LearnerSettings& settings);
  // squared_norm: of the features.
  double Squared(double squared_norm) const { return squared_(*this, squared_norm); }

 private:
  double (*squared_)(const ExampleNorm&, double);
  // The square of the constant input.
  double bias_squared_;
  Kernel kernel_;
};

// Immutable. The functions are never null.
struct LearningPlan {
  explicit LearningPlan(const ModelSettings& settings);

  // Examples evaluated so far, for rules that count them; absent for others.
  std::optional<uint64_t> (*age)(Ledger& ledger);
  // Examples evaluated so far, for rules that learn from batches of examples; 0 for others.
  uint64_t (*batch_age)(Ledger& ledger);
  // Whether the learner, after `age` examples, has a full batch to learn from. False for rules that
  // learn from each example.
  bool (*batch_is_full)(Learner& learner, uint64_t age);
  // Whether the unfinished batch has mistakes that the weights do not have yet. False as above.
  bool (*batch_is_pending)(Learner& learner);
  // The sign of an example's margin in its score: the label, or 1 where the score is the margin.
  int32_t (*margin_sign)(int32_t label);
  // The augmented norm of the weights, for the margin of a pass; 0 for kernels: what rounding may
  // add to their scores is not bounded, so that a pass gets no margin.
  double (*weight_norm)(const Learner& learner);
  // How the rows of a batch are evaluated: one by one, or in runs where they lie in the space of
  // the weights as they are.
  std::unique_ptr<RowEvaluator> (*make_evaluator)(const LearningPlan& plan, BatchRows& rows,
                                                  size_t max_features);
  // Whether the right rows of a run need nothing but to be counted, if all have weight 1.
  bool counts_right_rows = false;
  // The prediction before the first example, and for rows with errors.
  int32_t no_prediction = 0;
  ExampleNorm norm;
};

}  // namespace perceptrond
