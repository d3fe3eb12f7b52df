// The passive-aggressive family: as little change as makes the example right with margin 1.
//
//   predict   sign(s), s = w . x + w_b b
//   loss      l = max(0, 1 - y s), the hinge
//   update    if l > 0:  w += t y x,  w_b += t y b,  with N = ||x||^2 + b^2 and
//               PA      t = l / N
//               PA-I    t = min(c C, l / N)
//               PA-II   t = l / (N + 1 / (2 c C))     (c: the example's weight; C: aggressiveness)
//   bound     if some u has y u . (x, b) >= 1 everywhere: the sum of l^2 is at most ||u||^2 R^2, so
//             PA makes at most ||u||^2 R^2 mistakes; with u = u* / gamma* that is (R / gamma*)^2
//   source    Crammer, Dekel, Keshet, Shalev-Shwartz, Singer: Online Passive-Aggressive Algorithms,
//             JMLR 7, 2006: section 3 and theorems 2, 4, 5
#pragma once

#include "core/learner/linear_rule.h"

namespace perceptrond {

class PassiveAggressive final : public LinearRule<PassiveAggressive> {
 public:
  // settings.kind says which of the three.
  PassiveAggressive(const LearnerSettings& settings, size_t size)
      : LinearRule(settings, size),
        kind_(settings.kind),
        aggressiveness_(settings.aggressiveness) {}

  double Loss(double signed_score) const { return signed_score < 1 ? 1 - signed_score : 0; }
  bool Moves(double signed_score, bool /*mistake*/) const { return signed_score < 1; }

 protected:
  double Step(const Row& row, double signed_score, double weight) const override;

 private:
  const LearnerKind kind_;
  const double aggressiveness_;
};

}  // namespace perceptrond
