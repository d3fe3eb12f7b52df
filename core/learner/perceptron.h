// The perceptron.
//
//   predict   two labels: sign(s), s = w . x + w_b b; several classes: the k of the greatest s_k
//   mistake   m <= 0, or as the tie rule has it (m, z: core/learner/linear_rule.h)
//   update    on a mistake only:  theta += eta c z   (c: the example's weight)
//   loss      max(0, -m): the update is a stochastic gradient step on its sum, the perceptron's
//             risk
//   bound     if some theta* of norm 1 has theta* . z >= gamma for every example and rival, from
//             zero weights and with c = 1: at most (max ||z|| / gamma)^2 updates, whatever the
//             order and eta. Two labels: (R / gamma)^2, R^2 = max ||x||^2 + b^2. Several classes
//             that all exist from the start: 2 (R / gamma)^2, of another gamma
//   source    Rosenblatt 1958; bound: Novikoff 1962. Several classes: Crammer, Singer:
//             Ultraconservative Online Algorithms for Multiclass Problems, JMLR 3, 2003, section 4
#pragma once

#include "core/learner/linear_rule.h"

namespace perceptrond {

class Perceptron : public LinearRule {
 public:
  explicit Perceptron(const LearnerSettings& settings) : step_size_(settings.step_size) {}

  double Loss(const SignedExample& z) const { return z.margin < 0 ? -z.margin : 0; }
  bool CallsForUpdate(const SignedExample& z) const { return z.mistake; }
  Step MakeStep(const SignedExample& /*z*/, double weight) const { return {step_size_ * weight}; }

 private:
  const double step_size_;
};

}  // namespace perceptrond
