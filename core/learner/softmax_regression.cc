#include "core/learner/softmax_regression.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/vector/exp.h"

namespace perceptrond {
namespace {

// Replaces each score by e^(score - greatest), NaN left out, and returns their sum.
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

SoftmaxRegression::PerClass SoftmaxRegression::Gradient(const Row& row, int32_t label) const {
  const auto own = static_cast<size_t>(label);
  PerClass step(std::max(classes(), own + 1), std::numeric_limits<double>::quiet_NaN());
  const std::span<double> scores(step.data(), step.size());
  Answers(row, 0, scores);
  if (!HasClass(label)) step[own] = 0;
  const double sum = Exponentiate(scores);
  // 1 - P(y) as the others' sum: what is left of a probability near 1 keeps its digits.
  double others = 0;
  for (size_t k = 0; k < step.size(); ++k) {
    if (k == own || std::isnan(step[k])) continue;
    others += step[k];
    step[k] = -step[k] / sum;
  }
  step[own] = others / sum;
  for (double& part : step) part = std::isnan(part) ? 0 : part;
  return step;
}

Evaluation SoftmaxRegression::Evaluate(const Row& row, int32_t label) const {
  Evaluation evaluation = MulticlassLinear::Evaluate(row, label);
  const double wrong = Gradient(row, label)[static_cast<size_t>(label)];
  evaluation.update |= wrong > threshold_;
  // Of a probability that float64 has no number for, the margin is what counts.
  evaluation.loss = wrong < 1 ? -std::log1p(-wrong) : std::max(0.0, -evaluation.score);
  return evaluation;
}

bool SoftmaxRegression::CanUpdate(const Row& row, const Target& target,
                                  const Evaluation& evaluation) const {
  const double eta = Step(row, target, evaluation);
  const PerClass gradient = Gradient(row, target.label);
  for (size_t k = 0; k < gradient.size(); ++k) {
    if (gradient[k] != 0 && !StaysFinite(static_cast<int32_t>(k), eta * gradient[k], row))
      return false;
  }
  return true;
}

void SoftmaxRegression::Update(const Row& row, const Target& target, const Evaluation& evaluation) {
  TakeUp(target.label);
  const double eta = Step(row, target, evaluation);
  const PerClass gradient = Gradient(row, target.label);
  for (size_t k = 0; k < gradient.size(); ++k) {
    if (gradient[k] != 0) weights(k).Add(eta * gradient[k], row, offset_value());
  }
}

void SoftmaxRegression::ToProbabilities(std::span<double> scores) const {
  const double sum = Exponentiate(scores);
  for (double& score : scores) score /= sum;
}

}  // namespace perceptrond
