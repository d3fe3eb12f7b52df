// The part of a linear rule that every example goes through, compiled into the loop over rows: a
// rule's file says what it is, and no call goes through a table for it.
#pragma once

#include "core/learner/linear.h"

namespace perceptrond {

// Base of class Rule, which has, of a score's signed_score y s,
//   double Loss(double signed_score) const;
//   bool Moves(double signed_score, bool mistake) const;   whether it calls for an update. A
//                                                          mistake always must
// and hides neither in a class derived from it.
template <class Rule>
class LinearRule : public LinearLearner {
 protected:
  using LinearLearner::LinearLearner;

 private:
  void EvaluateScores(std::span<const int32_t> labels,
                      std::span<EvaluatedRow> evaluated) const final {
    const Rule& rule = static_cast<const Rule&>(*this);
    for (size_t i = 0; i < evaluated.size(); ++i) {
      Evaluation& evaluation = evaluated[i].evaluation;
      const double signed_score = labels[i] * evaluation.score;
      const bool mistake = IsMistake(evaluation.score, labels[i], tie_rule());
      evaluation.predicted = PredictByTieRule(evaluation.score, tie_rule());
      evaluation.rival = -1;
      evaluation.mistake = mistake;
      evaluation.update = rule.Moves(signed_score, mistake);
      evaluation.loss = rule.Loss(signed_score);
    }
  }
};

}  // namespace perceptrond
