// Soft confidence-weighted learning, SCW-I, with a diagonal covariance: each weight has a variance,
// and an update makes the example right with a probability of at least eta under the Gaussian that
// weights and variances describe, as far as C allows.
//
//   predict   two labels: sign(s), s = w . x + w_b b; several classes: the k of the greatest s_k
//   loss      l = max(0, phi sqrt(v) - m), v = z' S z, phi = the eta quantile of the standard
//             normal distribution (m, z: core/learner/linear_rule.h)
//   update    if l > 0, with psi = 1 + phi^2 / 2, zeta = 1 + phi^2:
//               alpha = min(c C, max(0, (-m psi + sqrt(m^2 phi^4 / 4 + v phi^2 zeta)) / (v zeta)))
//               u     = (-alpha v phi + sqrt(alpha^2 v^2 phi^2 + 4 v))^2 / 4
//               beta  = alpha phi / (sqrt(u) + v alpha phi)
//               theta += alpha S z,  S_i -= beta S_i^2 z_i^2   (core/learner/confidence_rule.h)
//             (c: the example's weight; C: aggressiveness)
//   bound     none for the diagonal
//   source    Wang, Zhao, Hoi: Exact Soft Confidence-Weighted Learning, ICML 2012: proposition 1;
//             several classes: Hoi, Wang, Zhao: LIBOL, JMLR 15, 2014, on the top-1 constraint of
//             Crammer, Dredze, Kulesza: Multi-Class Confidence Weighted Algorithms, EMNLP 2009
#pragma once

#include <algorithm>
#include <cmath>

#include "core/learner/confidence_rule.h"

namespace perceptrond {

// The x that a standard normal variable stays below with this probability, 0.5 <= probability < 1,
// to within 1e-9; at most 6. The same bits on every machine.
double NormalQuantile(double probability);

class SoftConfidenceWeighted : public ConfidenceRule {
 public:
  static constexpr Needs kEvaluationNeeds = Needs::kVariance;

  explicit SoftConfidenceWeighted(const LearnerSettings& settings)
      : phi_(NormalQuantile(settings.confidence)), aggressiveness_(settings.aggressiveness) {}

  double Loss(const SignedExample& z) const {
    const double wanted = phi_ * std::sqrt(z.variance);
    return z.margin < wanted ? wanted - z.margin : 0;
  }
  bool CallsForUpdate(const SignedExample& z) const { return z.mistake || Loss(z) > 0; }
  Step MakeStep(const SignedExample& z, double weight) const;

 private:
  const double phi_;
  const double aggressiveness_;
};

}  // namespace perceptrond
