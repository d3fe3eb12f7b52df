#include "core/learner/averaged.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/vector/kernels.h"

namespace perceptrond {

void Averaged::Score(const Row& row, uint64_t age, std::span<double> scores) const {
  LinearPredictor::Score(row, age, scores);
  const double share = Share(age);
  for (size_t k = 0; k < scores.size(); ++k) {
    // NaN, for a class that does not exist, stays.
    if (!std::isnan(scores[k])) scores[k] -= share * late_[k].Score(row, learned().bias_input());
  }
}

double Averaged::squared_norm(uint64_t age) const {
  const double share = Share(age);
  double late = 0;
  for (const LinearWeights& one : late_) late += one.squared_norm.value();
  return std::max(0.0,
                  SquaredNorm(learned()) - 2 * share * product_.value() + share * share * late);
}

Hypothesis Averaged::MakeHypothesis(size_t k, uint64_t age) const {
  const double share = Share(age);
  const LinearWeights& late = late_[k];
  Hypothesis average = LinearPredictor::MakeHypothesis(k, age);
  for (size_t i = 0; i < average.weights.size(); ++i)
    average.weights[i] = static_cast<float>(average.weights[i] - share * late.weights[i]);
  average.bias -= share * late.bias_weight * learned().bias_input();
  return average;
}

double Averaged::FeatureWeight(size_t k, uint32_t index, uint64_t age) const {
  return learned()[k].weights[index] - Share(age) * late_[k].weights[index];
}

void Averaged::WeightsReplaced(uint64_t age) {
  late_.clear();
  Resize();
  product_ = CompensatedSum();
  origin_ = age;
}

bool Averaged::CanUpdate(const LinearUpdate& update) const {
  const double b = learned().bias_input();
  return std::all_of(update.moves.begin(), update.moves.end(), [&](const Move& move) {
    const double length = move.length * Since(update.target.age);
    if (move.vector < late_.size()) return late_[move.vector].StaysFinite(length, update.row, b);
    return std::abs(length * b) <= std::numeric_limits<float>::max() &&
           StepStaysFinite(length, update.row);
  });
}

void Averaged::BeforeUpdate(const LinearUpdate& update) {
  products_before_.clear();
  for (const Move& move : update.moves) {
    products_before_.push_back(
        DotAt(learned()[move.vector].weights, late_[move.vector].weights, update.row));
  }
}

void Averaged::AfterUpdate(const LinearUpdate& update) {
  for (size_t i = 0; i < update.moves.size(); ++i) {
    const Move& move = update.moves[i];
    LinearWeights& late = late_[move.vector];
    product_.Add(-products_before_[i]);
    late.Add(move.length * Since(update.target.age), update.row, learned().bias_input());
    product_.Add(DotAt(learned()[move.vector].weights, late.weights, update.row));
  }
}

void Averaged::Resize() {
  late_.resize(learned().count());
  for (LinearWeights& one : late_) one.weights.resize(learned().size());
}

void Averaged::AppendTo(LearnerStateView& state) const {
  for (const LinearWeights& one : late_) Append(one, state);
  Append(product_, state);
  // Left out at 0, so that a state without replaced weights has one form.
  if (origin_ > 0) Append(static_cast<double>(origin_), state);
}

std::unique_ptr<LinearPredictor> Averaged::Read(StateReader& state,
                                                const ScoreVectors& read) const {
  auto restored = std::make_unique<Averaged>(learned());
  restored->late_.clear();
  for (size_t k = 0; k < read.count(); ++k) restored->late_.push_back(LinearWeights::Read(state));
  restored->product_ = state.Sum();
  if (state.HasMoreScalars()) {
    restored->origin_ = state.Count();
    // Zero is left out.
    if (restored->origin_ == 0) return nullptr;
  }
  return restored;
}

}  // namespace perceptrond
