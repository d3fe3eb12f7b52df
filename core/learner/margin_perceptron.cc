#include "core/learner/margin_perceptron.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/learner/state.h"
#include "core/vector/kernels.h"

namespace perceptrond {
namespace {

// Below it the weights kept would come near float32's end.
constexpr double kSmallestFactor = 1e-9;

}  // namespace

double MarginPerceptron::Score(const Row& row) const { return factor_ * LinearLearner::Score(row); }

double MarginPerceptron::RootOfNext() const { return std::sqrt(static_cast<double>(updates_ + 1)); }

Evaluation MarginPerceptron::Evaluate(const Row& row, int32_t label) const {
  Evaluation evaluation = LinearLearner::Evaluate(row, label);
  const double wanted = (1 - alpha_) * (std::sqrt(8.0) / alpha_ / RootOfNext()) *
                        std::sqrt(AugmentedSquaredNorm(row));
  const double signed_score = label * evaluation.score;
  evaluation.update = evaluation.mistake || signed_score <= wanted;
  evaluation.loss = std::max(0.0, wanted - signed_score);
  return evaluation;
}

double MarginPerceptron::Step(const Row& row, double /*signed_score*/, double /*weight*/) const {
  const double norm = std::sqrt(AugmentedSquaredNorm(row));
  return norm > 0 ? std::sqrt(2.0) / (norm * RootOfNext()) / factor_ : 0;
}

void MarginPerceptron::Update(const Row& row, const Target& target, const Evaluation& evaluation) {
  LinearLearner::Update(row, target, evaluation);
  ++updates_;
  const double norm = std::sqrt(augmented_squared_norm());
  if (norm > 1) factor_ /= norm;
  if (factor_ < kSmallestFactor) MultiplyFactorIn();
}

void MarginPerceptron::ReplaceWeights(const Row& weights, float offset_weight, uint64_t age) {
  factor_ = 1;
  LinearLearner::ReplaceWeights(weights, offset_weight, age);
  const double norm = std::sqrt(augmented_squared_norm());
  if (norm > 1) factor_ = 1 / norm;
  if (factor_ < kSmallestFactor) MultiplyFactorIn();
}

void MarginPerceptron::MultiplyFactorIn() {
  LinearWeights& weights = linear();
  weights.squared_norm = CompensatedSum();
  Scale(weights.weights, factor_, weights.squared_norm);
  weights.offset_weight = static_cast<float>(weights.offset_weight * factor_);
  factor_ = 1;
}

double MarginPerceptron::answer_squared_norm(uint64_t /*age*/) const { return squared_norm(); }

Hypothesis MarginPerceptron::AnswerHypothesis(uint64_t age) const {
  Hypothesis hypothesis = LinearLearner::AnswerHypothesis(age);
  for (float& weight : hypothesis.weights) weight = static_cast<float>(weight * factor_);
  hypothesis.offset *= factor_;
  return hypothesis;
}

std::optional<double> MarginPerceptron::AnswerWeight(uint32_t index, uint64_t /*age*/) const {
  return factor_ * linear().weights[index];
}

double MarginPerceptron::squared_norm() const {
  return factor_ * factor_ * LinearLearner::squared_norm();
}

double MarginPerceptron::augmented_squared_norm() const {
  return factor_ * factor_ * LinearLearner::augmented_squared_norm();
}

LearnerStateView MarginPerceptron::State() const {
  LearnerStateView state = LinearLearner::State();
  Append(factor_, state);
  Append(static_cast<double>(updates_), state);
  return state;
}

bool MarginPerceptron::Restore(LearnerState state) {
  StateReader reader(std::move(state));
  LinearWeights weights = LinearWeights::From(reader);
  const double factor = reader.Scalar();
  const uint64_t updates = reader.Count();
  if (!reader.Done() || !(factor > 0)) return false;
  linear() = std::move(weights);
  factor_ = factor;
  updates_ = updates;
  return true;
}

}  // namespace perceptrond
