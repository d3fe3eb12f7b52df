#include "core/learner/multiclass_averaged_perceptron.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/learner/state.h"
#include "core/vector/kernels.h"

namespace perceptrond {
namespace {

// The part of u in w~; none before the first example.
double Share(uint64_t age) { return age == 0 ? 0 : 1 / static_cast<double>(age); }

}  // namespace

MulticlassAveragedPerceptron::MulticlassAveragedPerceptron(const LearnerSettings& settings,
                                                           size_t size)
    : MulticlassPerceptron(settings, size), late_(classes()) {
  for (LinearWeights& late : late_) late.weights.resize(size);
}

void MulticlassAveragedPerceptron::AddClasses(size_t classes) {
  MulticlassPerceptron::AddClasses(classes);
  while (late_.size() < this->classes()) late_.emplace_back().weights.resize(size());
}

bool MulticlassAveragedPerceptron::CanUpdate(const Row& row, const Target& target,
                                             const Evaluation& evaluation) const {
  if (!MulticlassPerceptron::CanUpdate(row, target, evaluation)) return false;
  if (evaluation.rival < 0) return true;
  const double step = Step(row, target, evaluation) * static_cast<double>(target.age);
  const double b = offset_value();
  const auto label = static_cast<size_t>(target.label);
  const bool own = label < late_.size() ? late_[label].StaysFinite(step, row, b)
                                        : std::abs(step * b) <= std::numeric_limits<float>::max() &&
                                              StepStaysFinite(step, row);
  return own && late_[static_cast<size_t>(evaluation.rival)].StaysFinite(-step, row, b);
}

void MulticlassAveragedPerceptron::Update(const Row& row, const Target& target,
                                          const Evaluation& evaluation) {
  TakeUp(target.label);
  if (evaluation.rival < 0) return;
  const double step = Step(row, target, evaluation);
  Move(target.label, step, target.age, row);
  Move(evaluation.rival, -step, target.age, row);
}

void MulticlassAveragedPerceptron::Move(int32_t label, double step, uint64_t age, const Row& row) {
  LinearWeights& now = weights(static_cast<size_t>(label));
  LinearWeights& late = late_[static_cast<size_t>(label)];
  product_.Add(-DotAt(now.weights, late.weights, row));
  now.Add(step, row, offset_value());
  late.Add(step * static_cast<double>(age), row, offset_value());
  product_.Add(DotAt(now.weights, late.weights, row));
}

double MulticlassAveragedPerceptron::AnswerOf(size_t number, const Row& row, uint64_t age) const {
  return ScoreOf(number, row) - Share(age) * late_[number].Score(row, offset_value());
}

double MulticlassAveragedPerceptron::answer_squared_norm(uint64_t age) const {
  const double share = Share(age);
  double late = 0;
  for (const LinearWeights& one : late_) late += one.squared_norm.value();
  return std::max(0.0, squared_norm() - 2 * share * product_.value() + share * share * late);
}

Hypothesis MulticlassAveragedPerceptron::ClassHypothesis(size_t number, uint64_t age) const {
  const double share = Share(age);
  const LinearWeights& late = late_[number];
  Hypothesis average = MulticlassPerceptron::ClassHypothesis(number, age);
  for (size_t i = 0; i < average.weights.size(); ++i)
    average.weights[i] = static_cast<float>(average.weights[i] - share * late.weights[i]);
  average.offset -= share * late.offset_weight * offset_value();
  return average;
}

double MulticlassAveragedPerceptron::ClassWeight(size_t number, uint32_t index,
                                                 uint64_t age) const {
  return weights(number).weights[index] - Share(age) * late_[number].weights[index];
}

void MulticlassAveragedPerceptron::Grow(size_t size) {
  MulticlassPerceptron::Grow(size);
  for (LinearWeights& late : late_) late.weights.resize(this->size());
}

LearnerStateView MulticlassAveragedPerceptron::State() const {
  LearnerStateView state = MulticlassPerceptron::State();
  for (const LinearWeights& late : late_) late.AppendTo(state);
  Append(product_, state);
  return state;
}

bool MulticlassAveragedPerceptron::Restore(LearnerState state) {
  StateReader reader(std::move(state));
  Restored restored;
  if (!Read(reader, restored)) return false;
  std::vector<LinearWeights> late;
  for (size_t k = 0; k < restored.weights.size(); ++k) late.push_back(LinearWeights::From(reader));
  const CompensatedSum product = reader.Sum();
  if (!reader.Done()) return false;
  Take(std::move(restored));
  late_ = std::move(late);
  product_ = product;
  return true;
}

}  // namespace perceptrond
