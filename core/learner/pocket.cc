#include "core/learner/pocket.h"

#include <utility>

#include "core/learner/state.h"

namespace perceptrond {

void Pocket::Update(const Row& row, const Target& target, const Evaluation& evaluation) {
  const uint64_t run = target.age - run_start_;
  if (Wins(run)) {
    pocket_ = linear();
    best_run_ = run;
    pocket_end_ = target.age;
  }
  Perceptron::Update(row, target, evaluation);
  run_start_ = target.age + 1;
  if (ratchet_ == 0) return;
  Keep(row, target.label);
  Compare();
}

void Pocket::Keep(const Row& row, int32_t label) {
  kept_.Push(row, label);
  if (kept_.size() > ratchet_) kept_.Pop();
}

size_t Pocket::Errors(const LinearWeights& weights) const {
  size_t errors = 0;
  for (size_t i = 0; i < kept_.size(); ++i) {
    const double score = weights.Score(kept_.row(i), offset_value());
    const int32_t label = kept_.coefficient(i) < 0 ? -1 : 1;
    errors += IsMistake(score, label, tie_rule()) ? 1 : 0;
  }
  return errors;
}

void Pocket::Compare() { ratchet_turns_ = ratchet_ == 0 || Errors(linear()) <= Errors(pocket_); }

const LinearWeights& Pocket::Best(uint64_t age) const {
  return age > run_start_ && Wins(age - run_start_) ? linear() : pocket_;
}

double Pocket::Answer(const Row& row, uint64_t age) const {
  return Best(age).Score(row, offset_value());
}

double Pocket::answer_squared_norm(uint64_t age) const { return Best(age).squared_norm.value(); }

Hypothesis Pocket::AnswerHypothesis(uint64_t age) const {
  const LinearWeights& best = Best(age);
  return {best.weights, best.offset_weight * offset_value()};
}

std::optional<double> Pocket::AnswerWeight(uint32_t index, uint64_t age) const {
  return Best(age).weights[index];
}

std::optional<double> Pocket::AnswerShare(const PastUpdate& update, uint64_t age) const {
  const bool present = &Best(age) == &linear();
  if (!present && best_run_ > 0 && pocket_end_ == 0) return std::nullopt;
  return present || update.target.age < pocket_end_ ? Perceptron::AnswerShare(update, age) : 0;
}

void Pocket::ReplaceWeights(const Row& weights, float offset_weight, uint64_t age) {
  LinearLearner::ReplaceWeights(weights, offset_weight, age);
  pocket_ = linear();
  best_run_ = 0;
  pocket_end_ = 0;
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
  Append(kept_, state);
  // Left out at 0; journals of before it was kept have none.
  if (pocket_end_ > 0) Append(static_cast<double>(pocket_end_), state);
  return state;
}

bool Pocket::Restore(LearnerState state) {
  StateReader reader(std::move(state));
  LinearWeights weights = LinearWeights::From(reader);
  LinearWeights pocket = LinearWeights::From(reader);
  const uint64_t best_run = reader.Count();
  const uint64_t run_start = reader.Count();
  RowStore kept = reader.Rows(ratchet_);
  const uint64_t pocket_end = reader.HasMoreScalars() ? reader.Count() : 0;
  if (!reader.Done() || (pocket_end > 0 && best_run == 0)) return false;
  linear() = std::move(weights);
  pocket_ = std::move(pocket);
  best_run_ = best_run;
  pocket_end_ = pocket_end;
  run_start_ = run_start;
  kept_ = std::move(kept);
  Compare();
  return true;
}

}  // namespace perceptrond
