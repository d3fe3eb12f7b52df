#include "core/learner/pocket.h"

#include <utility>

namespace perceptrond {

const ScoreVectors& Pocket::Best(uint64_t age) const {
  return age > run_start_ && Wins(age - run_start_) ? learned() : pocket_;
}

void Pocket::Score(const Row& row, uint64_t age, std::span<double> scores) const {
  Best(age).Scores(row, scores);
}

Hypothesis Pocket::MakeHypothesis(size_t k, uint64_t age) const {
  const LinearWeights& best = Best(age)[k];
  return {best.weights, best.bias_weight * learned().bias_input()};
}

std::optional<double> Pocket::PartOfUpdate(uint64_t update_age, uint64_t age) const {
  const bool newest = &Best(age) == &learned();
  if (!newest && best_run_ > 0 && pocket_end_ == 0) return std::nullopt;
  return newest || update_age < pocket_end_ ? 1 : 0;
}

void Pocket::BeforeUpdate(const LinearUpdate& update) {
  const uint64_t run = update.target.age - run_start_;
  if (!Wins(run)) return;
  pocket_ = learned();
  best_run_ = run;
  pocket_end_ = update.target.age;
}

void Pocket::AfterUpdate(const LinearUpdate& update) {
  run_start_ = update.target.age + 1;
  if (ratchet_ == 0) return;
  kept_.Push(update.row, update.target.label);
  if (kept_.size() > ratchet_) kept_.Pop();
  Compare();
}

size_t Pocket::Errors(const ScoreVectors& weights) const {
  ClassScores room(weights.count());
  const std::span<double> scores(room.data(), room.size());
  size_t errors = 0;
  for (size_t i = 0; i < kept_.size(); ++i) {
    const auto label = static_cast<int32_t>(kept_.coefficient(i));
    weights.Scores(kept_.row(i), scores);
    errors += weights.decision().Evaluate(scores, label).mistake ? 1 : 0;
  }
  return errors;
}

void Pocket::Compare() { ratchet_turns_ = ratchet_ == 0 || Errors(learned()) <= Errors(pocket_); }

void Pocket::WeightsReplaced(uint64_t age) {
  pocket_ = learned();
  best_run_ = 0;
  pocket_end_ = 0;
  run_start_ = age;
}

// A class that the newest weights have exists in the pocket too, with weights of zero there.
void Pocket::Resize() { pocket_.GrowLike(learned()); }

void Pocket::AppendTo(LearnerStateView& state) const {
  AppendWeights(pocket_, state);
  Append(static_cast<double>(best_run_), state);
  Append(static_cast<double>(run_start_), state);
  Append(kept_, state);
  // Left out at 0; older states do not have it.
  if (pocket_end_ > 0) Append(static_cast<double>(pocket_end_), state);
}

std::unique_ptr<LinearPredictor> Pocket::Read(StateReader& state, const ScoreVectors& read) const {
  std::unique_ptr<Pocket> restored(new Pocket(ratchet_, learned(), ReadWeights(state, read)));
  restored->best_run_ = state.Count();
  restored->run_start_ = state.Count();
  restored->kept_ = state.Rows(ratchet_, read.size());
  if (state.HasMoreScalars()) {
    restored->pocket_end_ = state.Count();
    // Zero is left out, and without a run nothing was superseded.
    if (restored->pocket_end_ == 0 || restored->best_run_ == 0) return nullptr;
  }
  for (size_t i = 0; i < restored->kept_.size(); ++i) {
    const double label = restored->kept_.coefficient(i);
    if (!(label >= -1 && label < static_cast<double>(read.max_count()) + 1) ||
        !read.Has(static_cast<int32_t>(label)))
      return nullptr;
  }
  return restored;
}

}  // namespace perceptrond
