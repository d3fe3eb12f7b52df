// The perceptron with margin: ALMA with p = 2. Learns from examples that are right by too little
// too, until every example is right by nearly the best margin there is.
//
//   predict   sign(s), s = w . x + w_b b
//   update    with n = ||(x, b)||, k = 1, 2, ... counting updates, g = B / sqrt(k):
//               if y s <= (1 - alpha) g n:  w += C y (x, b) / (n sqrt(k)),
//               then w /= max(1, ||w||);  B = sqrt(8) / alpha, C = sqrt(2)
//   loss      max(0, (1 - alpha) g n - y s)
//   bound     if the best separator has margin g* on examples of norm 1: at most
//             (2 / g*^2) (2 / alpha - 1)^2 + 8 / alpha - 4 updates, and after them a margin of at
//             least (1 - alpha) g*
//   source    Gentile: A New Approximate Maximal Margin Classification Algorithm, JMLR 2, 2001,
//             section 3 and theorem 3
//
// The norm of w stays below 1: dividing costs one multiplication, since the weights are kept with a
// common factor; now and then it is multiplied in, O(weights).
#pragma once

#include "core/learner/linear_rule.h"

namespace perceptrond {

class MarginPerceptron final : public LinearRule<MarginPerceptron> {
 public:
  MarginPerceptron(const LearnerSettings& settings, size_t size)
      : LinearRule(settings, size), alpha_(settings.margin_slack) {}

  double Score(const Row& row) const override;
  Evaluation Evaluate(const Row& row, int32_t label) const override;
  // The margin it wants depends on the row's norm.
  void EvaluateRows(const Batch& batch, size_t first, size_t max_features,
                    std::span<EvaluatedRow> evaluated) const override {
    Learner::EvaluateRows(batch, first, max_features, evaluated);
  }
  void Update(const Row& row, const Target& target, const Evaluation& evaluation) override;
  // Divided by their norm, if that is above 1. k goes on.
  void ReplaceWeights(const Row& weights, float offset_weight, uint64_t age) override;
  double answer_squared_norm(uint64_t age) const override;
  Hypothesis AnswerHypothesis(uint64_t age) const override;
  std::optional<double> AnswerWeight(uint32_t index, uint64_t age) const override;
  double squared_norm() const override;
  double augmented_squared_norm() const override;
  LearnerStateView State() const override;
  bool Restore(LearnerState state) override;

  double Loss(double signed_score) const { return signed_score < 0 ? -signed_score : 0; }
  bool Moves(double /*signed_score*/, bool mistake) const { return mistake; }

 protected:
  // In units of the factor.
  double Step(const Row& row, double signed_score, double weight) const override;

 private:
  // sqrt(k) of the next update.
  double RootOfNext() const;
  void MultiplyFactorIn();

  const double alpha_;
  // w = factor x the weights kept.
  double factor_ = 1;
  uint64_t updates_ = 0;
};

}  // namespace perceptrond
