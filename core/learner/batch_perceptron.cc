#include "core/learner/batch_perceptron.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/learner/state.h"
#include "core/vector/kernels.h"

namespace perceptrond {

BatchPerceptron::BatchPerceptron(const LearnerSettings& settings, size_t size)
    : LinearRule(settings, size), step_size_(settings.step_size), mini_batch_(settings.mini_batch) {
  sum_.weights.resize(size);
}

// What V is when the batch ends, w can take in.
bool BatchPerceptron::CanUpdate(const Row& row, const Target& target,
                                const Evaluation& /*judgement*/) const {
  constexpr double kMax = std::numeric_limits<float>::max();
  const double step = target.label * target.weight;
  const double offset = sum_.offset_weight + step * offset_value();
  return std::abs(offset) <= kMax &&
         std::abs(linear().offset_weight + step_size_ * static_cast<float>(offset)) <= kMax &&
         StaysFiniteBy(linear().weights, step_size_, sum_.weights, step, row);
}

void BatchPerceptron::Update(const Row& row, const Target& target,
                             const Evaluation& /*judgement*/) {
  if (waiting_++ == 0) first_age_ = target.age;
  for (size_t i = 0; i < row.size; ++i) {
    if (sum_.weights[row.index(i)] == 0) places_.push_back(row.index(i));
  }
  sum_.Add(target.label * target.weight, row, offset_value());
}

std::optional<double> BatchPerceptron::AnswerShare(const PastUpdate& update, uint64_t age) const {
  if (waiting_ > 0 && update.target.age >= first_age_) return 0;
  return step_size_ * *LinearLearner::AnswerShare(update, age);
}

bool BatchPerceptron::BatchIsFull(uint64_t age) const {
  return waiting_ > 0 && mini_batch_ > 0 && age / mini_batch_ > first_age_ / mini_batch_;
}

void BatchPerceptron::EndBatch() {
  // In an order that a restored learner repeats.
  std::sort(places_.begin(), places_.end());
  places_.erase(std::unique(places_.begin(), places_.end()), places_.end());
  TakeIn(linear().weights, step_size_, sum_.weights, places_, linear().squared_norm);
  linear().offset_weight =
      static_cast<float>(linear().offset_weight + step_size_ * sum_.offset_weight);
  places_.clear();
  sum_.offset_weight = 0;
  sum_.squared_norm = CompensatedSum();
  waiting_ = 0;
  first_age_ = 0;
}

void BatchPerceptron::Grow(size_t size) {
  LinearLearner::Grow(size);
  if (size > sum_.weights.size()) sum_.weights.resize(size);
}

LearnerStateView BatchPerceptron::State() const {
  LearnerStateView state = LinearLearner::State();
  sum_.AppendTo(state);
  Append(static_cast<double>(waiting_), state);
  Append(static_cast<double>(first_age_), state);
  return state;
}

bool BatchPerceptron::Restore(LearnerState state) {
  StateReader reader(std::move(state));
  LinearWeights weights = LinearWeights::From(reader);
  LinearWeights sum = LinearWeights::From(reader);
  const uint64_t waiting = reader.Count();
  const uint64_t first_age = reader.Count();
  if (!reader.Done()) return false;
  linear() = std::move(weights);
  sum_ = std::move(sum);
  waiting_ = waiting;
  first_age_ = first_age;
  places_.clear();
  for (uint32_t i = 0; i < sum_.weights.size(); ++i) {
    if (sum_.weights[i] != 0) places_.push_back(i);
  }
  return true;
}

}  // namespace perceptrond
