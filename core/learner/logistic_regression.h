// Logistic regression by stochastic gradient: the perceptron's soft-decision counterpart.
//
//   predict   sign(s), s = w . x + w_b b;  P(+1) = 1 / (1 + e^-s)
//   loss      ln(1 + e^(-y s))
//   update    g = 1 / (1 + e^(y s)):  if g > threshold:  w += eta c g y x,  w_b += eta c g y b
//             (c: the example's weight)
//   bound     for threshold 0 and eta of order 1 / sqrt(T): regret against any u of order ||u|| R
//             sqrt(T) over T examples; no bound on the number of updates
//   source    seed 003 (soft decisions); regret: Zinkevich 2003
//
// With the threshold at 0 every example is an update, and so a write. A threshold of 0.01 leaves
// out those that are right with more than 99 %.
#pragma once

#include "core/learner/linear_rule.h"

namespace perceptrond {

class LogisticRegression final : public LinearRule<LogisticRegression> {
 public:
  LogisticRegression(const LearnerSettings& settings, size_t size)
      : LinearRule(settings, size),
        step_size_(settings.step_size),
        threshold_(settings.update_threshold) {}

  std::optional<double> Probability(double score) const override;

  double Loss(double signed_score) const;
  bool Moves(double signed_score, bool mistake) const;

 protected:
  double Step(const Row& row, double signed_score, double weight) const override;

 private:
  const double step_size_;
  const double threshold_;
};

}  // namespace perceptrond
