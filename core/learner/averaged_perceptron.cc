#include "core/learner/averaged_perceptron.h"

#include <algorithm>
#include <utility>

#include "core/learner/state.h"
#include "core/vector/kernels.h"

namespace perceptrond {
AveragedPerceptron::AveragedPerceptron(const LearnerSettings& settings, size_t size)
    : Perceptron(settings, size) {
  late_.weights.resize(size);
}

bool AveragedPerceptron::CanUpdate(const Row& row, const Target& target,
                                   const Evaluation& evaluation) const {
  const double step = target.label * Step(row, target.label * evaluation.score, target.weight);
  return linear().StaysFinite(step, row, offset_value()) &&
         late_.StaysFinite(step * Since(target.age), row, offset_value());
}

void AveragedPerceptron::Update(const Row& row, const Target& target,
                                const Evaluation& evaluation) {
  const double step = target.label * Step(row, target.label * evaluation.score, target.weight);
  product_.Add(-DotAt(linear().weights, late_.weights, row));
  linear().Add(step, row, offset_value());
  late_.Add(step * Since(target.age), row, offset_value());
  product_.Add(DotAt(linear().weights, late_.weights, row));
}

double AveragedPerceptron::Answer(const Row& row, uint64_t age) const {
  return Score(row) - Share(age) * late_.Score(row, offset_value());
}

double AveragedPerceptron::answer_squared_norm(uint64_t age) const {
  const double share = Share(age);
  const double norm =
      squared_norm() - 2 * share * product_.value() + share * share * late_.squared_norm.value();
  return std::max(0.0, norm);
}

Hypothesis AveragedPerceptron::AnswerHypothesis(uint64_t age) const {
  const double share = Share(age);
  Hypothesis average = LinearLearner::AnswerHypothesis(age);
  for (size_t i = 0; i < average.weights.size(); ++i)
    average.weights[i] = static_cast<float>(average.weights[i] - share * late_.weights[i]);
  average.offset -= share * late_.offset_weight * offset_value();
  return average;
}

std::optional<double> AveragedPerceptron::AnswerWeight(uint32_t index, uint64_t age) const {
  return linear().weights[index] - Share(age) * late_.weights[index];
}

std::optional<double> AveragedPerceptron::AnswerShare(const PastUpdate& update,
                                                      uint64_t age) const {
  const double part = 1 - Share(age) * Since(update.target.age);
  return part * *Perceptron::AnswerShare(update, age);
}

void AveragedPerceptron::ReplaceWeights(const Row& weights, float offset_weight, uint64_t age) {
  LinearLearner::ReplaceWeights(weights, offset_weight, age);
  const size_t size = late_.weights.size();
  late_ = LinearWeights();
  late_.weights.resize(size);
  product_ = CompensatedSum();
  origin_ = age;
}

void AveragedPerceptron::Grow(size_t size) {
  LinearLearner::Grow(size);
  if (size > late_.weights.size()) late_.weights.resize(size);
}

LearnerStateView AveragedPerceptron::State() const {
  LearnerStateView state = LinearLearner::State();
  late_.AppendTo(state);
  Append(product_, state);
  // Left out at 0, as it was before there was adoption.
  if (origin_ > 0) Append(static_cast<double>(origin_), state);
  return state;
}

bool AveragedPerceptron::Restore(LearnerState state) {
  StateReader reader(std::move(state));
  LinearWeights weights = LinearWeights::From(reader);
  LinearWeights late = LinearWeights::From(reader);
  const CompensatedSum product = reader.Sum();
  const bool adopted = reader.HasMoreScalars();
  const uint64_t origin = adopted ? reader.Count() : 0;
  // Zero is not stored.
  if (!reader.Done() || (adopted && origin == 0)) return false;
  linear() = std::move(weights);
  late_ = std::move(late);
  product_ = product;
  origin_ = origin;
  return true;
}

}  // namespace perceptrond
