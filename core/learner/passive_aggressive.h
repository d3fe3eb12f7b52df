// The passive-aggressive family: the least change that gives an example margin 1.
//
//   predict   two labels: sign(s), s = w . x + w_b b; several classes: the k of the greatest s_k
//   loss      l = max(0, 1 - m), the hinge (m, z: core/learner/linear_rule.h)
//   update    if l > 0:  theta += t z,  with N = ||z||^2 and
//               PA      t = l / N
//               PA-I    t = min(c C, l / N)
//               PA-II   t = l / (N + 1 / (2 c C))     (c: the example's weight; C: aggressiveness)
//   bound     if some theta* has theta* . z >= 1 everywhere: the sum of l^2 is at most ||theta*||^2
//             max ||z||^2, which bounds PA's mistakes. Two labels: with theta* = u /
//             gamma, ||u|| = 1, that is (R / gamma)^2
//   source    Crammer, Dekel, Keshet, Shalev-Shwartz, Singer: Online Passive-Aggressive Algorithms,
//             JMLR 7, 2006: section 3 and theorems 2, 4, 5; several classes: section 8, with one
//             relevant label and the best irrelevant one
#pragma once

#include <algorithm>

#include "core/learner/linear_rule.h"

namespace perceptrond {

class PassiveAggressive : public LinearRule {
 public:
  static constexpr Needs kStepNeeds = Needs::kSquaredNorm;

  // settings.rule says which of the three.
  explicit PassiveAggressive(const LearnerSettings& settings)
      : variant_(settings.rule), aggressiveness_(settings.aggressiveness) {}

  double Loss(const SignedExample& z) const { return z.margin < 1 ? 1 - z.margin : 0; }
  bool CallsForUpdate(const SignedExample& z) const { return z.margin < 1; }
  Step MakeStep(const SignedExample& z, double weight) const {
    const double most = weight * aggressiveness_;
    if (variant_ == RuleKind::kPassiveAggressiveII)
      return {Loss(z) / (z.squared_norm + 0.5 / most)};
    // Nothing changes the margin of an example that is all zeros.
    const double length = z.squared_norm > 0 ? Loss(z) / z.squared_norm : 0;
    return {variant_ == RuleKind::kPassiveAggressiveI ? std::min(most, length) : length};
  }

 private:
  const RuleKind variant_;
  const double aggressiveness_;
};

}  // namespace perceptrond
