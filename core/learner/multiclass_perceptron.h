// The perceptron of several classes.
//
//   predict   the k of the greatest s_k = w_k . x + w_kb b
//   mistake   m = s_y - max over r != y of s_r <= 0, or as the tie rule has it
//   update    on a mistake only:  w_y += eta c (x, b),  w_r -= eta c (x, b), r the best of the
//   others
//             (c: the example's weight)
//   loss      max(0, -m)
//   bound     if some W of norm 1 has m >= gamma everywhere: at most 2 (R / gamma)^2 updates, since
//             each adds at most 2 eta^2 R^2 to ||W||^2 (Kesler's construction). That is twice the
//             two-class theorem's, of another gamma
//   source    Crammer, Singer: Ultraconservative Online Algorithms for Multiclass Problems, JMLR 3,
//             2003, section 4; Kesler: Duda, Hart 1973, section 5.12.1; seed 003
#pragma once

#include "core/learner/multiclass_linear.h"

namespace perceptrond {

class MulticlassPerceptron : public MulticlassLinear {
 public:
  MulticlassPerceptron(const LearnerSettings& settings, size_t size)
      : MulticlassLinear(settings, size), step_size_(settings.step_size) {}

 protected:
  double Loss(double margin) const override { return margin < 0 ? -margin : 0; }
  bool Moves(double /*margin*/, bool mistake) const override { return mistake; }
  double Step(const Row& /*row*/, const Target& target,
              const Evaluation& /*judgement*/) const override {
    return step_size_ * target.weight;
  }

 private:
  const double step_size_;
};

}  // namespace perceptrond
