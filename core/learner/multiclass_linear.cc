#include "core/learner/multiclass_linear.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/learner/state.h"
#include "core/vector/kernels.h"

namespace perceptrond {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

LinearWeights ZeroWeights(size_t size) {
  LinearWeights zero;
  zero.weights.resize(size);
  return zero;
}

}  // namespace

MulticlassLinear::MulticlassLinear(const LearnerSettings& settings, size_t size)
    : tie_rule_(settings.tie_rule),
      offset_value_(settings.offset_value),
      max_classes_(settings.classes.max),
      size_(size),
      weights_(settings.classes.initial, ZeroWeights(size)),
      known_(settings.classes.initial, true) {}

bool MulticlassLinear::HasClass(int32_t label) const {
  return label >= 0 && static_cast<size_t>(label) < known_.size() &&
         known_[static_cast<size_t>(label)];
}

void MulticlassLinear::AddClasses(size_t classes) {
  if (classes <= weights_.size()) return;
  weights_.resize(classes, ZeroWeights(size_));
  known_.resize(classes, false);
}

void MulticlassLinear::TakeUp(int32_t label) {
  AddClasses(static_cast<size_t>(label) + 1);
  known_[static_cast<size_t>(label)] = true;
}

double MulticlassLinear::Score(const Row& row) const { return Answer(row, 0); }

double MulticlassLinear::Answer(const Row& row, uint64_t age) const {
  double greatest = -kInfinity;
  for (size_t k = 0; k < weights_.size(); ++k) {
    if (known_[k]) greatest = std::max(greatest, AnswerOf(k, row, age));
  }
  return greatest == -kInfinity ? 0 : greatest;
}

void MulticlassLinear::Answers(const Row& row, uint64_t age, std::span<double> scores) const {
  for (size_t k = 0; k < weights_.size(); ++k)
    scores[k] = known_[k] ? AnswerOf(k, row, age) : std::numeric_limits<double>::quiet_NaN();
}

bool MulticlassLinear::IsWrong(double margin, int32_t predicted, int32_t label) const {
  switch (tie_rule_) {
    case TieRule::kMistake:
      return margin <= 0;
    case TieRule::kPositive:
      return predicted != label;
    case TieRule::kCorrect:
      return margin < 0;
  }
  return false;
}

Evaluation MulticlassLinear::Evaluate(const Row& row, int32_t label) const {
  Evaluation evaluation = EvaluateBy([&](size_t k) { return ScoreOf(k, row); }, label);
  evaluation.update = !HasClass(label) || Moves(evaluation.score, evaluation.mistake);
  evaluation.loss = Loss(evaluation.score);
  return evaluation;
}

bool MulticlassLinear::StaysFinite(int32_t label, double step, const Row& row) const {
  const auto number = static_cast<size_t>(label);
  if (number < weights_.size()) return weights_[number].StaysFinite(step, row, offset_value_);
  return std::abs(step * offset_value_) <= std::numeric_limits<float>::max() &&
         StepStaysFinite(step, row);
}

bool MulticlassLinear::CanUpdate(const Row& row, const Target& target,
                                 const Evaluation& evaluation) const {
  if (evaluation.rival < 0) return true;
  const double step = Step(row, target, evaluation);
  return StaysFinite(target.label, step, row) && StaysFinite(evaluation.rival, -step, row);
}

void MulticlassLinear::Update(const Row& row, const Target& target, const Evaluation& evaluation) {
  TakeUp(target.label);
  if (evaluation.rival < 0) return;
  const double step = Step(row, target, evaluation);
  weights_[static_cast<size_t>(target.label)].Add(step, row, offset_value_);
  weights_[static_cast<size_t>(evaluation.rival)].Add(-step, row, offset_value_);
}

double MulticlassLinear::AugmentedSquaredNorm(const Row& row) const {
  return SquaredNorm(row) + offset_value_ * offset_value_;
}

double MulticlassLinear::squared_norm() const {
  double sum = 0;
  for (const LinearWeights& one : weights_) sum += one.squared_norm.value();
  return sum;
}

double MulticlassLinear::augmented_squared_norm() const {
  double sum = squared_norm();
  for (const LinearWeights& one : weights_) sum += one.offset_weight * one.offset_weight;
  return sum;
}

double MulticlassLinear::answer_squared_norm(uint64_t /*age*/) const { return squared_norm(); }

Hypothesis MulticlassLinear::ClassHypothesis(size_t number, uint64_t /*age*/) const {
  return {weights_[number].weights, weights_[number].offset_weight * offset_value_};
}

void MulticlassLinear::Grow(size_t size) {
  if (size <= size_) return;
  size_ = size;
  for (LinearWeights& one : weights_) one.weights.resize(size);
}

LearnerStateView MulticlassLinear::State() const {
  LearnerStateView state;
  Append(static_cast<double>(size_), state);
  Append(static_cast<double>(weights_.size()), state);
  for (size_t k = 0; k < weights_.size(); ++k) {
    weights_[k].AppendTo(state);
    Append(known_[k] ? 1.0 : 0.0, state);
  }
  return state;
}

bool MulticlassLinear::Read(StateReader& state, Restored& restored) const {
  restored.size = state.Count();
  const uint64_t classes = state.Count();
  if (classes > max_classes_) return false;
  for (uint64_t k = 0; k < classes; ++k) {
    restored.weights.push_back(LinearWeights::From(state));
    if (restored.weights.back().weights.size() != restored.size) return false;
    restored.known.push_back(state.Scalar() != 0);
  }
  return true;
}

void MulticlassLinear::Take(Restored restored) {
  size_ = restored.size;
  weights_ = std::move(restored.weights);
  known_ = std::move(restored.known);
}

bool MulticlassLinear::Restore(LearnerState state) {
  StateReader reader(std::move(state));
  Restored restored;
  if (!Read(reader, restored) || !reader.Done()) return false;
  Take(std::move(restored));
  return true;
}

}  // namespace perceptrond
