// Logistic regression by stochastic gradient, the perceptron's soft-decision counterpart; softmax
// regression with several classes.
//
//   predict   two labels: sign(s), P(+1) = 1 / (1 + e^-s); several classes: the k of the greatest
//             s_k, P(k) = e^(s_k) / sum of e^(s_j)
//   loss      -ln P(y): with two labels ln(1 + e^(-y s))
//   update    if 1 - P(y) > threshold, with the gradient's coefficient g_k = [k = y] - P(k) of
//             every class that exists:  w_k += eta c g_k (x, b)   (c: the example's weight).
//             Two labels: K = 1 and g = y (1 - P(y)) = y / (1 + e^(y s))
//   new       a class that does not exist yet scores 0 among the others in its first example's step
//   steps     constant: eta; decreasing: eta / sqrt(1 + t) after t updates; adaptive (AdaGrad):
//             eta / sqrt(G_i) for feature i, G_i the sum of its squared gradients, with this one
//   bound     none on the number of updates. For threshold 0, regret against any theta* over T
//             updates: with constant eta of order 1 / sqrt(T) of order ||theta*|| R sqrt(T);
//             decreasing: (D^2 / (2 eta) + eta G^2) sqrt(T), D the largest ||theta - theta*||, G
//             the largest norm of a gradient; adaptive: (D^2 / (2 eta) + eta) sum of sqrt(G_i), D
//             the largest |theta_i - theta*_i|
//   source    Bishop: Pattern Recognition and Machine Learning, 2006, sections 4.3.2 and 4.3.4;
//             regret: Zinkevich: Online Convex Programming, ICML 2003, theorem 1; adaptive: Duchi,
//             Hazan, Singer: Adaptive Subgradient Methods, JMLR 12, 2011, theorem 5
//
// With the threshold at 0 every example is an update, and so a write. A threshold of 0.01 leaves
// out those whose label has more than 99 %. Two classes are two labels with twice the step:
// P(1) = 1 / (1 + e^-(s_1 - s_0)).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "core/learner/linear_rule.h"
#include "core/learner/rule_learner.h"
#include "core/vector/arithmetic.h"

namespace perceptrond {

// Replaces each score by e^(score - greatest), leaves NaN, and returns their sum.
inline double Exponentiate(std::span<double> scores) {
  double greatest = -std::numeric_limits<double>::infinity();
  for (const double score : scores) greatest = score > greatest ? score : greatest;
  double sum = 0;
  for (double& score : scores) {
    if (std::isnan(score)) continue;
    score = DeterministicExp(score - greatest);
    sum += score;
  }
  return sum;
}

class LogisticRegression : public LinearRule {
 public:
  static constexpr bool kMovesAllClasses = true;

  explicit LogisticRegression(const LearnerSettings& settings)
      : step_size_(settings.step_size), threshold_(settings.update_threshold) {}

  // Two labels: in closed form, which takes one exponential a score, and whose bits are not those of
  // the softmax of (0, s).
  double Loss(const SignedExample& z) const;
  bool CallsForUpdate(const SignedExample& z) const;
  Step MakeStep(const SignedExample& z, double weight) const;

  // Several classes: sets update and loss of an evaluation.
  void EvaluateClasses(std::span<const double> scores, int32_t label, Evaluation& evaluation) const;
  // g by class; 0 for one that does not exist. `label` exists in it.
  static ClassScores Coefficients(std::span<const double> scores, int32_t label);
  double StepSize(double weight) const { return step_size_ * weight; }

 private:
  const double step_size_;
  const double threshold_;
};

// The same with decreasing steps. Replaced weights leave t as it is.
class DecreasingLogisticRegression : public LogisticRegression {
 public:
  // The t of a past update is not stored.
  static constexpr bool kHasDual = false;

  struct Memory {
    // t.
    uint64_t updates = 0;

    void Resize(size_t /*vectors*/, size_t /*size*/) {}
    void AppendTo(const ScoreVectors& /*vectors*/, LearnerStateView& state) const {
      Append(static_cast<double>(updates), state);
    }
    bool Read(StateReader& state, ScoreVectors& /*vectors*/) {
      updates = state.Count();
      return true;
    }
  };
  Memory memory;

  using LogisticRegression::LogisticRegression;

  double StepSize(double weight) const {
    return LogisticRegression::StepSize(weight) /
           std::sqrt(1 + static_cast<double>(memory.updates));
  }
  Step MakeStep(const SignedExample& z, double weight) const {
    return {StepSize(weight) * DeterministicSigmoid(-z.margin)};
  }
  void FinishUpdate(ScoreVectors& /*vectors*/, const Target& /*target*/) { ++memory.updates; }
};

// The same with adaptive steps. A move's length is c g_k, the negative gradient's coefficient.
// Replaced weights leave G as it is: it says how much was learned about each feature.
class AdaptiveLogisticRegression : public LogisticRegression {
 public:
  // An update moves each feature by a step of its own, which is not stored.
  static constexpr bool kHasDual = false;
  static constexpr size_t kArraysPerVector = 1;

  // G.
  using Memory = WeightFigures<0>;
  Memory memory;

  explicit AdaptiveLogisticRegression(const LearnerSettings& settings)
      : LogisticRegression(settings), step_size_(settings.step_size) {}

  double StepSize(double weight) const { return weight; }
  Step MakeStep(const SignedExample& z, double weight) const {
    return {weight * DeterministicSigmoid(-z.margin)};
  }
  // No weight moves by more than eta.
  bool CanMove(const ScoreVectors& vectors, const Move& move, const Row& row) const;
  void MakeMove(ScoreVectors& vectors, const Move& move, const Row& row);

 private:
  const double step_size_;
};

template <class Rule>
class LogisticLearner final : public RuleLearner<Rule>, public Probabilistic {
 public:
  using RuleLearner<Rule>::RuleLearner;

  const Probabilistic* probabilistic() const override { return this; }
  void ToProbabilities(std::span<double> scores) const override;
};

inline bool AdaptiveLogisticRegression::CanMove(const ScoreVectors& vectors, const Move& move,
                                                const Row& row) const {
  constexpr double kMost = std::numeric_limits<float>::max();
  if (move.vector >= vectors.count()) return step_size_ <= kMost;
  const LinearWeights& linear = vectors[move.vector];
  return std::abs(linear.bias_weight) + step_size_ <= kMost &&
         StayWithin(linear.weights, kMost - step_size_, row);
}

inline void AdaptiveLogisticRegression::MakeMove(ScoreVectors& vectors, const Move& move,
                                                 const Row& row) {
  LinearWeights& linear = vectors[move.vector];
  Memory::Figures& squares = memory.vectors[move.vector];
  AddAdaptive(linear.weights, step_size_, move.length, squares.features, row, linear.squared_norm);
  const double gradient = move.length * vectors.bias_input();
  squares.bias = AddSquare(squares.bias, gradient);
  linear.bias_weight =
      static_cast<float>(linear.bias_weight + AdaptiveStep(step_size_, gradient, squares.bias));
}

inline double LogisticRegression::Loss(const SignedExample& z) const {
  return z.margin < 0 ? std::log1p(std::exp(z.margin)) - z.margin : std::log1p(std::exp(-z.margin));
}

inline bool LogisticRegression::CallsForUpdate(const SignedExample& z) const {
  return z.mistake || DeterministicSigmoid(-z.margin) > threshold_;
}

inline Step LogisticRegression::MakeStep(const SignedExample& z, double weight) const {
  return {StepSize(weight) * DeterministicSigmoid(-z.margin)};
}

inline ClassScores LogisticRegression::Coefficients(std::span<const double> scores, int32_t label) {
  const auto own = static_cast<size_t>(label);
  ClassScores coefficients(scores.begin(), scores.end());
  if (coefficients.size() <= own)
    coefficients.resize(own + 1, std::numeric_limits<double>::quiet_NaN());
  if (std::isnan(coefficients[own])) coefficients[own] = 0;
  const double sum = Exponentiate({coefficients.data(), coefficients.size()});
  // 1 - P(y) as the others' sum: what is left of a probability near 1 keeps its digits.
  double others = 0;
  for (size_t k = 0; k < coefficients.size(); ++k) {
    if (k == own || std::isnan(coefficients[k])) continue;
    others += coefficients[k];
    coefficients[k] = -coefficients[k] / sum;
  }
  coefficients[own] = others / sum;
  for (double& coefficient : coefficients) coefficient = std::isnan(coefficient) ? 0 : coefficient;
  return coefficients;
}

inline void LogisticRegression::EvaluateClasses(std::span<const double> scores, int32_t label,
                                                Evaluation& evaluation) const {
  const double wrong = Coefficients(scores, label)[static_cast<size_t>(label)];
  evaluation.update = evaluation.mistake || wrong > threshold_;
  // Float64 has no number for a probability so small: then the margin counts.
  evaluation.loss = wrong < 1 ? -std::log1p(-wrong) : std::max(0.0, -evaluation.score);
}

template <class Rule>
void LogisticLearner<Rule>::ToProbabilities(std::span<double> scores) const {
  if (!this->vectors().is_multiclass()) {
    scores[0] = DeterministicSigmoid(scores[0]);
    return;
  }
  const double sum = Exponentiate(scores);
  for (double& score : scores) score /= sum;
}

}  // namespace perceptrond
