#include "core/learner/perceptron.h"

#include <cmath>
#include <limits>

#include "core/vector/kernels.h"

namespace perceptrond {

Perceptron::Perceptron(const LearnerSettings& settings, size_t size)
    : step_size_(settings.step_size),
      tie_rule_(settings.tie_rule),
      offset_value_(settings.offset_value),
      weights_(size) {
  const StartingWeights& start = settings.start;
  AddScaled(weights_, 1, Row{start.indices.data(), start.values.data(), start.indices.size()},
            squared_norm_);
  if (offset_value_ != 0) offset_weight_ = static_cast<float>(start.offset / offset_value_);
}

double Perceptron::Score(const Row& row) const {
  return Dot(weights_, row) + offset_weight_ * offset_value_;
}

int32_t Perceptron::Predict(double score) const {
  if (score == 0) return tie_rule_ == TieRule::kPositive ? 1 : -1;
  return score > 0 ? 1 : -1;
}

Judgement Perceptron::Judge(const Row& row, int32_t label) const {
  Judgement judgement;
  judgement.score = Score(row);
  judgement.predicted = Predict(judgement.score);
  const double signed_score = label * judgement.score;
  switch (tie_rule_) {
    case TieRule::kMistake:
      judgement.mistake = signed_score <= 0;
      break;
    case TieRule::kPositive:
      judgement.mistake = judgement.predicted != label;
      break;
    case TieRule::kCorrect:
      judgement.mistake = signed_score < 0;
      break;
  }
  return judgement;
}

bool Perceptron::CanUpdate(const Row& row, int32_t label, const Judgement& /*judgement*/) const {
  const double step = step_size_ * label;
  return std::abs(offset_weight_ + step * offset_value_) <= std::numeric_limits<float>::max() &&
         StaysFinite(weights_, step, row);
}

void Perceptron::Update(const Row& row, int32_t label, const Judgement& /*judgement*/) {
  const double step = step_size_ * label;
  AddScaled(weights_, step, row, squared_norm_);
  offset_weight_ = static_cast<float>(offset_weight_ + step * offset_value_);
}

void Perceptron::Grow(size_t size) {
  if (size > weights_.size()) weights_.resize(size);
}

LearnerStateView Perceptron::State() const {
  return {{std::span<const float>(weights_)},
          {offset_weight_, squared_norm_.sum, squared_norm_.carry}};
}

bool Perceptron::Restore(LearnerState state) {
  if (state.arrays.size() != 1 || state.scalars.size() != 3) return false;
  weights_ = std::move(state.arrays[0]);
  offset_weight_ = state.scalars[0];
  squared_norm_ = {state.scalars[1], state.scalars[2]};
  return true;
}

}  // namespace perceptrond
