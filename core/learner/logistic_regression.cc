#include "core/learner/logistic_regression.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/vector/arithmetic.h"

namespace perceptrond {
namespace {

// Replaces each score by e^(score - greatest), leaves NaN, and returns their sum.
double Exponentiate(std::span<double> scores) {
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

}  // namespace

double LogisticRegression::Loss(const SignedExample& z) const {
  return z.margin < 0 ? std::log1p(std::exp(z.margin)) - z.margin : std::log1p(std::exp(-z.margin));
}

bool LogisticRegression::CallsForUpdate(const SignedExample& z) const {
  return z.mistake || DeterministicSigmoid(-z.margin) > threshold_;
}

Step LogisticRegression::MakeStep(const SignedExample& z, double weight) const {
  return {StepSize(weight) * DeterministicSigmoid(-z.margin)};
}

ClassScores LogisticRegression::Coefficients(std::span<const double> scores, int32_t label) {
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

void LogisticRegression::EvaluateClasses(std::span<const double> scores, int32_t label,
                                         Evaluation& evaluation) const {
  const double wrong = Coefficients(scores, label)[static_cast<size_t>(label)];
  evaluation.update = evaluation.mistake || wrong > threshold_;
  // Float64 has no number for a probability so small: then the margin counts.
  evaluation.loss = wrong < 1 ? -std::log1p(-wrong) : std::max(0.0, -evaluation.score);
}

void LogisticLearner::ToProbabilities(std::span<double> scores) const {
  if (!vectors().is_multiclass()) {
    scores[0] = DeterministicSigmoid(scores[0]);
    return;
  }
  const double sum = Exponentiate(scores);
  for (double& score : scores) score /= sum;
}

}  // namespace perceptrond
