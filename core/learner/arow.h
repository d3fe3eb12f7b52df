// Adaptive regularization of weight vectors, with a diagonal covariance: a weight moves the less
// the more has been learned about it.
//
//   predict   sign(s), s = w . x + w_b b
//   loss      l = max(0, 1 - y s), the hinge
//   update    if l > 0, with v = sum S_i x_i^2 (S_b b^2 among them) and beta = 1 / (v + r):
//               w_i += l beta y S_i x_i,  S_i -= beta S_i^2 x_i^2;  S starts at 1
//   bound     on the mistakes M of those with full covariance: M <= sqrt(r ||u||^2 + u' X u) ...
//             (theorem 1 of the source); the diagonal has none
//   source    Crammer, Kulesza, Dredze: Adaptive Regularization of Weight Vectors, NIPS 2009
//
// The offset's coordinate has a covariance of its own. Memory: twice the perceptron's.
#pragma once

#include <vector>

#include "core/learner/linear_rule.h"

namespace perceptrond {

class Arow final : public LinearRule<Arow> {
 public:
  Arow(const LearnerSettings& settings, size_t size);

  bool CanUpdate(const Row& row, const Target& target, const Evaluation& evaluation) const override;
  void Update(const Row& row, const Target& target, const Evaluation& evaluation) override;
  // Adopted weights leave S as it is: it says how much was learned about each feature.
  void Grow(size_t size) override;
  LearnerStateView State() const override;
  bool Restore(LearnerState state) override;

  double Loss(double signed_score) const { return signed_score < 1 ? 1 - signed_score : 0; }
  bool Moves(double signed_score, bool /*mistake*/) const { return signed_score < 1; }

 protected:
  // Along S (x, b).
  double Step(const Row& row, double signed_score, double weight) const override;

 private:
  // beta.
  double Confidence(const Row& row) const;

  const double regularization_;
  // S, its diagonal.
  FloatArray variances_;
  // A float32 value, like w_b.
  double offset_variance_ = 1;
};

}  // namespace perceptrond
