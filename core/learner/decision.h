// A labelled example before a learner learns it: what the learner says of it, and what it is to
// learn; and from scores to labels, and which labels are mistakes.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "absl/container/inlined_vector.h"
#include "core/learner/settings.h"
#include "core/vector/check.h"

namespace perceptrond {

// How a learner's current weights do on a labelled example.
struct Evaluation {
  // Two labels: the score s = theta . x + bias. Several classes: the margin, which is the score of
  // the example's class less the greatest of the others; infinity if no other class exists.
  double score = 0;
  // The label that the scores predict, by the tie rule; -1 while no class exists.
  int32_t predicted = 0;
  // Several classes: the best-scoring class besides the example's; -1: there is none.
  int32_t rival = -1;
  // The prediction is wrong, by the tie rule.
  bool mistake = false;
  // The rule calls for an update. Every mistake does; some rules also learn from a margin that is
  // too small.
  bool update = false;
  // The rule's own loss.
  double loss = 0;
};

// A row of a batch: checked, and evaluated if it has no error.
struct EvaluatedRow {
  ValidationCode code = ValidationCode::kNone;
  double squared_norm = 0;
  Evaluation evaluation;
};

// What an update is to learn besides the features.
struct Target {
  // -1 or +1, or the number of a class.
  int32_t label = 0;
  // Weight of the example, > 0.
  double weight = 1;
  // Examples that the model evaluated before this one. It is journaled for the learners that read
  // it (CatalogueEntry::counts_examples); the others must not.
  uint64_t age = 0;
};

// Two labels: the one a score predicts, and whether that is a mistake.
inline int32_t PredictLabel(double score, TieRule rule) {
  if (score == 0) return rule == TieRule::kPositive ? 1 : -1;
  return score > 0 ? 1 : -1;
}
inline bool IsMistake(double score, int32_t label, TieRule rule) {
  switch (rule) {
    case TieRule::kMistake:
      return label * score <= 0;
    case TieRule::kPositive:
      return PredictLabel(score, rule) != label;
    case TieRule::kCorrect:
      return label * score < 0;
  }
  return false;
}

// A row's scores by class, for as long as it is evaluated.
using ClassScores = absl::InlinedVector<double, 32>;

// Several classes: the one with the greatest score, the lowest of equals; `except` and those with
// the score NaN, which do not exist yet, are left out. -1: there is none. O(classes).
inline int32_t GreatestScore(std::span<const double> scores, int32_t except = -1) {
  int32_t greatest = -1;
  for (size_t k = 0; k < scores.size(); ++k) {
    const auto number = static_cast<int32_t>(k);
    if (number == except || std::isnan(scores[k])) continue;
    if (greatest < 0 || scores[k] > scores[static_cast<size_t>(greatest)]) greatest = number;
  }
  return greatest;
}
// Whether `predicted` is a mistake for an example of class `label` with this margin.
inline bool IsClassMistake(double margin, int32_t predicted, int32_t label, TieRule rule) {
  switch (rule) {
    case TieRule::kMistake:
      return margin <= 0;
    case TieRule::kPositive:
      return predicted != label;
    case TieRule::kCorrect:
      return margin < 0;
  }
  return false;
}

// What a model's scores mean, of two labels or of several classes. A plain value.
struct DecisionRule {
  bool is_multiclass = false;
  TieRule tie_rule = TieRule::kMistake;

  // The label that a row's K scores predict; -1 if no class exists. O(K).
  int32_t Label(std::span<const double> scores) const {
    return is_multiclass ? GreatestScore(scores) : PredictLabel(scores[0], tie_rule);
  }
  // What is predicted where no label is: before the first example, and for refused rows.
  int32_t no_label() const { return is_multiclass ? -1 : 0; }
  // The sign of an example's margin in Evaluation::score, which is the margin for several classes.
  int32_t MarginSign(int32_t label) const { return is_multiclass ? 1 : label; }
  // Evaluates an example of label or class `label`, which need not exist yet, by its row's K
  // scores: everything but the update and the loss, which are the rule's. O(K).
  Evaluation Evaluate(std::span<const double> scores, int32_t label) const;
};

inline Evaluation DecisionRule::Evaluate(std::span<const double> scores, int32_t label) const {
  Evaluation evaluation;
  evaluation.predicted = Label(scores);
  if (!is_multiclass) {
    evaluation.score = scores[0];
    evaluation.mistake = IsMistake(scores[0], label, tie_rule);
    return evaluation;
  }
  evaluation.rival = GreatestScore(scores, label);
  const auto k = static_cast<size_t>(label);
  const bool exists = k < scores.size() && !std::isnan(scores[k]);
  evaluation.score = evaluation.rival < 0
                         ? std::numeric_limits<double>::infinity()
                         : (exists ? scores[k] : 0) - scores[static_cast<size_t>(evaluation.rival)];
  evaluation.mistake =
      !exists || IsClassMistake(evaluation.score, evaluation.predicted, label, tie_rule);
  return evaluation;
}

}  // namespace perceptrond
