// The perceptron with margin: ALMA with p = 2. It also learns from examples whose margin is
// positive but too small, until every example has nearly the best margin there is.
//
//   predict   two labels: sign(s), s = w . x + w_b b; several classes: the k of the greatest s_k
//   update    with n = ||z||, k = 1, 2, ... counting updates, g = B / sqrt(k):
//               if m <= (1 - alpha) g n:  theta += C z / (n sqrt(k)),
//               then theta /= max(1, ||theta||);  B = sqrt(8) / alpha, C = sqrt(2)
//             (m, z: core/learner/linear_rule.h)
//   loss      max(0, (1 - alpha) g n - m)
//   bound     if the best separator has margin g* on the z / ||z||: at most
//             (2 / g*^2) (2 / alpha - 1)^2 + 8 / alpha - 4 updates, and after them a margin of at
//             least (1 - alpha) g*
//   source    Gentile: A New Approximate Maximal Margin Classification Algorithm, JMLR 2, 2001,
//             section 3 and theorem 3; several classes: the same on Kesler's z
//
// The norm of theta stays below 1: dividing costs one multiplication, since the weights have a
// common scale (ScoreVectors::scale); now and then it is multiplied in, O(K features).
#pragma once

#include <cmath>

#include "core/learner/linear_rule.h"

namespace perceptrond {

class MarginPerceptron : public LinearRule {
 public:
  static constexpr Needs kEvaluationNeeds = Needs::kSquaredNorm;
  static constexpr Needs kStepNeeds = Needs::kSquaredNorm;
  // Each update scales all earlier ones.
  static constexpr bool kHasDual = false;

  struct Memory : LinearRule::Memory {
    // The k of the latest update.
    uint64_t updates = 0;

    void AppendTo(const ScoreVectors& vectors, LearnerStateView& state) const;
    bool Read(StateReader& state, ScoreVectors& vectors);
  };
  Memory memory;

  explicit MarginPerceptron(const LearnerSettings& settings) : alpha_(settings.margin_slack) {}

  double Loss(const SignedExample& z) const {
    const double required = RequiredMargin(z);
    return z.margin < required ? required - z.margin : 0;
  }
  bool CallsForUpdate(const SignedExample& z) const {
    return z.mistake || z.margin <= RequiredMargin(z);
  }
  Step MakeStep(const SignedExample& z, double /*weight*/) const {
    const double norm = std::sqrt(z.squared_norm);
    return {norm > 0 ? std::sqrt(2.0) / (norm * RootOfNext()) : 0};
  }
  void FinishUpdate(ScoreVectors& vectors, const Target& target);
  // Divides them by their norm if that is above 1. k goes on.
  void WeightsReplaced(ScoreVectors& vectors) { LimitNorm(vectors); }

 private:
  // sqrt(k) of the next update.
  double RootOfNext() const { return std::sqrt(static_cast<double>(memory.updates + 1)); }
  // (1 - alpha) g n.
  double RequiredMargin(const SignedExample& z) const {
    return (1 - alpha_) * (std::sqrt(8.0) / alpha_ / RootOfNext()) * std::sqrt(z.squared_norm);
  }
  static void LimitNorm(ScoreVectors& vectors);

  const double alpha_;
};

inline void MarginPerceptron::LimitNorm(ScoreVectors& vectors) {
  // Below it the weights come near the limits of float32.
  constexpr double kSmallestScale = 1e-9;
  const double norm = std::sqrt(AugmentedSquaredNorm(vectors));
  if (norm > 1) vectors.set_scale(vectors.scale() / norm);
  if (vectors.scale() < kSmallestScale) vectors.ApplyScale();
}

inline void MarginPerceptron::FinishUpdate(ScoreVectors& vectors, const Target& /*target*/) {
  ++memory.updates;
  LimitNorm(vectors);
}

inline void MarginPerceptron::Memory::AppendTo(const ScoreVectors& vectors,
                                               LearnerStateView& state) const {
  Append(vectors.scale(), state);
  Append(static_cast<double>(updates), state);
}

inline bool MarginPerceptron::Memory::Read(StateReader& state, ScoreVectors& vectors) {
  const double scale = state.Scalar();
  updates = state.Count();
  vectors.set_scale(scale);
  return scale > 0;
}

}  // namespace perceptrond
