// The passive-aggressive family of several classes: as little change as makes the example's class
// win with margin 1.
//
//   predict   the k of the greatest s_k = w_k . x + w_kb b
//   loss      l = max(0, 1 - m), m = s_y - s_r, r the best class but y
//   update    if l > 0:  w_y += t (x, b),  w_r -= t (x, b),  with N = 2 (||x||^2 + b^2) and
//               PA      t = l / N
//               PA-I    t = min(c C, l / N)
//               PA-II   t = l / (N + 1 / (2 c C))     (c: the example's weight; C: aggressiveness)
//   bound     the two-class ones with 2 R^2 for R^2: if some W has m >= 1 everywhere, the sum of
//   l^2
//             is at most 2 ||W||^2 R^2
//   source    Crammer, Dekel, Keshet, Shalev-Shwartz, Singer: Online Passive-Aggressive Algorithms,
//             JMLR 7, 2006: section 8, with one relevant label and the best irrelevant one
#pragma once

#include "core/learner/multiclass_linear.h"

namespace perceptrond {

class MulticlassPassiveAggressive final : public MulticlassLinear {
 public:
  // settings.kind says which of the three.
  MulticlassPassiveAggressive(const LearnerSettings& settings, size_t size)
      : MulticlassLinear(settings, size),
        kind_(settings.kind),
        aggressiveness_(settings.aggressiveness) {}

 protected:
  double Loss(double margin) const override { return margin < 1 ? 1 - margin : 0; }
  bool Moves(double margin, bool /*mistake*/) const override { return margin < 1; }
  double Step(const Row& row, const Target& target, const Evaluation& evaluation) const override;

 private:
  const LearnerKind kind_;
  const double aggressiveness_;
};

}  // namespace perceptrond
