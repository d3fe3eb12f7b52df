#include "core/learner/multiclass_pocket.h"

#include <utility>

#include "core/learner/state.h"

namespace perceptrond {

MulticlassPocket::MulticlassPocket(const LearnerSettings& settings, size_t size)
    : MulticlassPerceptron(settings, size),
      ratchet_(settings.ratchet_examples),
      pocket_(classes()) {
  for (LinearWeights& one : pocket_) one.weights.resize(size);
}

void MulticlassPocket::AddClasses(size_t classes) {
  MulticlassPerceptron::AddClasses(classes);
  while (pocket_.size() < this->classes()) pocket_.emplace_back().weights.resize(size());
}

void MulticlassPocket::Update(const Row& row, const Target& target, const Evaluation& evaluation) {
  const uint64_t run = target.age - run_start_;
  if (Wins(run)) {
    for (size_t k = 0; k < classes(); ++k) pocket_[k] = weights(k);
    best_run_ = run;
  }
  MulticlassPerceptron::Update(row, target, evaluation);
  run_start_ = target.age + 1;
  if (ratchet_ == 0) return;
  Keep(row, target.label);
  Compare();
}

void MulticlassPocket::Keep(const Row& row, int32_t label) {
  kept_.Push(row, label);
  if (kept_.size() > ratchet_) kept_.Pop();
}

size_t MulticlassPocket::Errors(bool pocket) const {
  size_t errors = 0;
  for (size_t i = 0; i < kept_.size(); ++i) {
    const Row row = kept_.row(i);
    const auto label = static_cast<int32_t>(kept_.coefficient(i));
    const auto score = [&](size_t k) {
      return pocket ? pocket_[k].Score(row, offset_value()) : ScoreOf(k, row);
    };
    errors += EvaluateBy(score, label).mistake ? 1 : 0;
  }
  return errors;
}

void MulticlassPocket::Compare() {
  ratchet_turns_ = ratchet_ == 0 || Errors(/*pocket=*/false) <= Errors(/*pocket=*/true);
}

const LinearWeights& MulticlassPocket::Best(size_t number, uint64_t age) const {
  // Before the first example they are the same; and at 0 the weights that it learns with are asked
  // for (MulticlassLinear::Score).
  if (age == 0) return weights(number);
  return age > run_start_ && Wins(age - run_start_) ? weights(number) : pocket_[number];
}

double MulticlassPocket::AnswerOf(size_t number, const Row& row, uint64_t age) const {
  return Best(number, age).Score(row, offset_value());
}

double MulticlassPocket::answer_squared_norm(uint64_t age) const {
  double sum = 0;
  for (size_t k = 0; k < classes(); ++k) sum += Best(k, age).squared_norm.value();
  return sum;
}

Hypothesis MulticlassPocket::ClassHypothesis(size_t number, uint64_t age) const {
  const LinearWeights& best = Best(number, age);
  return {best.weights, best.offset_weight * offset_value()};
}

double MulticlassPocket::ClassWeight(size_t number, uint32_t index, uint64_t age) const {
  return Best(number, age).weights[index];
}

void MulticlassPocket::Grow(size_t size) {
  MulticlassPerceptron::Grow(size);
  for (LinearWeights& one : pocket_) one.weights.resize(this->size());
}

LearnerStateView MulticlassPocket::State() const {
  LearnerStateView state = MulticlassPerceptron::State();
  for (const LinearWeights& one : pocket_) one.AppendTo(state);
  Append(static_cast<double>(best_run_), state);
  Append(static_cast<double>(run_start_), state);
  Append(kept_, state);
  return state;
}

bool MulticlassPocket::Restore(LearnerState state) {
  StateReader reader(std::move(state));
  Restored restored;
  if (!Read(reader, restored)) return false;
  std::vector<LinearWeights> pocket;
  for (size_t k = 0; k < restored.weights.size(); ++k)
    pocket.push_back(LinearWeights::From(reader));
  const uint64_t best_run = reader.Count();
  const uint64_t run_start = reader.Count();
  RowStore kept = reader.Rows(ratchet_, restored.size);
  if (!reader.Done()) return false;
  for (size_t i = 0; i < kept.size(); ++i) {
    const double label = kept.coefficient(i);
    if (!(label >= 0 && label < static_cast<double>(restored.weights.size()))) return false;
  }
  Take(std::move(restored));
  pocket_ = std::move(pocket);
  best_run_ = best_run;
  run_start_ = run_start;
  kept_ = std::move(kept);
  Compare();
  return true;
}

}  // namespace perceptrond
