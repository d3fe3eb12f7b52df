// What a model of several classes answers, row by row: the winner, and on request every class.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/learner/learner.h"
#include "core/model/model.h"

namespace perceptrond {

// For one batch. Not thread-safe; holds references of what it was given.
class ClassAnswers {
 public:
  // After `age` judged examples; per_norm is 1 / ||W||, or 0.
  ClassAnswers(const Learner& learner, uint64_t age, double per_norm, bool all_scores,
               PredictOutcome& outcome)
      : predictor_(learner.predictor()),
        probabilistic_(learner.probabilistic()),
        age_(age),
        per_norm_(per_norm),
        all_scores_(all_scores),
        outcome_(outcome),
        scores_(predictor_.scores()) {}

  // Makes room for the answers of so many rows, all of them refused as yet. INVALID_ARGUMENT,
  // TOO_MANY_SCORES.
  absl::Status Begin(size_t rows);
  // Answers row i. O(classes x row.size).
  void Answer(size_t i, const Row& row);

 private:
  void AnswerProbabilities(size_t i, int32_t winner);
  void Keep(size_t i, std::vector<float>& all) const;

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
