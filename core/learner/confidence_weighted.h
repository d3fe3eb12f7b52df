// The second-order rules: AROW and soft confidence-weighted learning. Both keep a variance S per
// weight, the diagonal of a covariance, which says how little has been learned about the weight. A
// step moves theta along S z and shrinks S:
//
//   theta += length S z;   S_i -= shrink S_i^2 z_i^2, never below 0;   S starts at 1
//
// The constant input has a variance of its own. Memory: twice the weights. Replaced weights leave S
// as it is: it says how much was learned about each feature.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "core/learner/linear_rule.h"
#include "core/vector/arithmetic.h"

namespace perceptrond {

// What the two share.
class ConfidenceRule : public LinearRule {
 public:
  static constexpr Needs kStepNeeds = Needs::kVariance;
  // An update moves each feature by a variance of its own, which is not kept.
  static constexpr bool kHasDual = false;
  static constexpr size_t kArraysPerVector = 1;

  // S.
  using Memory = WeightFigures<1>;
  Memory memory;

  double Variance(const ScoreVectors& vectors, size_t k, const Row& row) const;
  // Two labels: the same of a row whose features have this part in it.
  double Variance(const ScoreVectors& vectors, double of_features) const {
    const double b = vectors.bias_input();
    return of_features + memory.vectors[0].bias * b * b;
  }
  // Two labels: S of the features.
  std::span<const float> FeatureVariances() const { return memory.vectors[0].features; }
  bool CanMove(const ScoreVectors& vectors, const Move& move, const Row& row) const;
  void MakeMove(ScoreVectors& vectors, const Move& move, const Row& row);
};

inline double ConfidenceRule::Variance(const ScoreVectors& vectors, size_t k,
                                       const Row& row) const {
  // Nothing has been learned about a class that does not exist.
  if (k >= memory.vectors.size()) return vectors.AugmentedSquaredNorm(row);
  const Memory::Figures& variances = memory.vectors[k];
  const double b = vectors.bias_input();
  return WeightedSquaredNorm(variances.features, row) + variances.bias * b * b;
}

inline bool ConfidenceRule::CanMove(const ScoreVectors& vectors, const Move& move,
                                    const Row& row) const {
  if (move.vector >= memory.vectors.size())
    return vectors.StaysFinite(move.vector, move.length, row);
  const LinearWeights& linear = vectors[move.vector];
  const Memory::Figures& variances = memory.vectors[move.vector];
  const double bias = linear.bias_weight + move.length * variances.bias * vectors.bias_input();
  return std::abs(bias) <= std::numeric_limits<float>::max() &&
         StaysFiniteAlong(linear.weights, move.length, variances.features, row);
}

inline void ConfidenceRule::MakeMove(ScoreVectors& vectors, const Move& move, const Row& row) {
  // The first example of a class may have margin enough.
  if (move.length == 0) return;
  LinearWeights& linear = vectors[move.vector];
  Memory::Figures& variances = memory.vectors[move.vector];
  const double b = vectors.bias_input();
  AddScaledAlong(linear.weights, move.length, variances.features, row, linear.squared_norm);
  linear.bias_weight = static_cast<float>(linear.bias_weight + move.length * variances.bias * b);
  ShrinkVariances(variances.features, move.shrink, row);
  // Rounding may come out below 0, as it may in ShrinkVariances.
  const double shrunk = variances.bias - move.shrink * variances.bias * variances.bias * b * b;
  variances.bias = static_cast<float>(std::max(0.0, shrunk));
}

// Adaptive regularization of weight vectors, with a diagonal covariance: a weight moves the less
// the more has been learned about it.
//
//   predict   two labels: sign(s), s = w . x + w_b b; several classes: the k of the greatest s_k
//   loss      l = max(0, 1 - m), the hinge (m, z: core/learner/linear_rule.h)
//   update    if l > 0, with v = z' S z and beta = 1 / (v + r):
//               theta += l beta S z,  S_i -= beta S_i^2 z_i^2
//   bound     on the mistakes M of the rule with full covariance: M <= sqrt(r ||u||^2 + u' X u) ...
//             (theorem 1 of the source); the diagonal has none
//   source    Crammer, Kulesza, Dredze: Adaptive Regularization of Weight Vectors, NIPS 2009;
//             several classes: on the top-1 constraint of Crammer, Dredze, Kulesza: Multi-Class
//             Confidence Weighted Algorithms, EMNLP 2009, section 4
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

// The probability that a standard normal variable lies below x, for x from 0 to 6, by the series of
// Marsaglia, Evaluating the Normal Distribution, Journal of Statistical Software 11, 2004.
inline double NormalProbability(double x) {
  double sum = x;
  double term = x;
  for (int i = 3; term > 1e-17 * sum; i += 2) {
    term *= x * x / i;
    sum += term;
  }
  constexpr double kRootOfTwoPi = 2.5066282746310002;
  return 0.5 + sum * DeterministicExp(-0.5 * x * x) / kRootOfTwoPi;
}

// The x that a standard normal variable stays below with this probability, 0.5 <= probability < 1,
// to within 1e-9; at most 6. The same bits on every machine.
inline double NormalQuantile(double probability) {
  double low = 0;
  double high = 6;
  while (high - low > 1e-12) {
    const double middle = 0.5 * (low + high);
    (NormalProbability(middle) < probability ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

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
//               theta += alpha S z,  S_i -= beta S_i^2 z_i^2
//             (c: the example's weight; C: aggressiveness)
//   bound     none for the diagonal
//   source    Wang, Zhao, Hoi: Exact Soft Confidence-Weighted Learning, ICML 2012: proposition 1;
//             several classes: Hoi, Wang, Zhao: LIBOL, JMLR 15, 2014, on the top-1 constraint of
//             Crammer, Dredze, Kulesza: Multi-Class Confidence Weighted Algorithms, EMNLP 2009
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

inline Step SoftConfidenceWeighted::MakeStep(const SignedExample& z, double weight) const {
  const double m = z.margin;
  const double v = z.variance;
  // Nothing changes the margin of an example that is all zeros, or whose variances have come to 0.
  if (!(v > 0)) return {};
  const double square = phi_ * phi_;
  const double psi = 1 + square / 2;
  const double zeta = 1 + square;
  const double root = std::sqrt(m * m * square * square / 4 + v * square * zeta);
  const double alpha =
      std::min(weight * aggressiveness_, std::max(0.0, (root - m * psi) / (v * zeta)));
  const double moved = alpha * v * phi_;
  const double root_of_u = 0.5 * (std::sqrt(moved * moved + 4 * v) - moved);
  return {alpha, alpha * phi_ / (root_of_u + moved)};
}

}  // namespace perceptrond
