#include "core/learner/pocket.h"

#include <utility>

#include "core/learner/state.h"

namespace perceptrond {

void Pocket::Update(const Row& row, const Target& target, const Judgement& judgement) {
  const uint64_t run = target.age - run_start_;
  if (run > best_run_) {
    pocket_ = linear();
    best_run_ = run;
  }
  Perceptron::Update(row, target, judgement);
  run_start_ = target.age + 1;
}

const LinearWeights& Pocket::Best(uint64_t age) const {
  return age > run_start_ && age - run_start_ > best_run_ ? linear() : pocket_;
}

double Pocket::Answer(const Row& row, uint64_t age) const {
  return Best(age).Score(row, offset_value());
}

double Pocket::answer_squared_norm(uint64_t age) const { return Best(age).squared_norm.value(); }

Hypothesis Pocket::AnswerHypothesis(uint64_t age) const {
  const LinearWeights& best = Best(age);
  return {best.weights, best.offset_weight * offset_value()};
}

void Pocket::Adopt(const Row& weights, float offset_weight, uint64_t age) {
  LinearLearner::Adopt(weights, offset_weight, age);
  pocket_ = linear();
  best_run_ = 0;
  run_start_ = age;
}

void Pocket::Grow(size_t size) {
  LinearLearner::Grow(size);
  if (size > pocket_.weights.size()) pocket_.weights.resize(size);
}

LearnerStateView Pocket::State() const {
  LearnerStateView state = LinearLearner::State();
  pocket_.AppendTo(state);
  Append(static_cast<double>(best_run_), state);
  Append(static_cast<double>(run_start_), state);
  return state;
}

bool Pocket::Restore(LearnerState state) {
  StateReader reader(std::move(state));
  LinearWeights weights = LinearWeights::From(reader);
  LinearWeights pocket = LinearWeights::From(reader);
  const uint64_t best_run = reader.Count();
  const uint64_t run_start = reader.Count();
  if (!reader.Done()) return false;
  linear() = std::move(weights);
  pocket_ = std::move(pocket);
  best_run_ = best_run;
  run_start_ = run_start;
  return true;
}

}  // namespace perceptrond
