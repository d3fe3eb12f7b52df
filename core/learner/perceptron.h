// The perceptron.
//
//   predict   sign(s), s = w . x + w_b b
//   mistake   y s <= 0, or as the tie rule has it
//   update    on a mistake only:  w += eta c y x,  w_b += eta c y b   (c: the example's weight)
//   loss      max(0, -y s): the update is a stochastic gradient step on its sum, the perceptron's
//             risk
//   bound     on data that (x, b) separates with margin gamma, from zero weights and with c = 1: at
//             most (R / gamma)^2 updates, R^2 = max ||x||^2 + b^2, whatever the order and eta
//   source    Rosenblatt 1958; bound: Novikoff 1962. seeds 000, 001, 002, 003, 004
#pragma once

#include "core/learner/linear_rule.h"

namespace perceptrond {

class Perceptron : public LinearRule<Perceptron> {
 public:
  Perceptron(const LearnerSettings& settings, size_t size)
      : LinearRule(settings, size), step_size_(settings.step_size) {}

  double Loss(double signed_score) const { return signed_score < 0 ? -signed_score : 0; }
  bool Moves(double /*signed_score*/, bool mistake) const { return mistake; }

 protected:
  double Step(const Row& /*row*/, double /*signed_score*/, double weight) const override {
    return step_size_ * weight;
  }

 private:
  const double step_size_;
};

}  // namespace perceptrond
