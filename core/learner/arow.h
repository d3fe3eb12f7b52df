// Adaptive regularization of weight vectors, with a diagonal covariance: a weight moves the less
// the more has been learned about it.
//
//   predict   two labels: sign(s), s = w . x + w_b b; several classes: the k of the greatest s_k
//   loss      l = max(0, 1 - m), the hinge (m, z: core/learner/linear_rule.h)
//   update    if l > 0, with v = z' S z and beta = 1 / (v + r):
//               theta += l beta S z,  S_i -= beta S_i^2 z_i^2   (core/learner/confidence_rule.h)
//   bound     on the mistakes M of the rule with full covariance: M <= sqrt(r ||u||^2 + u' X u) ...
//             (theorem 1 of the source); the diagonal has none
//   source    Crammer, Kulesza, Dredze: Adaptive Regularization of Weight Vectors, NIPS 2009;
//             several classes: on the top-1 constraint of Crammer, Dredze, Kulesza: Multi-Class
//             Confidence Weighted Algorithms, EMNLP 2009, section 4
#pragma once

#include "core/learner/confidence_rule.h"

namespace perceptrond {

class Arow : public ConfidenceRule {
 public:
  explicit Arow(const LearnerSettings& settings) : regularization_(settings.regularization) {}

  double Loss(const SignedExample& z) const { return z.margin < 1 ? 1 - z.margin : 0; }
  bool CallsForUpdate(const SignedExample& z) const { return z.margin < 1; }
  Step MakeStep(const SignedExample& z, double /*weight*/) const {
    const double beta = 1 / (z.variance + regularization_);
    return {Loss(z) * beta, beta};
  }

 private:
  const double regularization_;
};

}  // namespace perceptrond
