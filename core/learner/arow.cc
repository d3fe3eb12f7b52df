#include "core/learner/arow.h"

#include <cmath>
#include <limits>
#include <utility>

#include "core/learner/state.h"
#include "core/vector/kernels.h"

namespace perceptrond {

Arow::Arow(const LearnerSettings& settings, size_t size)
    : LinearRule(settings, size),
      regularization_(settings.regularization),
      variances_(size, 1.0F) {}

double Arow::Confidence(const Row& row) const {
  const double b = offset_value();
  const double variance = WeightedSquaredNorm(variances_, row) + offset_variance_ * b * b;
  return 1 / (variance + regularization_);
}

double Arow::Step(const Row& row, double signed_score, double /*weight*/) const {
  return Loss(signed_score) * Confidence(row);
}

bool Arow::CanUpdate(const Row& row, const Target& target, const Evaluation& evaluation) const {
  const double step = target.label * Step(row, target.label * evaluation.score, target.weight);
  const double offset = linear().offset_weight + step * offset_variance_ * offset_value();
  return std::abs(offset) <= std::numeric_limits<float>::max() &&
         StaysFiniteAlong(linear().weights, step, variances_, row);
}

void Arow::Update(const Row& row, const Target& target, const Evaluation& evaluation) {
  const double confidence = Confidence(row);
  const double step = target.label * Loss(target.label * evaluation.score) * confidence;
  LinearWeights& weights = linear();
  AddScaledAlong(weights.weights, step, variances_, row, weights.squared_norm);
  weights.offset_weight =
      static_cast<float>(weights.offset_weight + step * offset_variance_ * offset_value());
  ShrinkVariances(variances_, confidence, row);
  const double b = offset_value();
  offset_variance_ = static_cast<float>(offset_variance_ -
                                        confidence * offset_variance_ * offset_variance_ * b * b);
}

void Arow::Grow(size_t size) {
  LinearLearner::Grow(size);
  if (size > variances_.size()) variances_.resize(size, 1.0F);
}

LearnerStateView Arow::State() const {
  LearnerStateView state = LinearLearner::State();
  Append(variances_, state);
  Append(offset_variance_, state);
  return state;
}

bool Arow::Restore(LearnerState state) {
  StateReader reader(std::move(state));
  LinearWeights weights = LinearWeights::From(reader);
  FloatArray variances = reader.Array();
  const double offset_variance = reader.Scalar();
  if (!reader.Done()) return false;
  linear() = std::move(weights);
  variances_ = std::move(variances);
  offset_variance_ = offset_variance;
  return true;
}

}  // namespace perceptrond
