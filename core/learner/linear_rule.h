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
  void JudgeScores(std::span<const int32_t> labels, std::span<JudgedRow> judged) const final {
    const Rule& rule = static_cast<const Rule&>(*this);
    for (size_t i = 0; i < judged.size(); ++i) {
      Judgement& judgement = judged[i].judgement;
      const double signed_score = labels[i] * judgement.score;
      const bool mistake = IsMistake(judgement.score, labels[i], tie_rule());
      judgement.predicted = PredictByTieRule(judgement.score, tie_rule());
      judgement.rival = -1;
      judgement.mistake = mistake;
      judgement.update = rule.Moves(signed_score, mistake);
      judgement.loss = rule.Loss(signed_score);
    }
  }
};

}  // namespace perceptrond
