// Predictions of a model of several classes: the winner, and on request every class.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/learner/learner.h"
#include "core/model/model.h"

namespace perceptrond {

// Of one batch. Keeps references to what it is given. Not thread-safe.
class ClassPredictions {
 public:
  // age: examples evaluated. per_norm: 1 / ||W||, or 0 while the weights are zero.
  ClassPredictions(const Learner& learner, uint64_t age, double per_norm, bool include_class_scores,
                   PredictOutcome& outcome)
      : predictor_(learner.predictor()),
        probabilistic_(learner.probabilistic()),
        age_(age),
        per_norm_(per_norm),
        all_scores_(include_class_scores),
        outcome_(outcome),
        scores_(predictor_.scores()) {}

  // Allocates the outcome of `rows` rows, all of them refused so far. INVALID_ARGUMENT
  // (TOO_MANY_SCORES).
  absl::Status Begin(size_t rows);
  // Predicts row i. O(classes x row.size).
  void Predict(size_t i, const Row& row);

 private:
  void SetProbabilities(size_t i, int32_t winner);
  void CopyScores(size_t i, std::vector<float>& all) const;

  const Predictor& predictor_;
  // Null: there are no probabilities.
  const Probabilistic* const probabilistic_;
  const uint64_t age_;
  const double per_norm_;
  const bool all_scores_;
  PredictOutcome& outcome_;
  std::vector<double> scores_;
};

}  // namespace perceptrond
