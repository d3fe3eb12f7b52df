// What some learners can do and others cannot: an interface each, found through Learner's
// accessors. Their thread contract is Learner's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/learner/evaluation.h"
#include "core/vector/row.h"

namespace perceptrond {

// Learners whose weights change at the end of a batch of examples instead of at each mistake.
class BatchLearning {
 public:
  virtual ~BatchLearning() = default;
  // Whether the current batch has mistakes that the weights do not have yet. O(1).
  virtual bool IsPending() const = 0;
  // Whether it is pending and has reached its size once the model has evaluated `age` examples.
  // O(1).
  virtual bool IsFull(uint64_t age) const = 0;
  // Applies the batch to the weights: an update without an example. Must be pending.
  virtual void EndBatch() = 0;
};

// The weights of one score: of features, whose indices must be below size(), and of the constant
// input.
struct ReplacementVector {
  Row weights;
  float bias_weight = 0;
};

// Learners whose weights can be replaced by others.
class ReplaceableWeights {
 public:
  virtual ~ReplaceableWeights() = default;
  // Replaces the weights of score k by vectors[k], and all that are not listed by 0. No more
  // vectors than scores. What the learner remembers about how its weights performed begins anew
  // after `age` evaluated examples. O(K size()).
  virtual void ReplaceWeights(std::span<const ReplacementVector> vectors, uint64_t age) = 0;
};

// An update as a model retains it: the example, its target, and its score before.
struct PastUpdate {
  Row row;
  Target target;
  double score = 0;
};

// An example that a learner keeps, and its part of a score.
struct SupportExample {
  // Updates made after its own.
  uint64_t updates_since = 0;
  int32_t label = 0;
  // K(x_i, x).
  double kernel = 0;
  double dual_coefficient = 0;
};

// Learners whose scores are sums over features, or over the examples that they learned from.
class Explainable {
 public:
  virtual ~Explainable() = default;
  // What a feature of value 1 adds to score k; the score of a row is that of an empty row plus the
  // sum of these. Absent: scores are no sum over features. The index must be below size(). O(1).
  virtual std::optional<double> FeatureWeight(size_t k, uint32_t index, uint64_t age) const = 0;
  // How much of a past update's (x_i, b) the prediction weights contain. With two labels the score
  // of a row is that of the starting weights, or of those put in by ReplaceWeights, plus the sum of
  // this times x_i . x + b^2 over the updates since then, up to float32's rounding. Absent: not
  // known. O(row.size).
  virtual std::optional<double> DualCoefficient(const PastUpdate& update, uint64_t age) const = 0;
  // The examples that the learner keeps, oldest first: their contributions add up to the row's
  // score. Empty if it keeps none. Costs as much as a score.
  virtual std::vector<SupportExample> SupportExamples(const Row& row) const = 0;
};

// Learners whose scores stand for probabilities.
class Probabilistic {
 public:
  virtual ~Probabilistic() = default;
  // Replaces a row's K scores by probabilities: of +1 with two labels, else of each class. NaN
  // stays NaN. O(K).
  virtual void ToProbabilities(std::span<double> scores) const = 0;
};

}  // namespace perceptrond
