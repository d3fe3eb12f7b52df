#include "core/learner/multiclass_arow.h"

#include <cmath>
#include <limits>
#include <utility>

#include "core/learner/state.h"
#include "core/vector/kernels.h"

namespace perceptrond {

MulticlassArow::MulticlassArow(const LearnerSettings& settings, size_t size)
    : MulticlassLinear(settings, size),
      regularization_(settings.regularization),
      variances_(classes(), Variances{FloatArray(size, 1.0F), 1}) {}

void MulticlassArow::AddClasses(size_t classes) {
  MulticlassLinear::AddClasses(classes);
  while (variances_.size() < this->classes()) variances_.push_back({FloatArray(size(), 1.0F), 1});
}

double MulticlassArow::Variance(const Row& row, int32_t label) const {
  const auto number = static_cast<size_t>(label);
  // A class that is new has learned nothing yet.
  if (number >= variances_.size()) return AugmentedSquaredNorm(row);
  const double b = offset_value();
  const Variances& variances = variances_[number];
  return WeightedSquaredNorm(variances.features, row) + variances.offset * b * b;
}

double MulticlassArow::Confidence(const Row& row, int32_t label, int32_t rival) const {
  return 1 / (Variance(row, label) + Variance(row, rival) + regularization_);
}

double MulticlassArow::Step(const Row& row, const Target& target,
                            const Evaluation& evaluation) const {
  return Loss(evaluation.score) * Confidence(row, target.label, evaluation.rival);
}

bool MulticlassArow::StaysFiniteAlongS(int32_t label, double step, const Row& row) const {
  const auto number = static_cast<size_t>(label);
  if (number >= variances_.size()) return StaysFinite(label, step, row);
  const LinearWeights& linear = weights(number);
  const Variances& variances = variances_[number];
  const double offset = linear.offset_weight + step * variances.offset * offset_value();
  return std::abs(offset) <= std::numeric_limits<float>::max() &&
         StaysFiniteAlong(linear.weights, step, variances.features, row);
}

bool MulticlassArow::CanUpdate(const Row& row, const Target& target,
                               const Evaluation& evaluation) const {
  if (evaluation.rival < 0) return true;
  const double step = Step(row, target, evaluation);
  return StaysFiniteAlongS(target.label, step, row) &&
         StaysFiniteAlongS(evaluation.rival, -step, row);
}

void MulticlassArow::Update(const Row& row, const Target& target, const Evaluation& evaluation) {
  TakeUp(target.label);
  if (evaluation.rival < 0) return;
  const double confidence = Confidence(row, target.label, evaluation.rival);
  const double step = Loss(evaluation.score) * confidence;
  // Only a new class can be right by more than 1 and yet an update.
  if (step == 0) return;
  Move(target.label, step, confidence, row);
  Move(evaluation.rival, -step, confidence, row);
}

void MulticlassArow::Move(int32_t label, double step, double confidence, const Row& row) {
  LinearWeights& linear = weights(static_cast<size_t>(label));
  Variances& variances = variances_[static_cast<size_t>(label)];
  const double b = offset_value();
  const double moved = variances.offset * b;
  AddScaledAlong(linear.weights, step, variances.features, row, linear.squared_norm);
  linear.offset_weight = static_cast<float>(linear.offset_weight + step * moved);
  ShrinkVariances(variances.features, confidence, row);
  variances.offset = static_cast<float>(variances.offset - confidence * moved * moved);
}

void MulticlassArow::Grow(size_t size) {
  MulticlassLinear::Grow(size);
  for (Variances& variances : variances_) variances.features.resize(this->size(), 1.0F);
}

LearnerStateView MulticlassArow::State() const {
  LearnerStateView state = MulticlassLinear::State();
  for (const Variances& variances : variances_) {
    Append(variances.features, state);
    Append(variances.offset, state);
  }
  return state;
}

bool MulticlassArow::Restore(LearnerState state) {
  StateReader reader(std::move(state));
  Restored restored;
  if (!Read(reader, restored)) return false;
  std::vector<Variances> variances;
  for (size_t k = 0; k < restored.weights.size(); ++k) {
    FloatArray features = reader.Array();
    variances.push_back({std::move(features), reader.Scalar()});
  }
  if (!reader.Done()) return false;
  Take(std::move(restored));
  variances_ = std::move(variances);
  return true;
}

}  // namespace perceptrond
