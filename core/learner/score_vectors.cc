#include "core/learner/score_vectors.h"

#include <cmath>
#include <limits>
#include <utility>

#include "core/sync/cancellation.h"

namespace perceptrond {

bool LinearWeights::StaysFinite(double step, const Row& row, double bias_input) const {
  return std::abs(bias_weight + step * bias_input) <= std::numeric_limits<float>::max() &&
         perceptrond::StaysFinite(weights, step, row);
}

void LinearWeights::Add(double step, const Row& row, double bias_input) {
  AddScaled(weights, step, row, squared_norm);
  bias_weight = static_cast<float>(bias_weight + step * bias_input);
}

LinearWeights LinearWeights::Read(StateReader& state) {
  LinearWeights read;
  read.weights = state.Array();
  read.bias_weight = state.Scalar();
  read.squared_norm = state.Sum();
  return read;
}

ScoreVectors::ScoreVectors(const LearnerSettings& settings, size_t size)
    : decision_{settings.is_multiclass(), settings.tie_rule},
      bias_input_(settings.bias_input),
      max_count_(settings.is_multiclass() ? settings.classes.max : 1),
      size_(size),
      vectors_(settings.is_multiclass() ? settings.classes.initial : 1, LinearWeights(size)),
      exists_(vectors_.size(), true) {
  for (size_t k = 0; k < settings.start.vectors.size(); ++k) {
    const StartingWeights::Vector& start = settings.start.vectors[k];
    Replace(k, {start.indices.data(), start.values.data(), start.indices.size()},
            bias_input_ != 0 ? static_cast<float>(start.bias / bias_input_) : 0);
  }
}

ScoreVectors::ScoreVectors(const ScoreVectors& like, size_t size,
                           std::vector<LinearWeights> vectors, std::vector<bool> exists)
    : decision_(like.decision_),
      bias_input_(like.bias_input_),
      max_count_(like.max_count_),
      size_(size),
      vectors_(std::move(vectors)),
      exists_(std::move(exists)) {}

bool ScoreVectors::Has(int32_t label) const {
  if (!is_multiclass()) return label == 1 || label == -1;
  return label >= 0 && static_cast<size_t>(label) < exists_.size() &&
         exists_[static_cast<size_t>(label)];
}

void ScoreVectors::Scores(const Row& row, std::span<double> scores) const {
  // Few scores are one piece of work, which the caller counts.
  constexpr size_t kFew = size_t{1} << 18;
  const bool many = vectors_.size() > kFew / (row.size + 1);
  for (size_t k = 0; k < vectors_.size(); ++k) {
    const bool scored = exists_[k] && (!many || KeepGoing(row.size));
    scores[k] = scored ? Score(k, row) : std::numeric_limits<double>::quiet_NaN();
  }
}

bool ScoreVectors::StaysFinite(size_t k, double step, const Row& row) const {
  if (k < vectors_.size()) return vectors_[k].StaysFinite(step, row, bias_input_);
  return std::abs(step * bias_input_) <= std::numeric_limits<float>::max() &&
         StepStaysFinite(step, row);
}

void ScoreVectors::ApplyScale() {
  for (LinearWeights& one : vectors_) {
    one.squared_norm = CompensatedSum();
    Scale(one.weights, scale_, one.squared_norm);
    one.bias_weight = static_cast<float>(one.bias_weight * scale_);
  }
  scale_ = 1;
}

void ScoreVectors::AddClass(int32_t label) {
  const auto k = static_cast<size_t>(label);
  if (k >= vectors_.size()) {
    vectors_.resize(k + 1, LinearWeights(size_));
    exists_.resize(k + 1, false);
  }
  exists_[k] = true;
}

void ScoreVectors::Grow(size_t size) {
  if (size <= size_) return;
  size_ = size;
  for (LinearWeights& one : vectors_) one.weights.resize(size);
}

void ScoreVectors::GrowLike(const ScoreVectors& other) {
  Grow(other.size_);
  vectors_.resize(other.vectors_.size(), LinearWeights(size_));
  exists_ = other.exists_;
}

void ScoreVectors::Replace(size_t k, const Row& weights, float bias_weight) {
  LinearWeights& one = vectors_[k];
  std::fill(one.weights.begin(), one.weights.end(), 0.0F);
  one.squared_norm = CompensatedSum();
  AddScaled(one.weights, 1, weights, one.squared_norm);
  one.bias_weight = bias_input_ != 0 ? bias_weight : 0;
  scale_ = 1;
}

double SquaredNorm(const ScoreVectors& vectors) {
  double sum = 0;
  for (size_t k = 0; k < vectors.count(); ++k) sum += vectors[k].squared_norm.value();
  return vectors.scale() * vectors.scale() * sum;
}

double AugmentedSquaredNorm(const ScoreVectors& vectors) {
  double sum = 0;
  for (size_t k = 0; k < vectors.count(); ++k) sum += vectors[k].squared_norm.value();
  for (size_t k = 0; k < vectors.count(); ++k)
    sum += vectors[k].bias_weight * vectors[k].bias_weight;
  return vectors.scale() * vectors.scale() * sum;
}

void Append(const LinearWeights& one, LearnerStateView& state) {
  Append(one.weights, state);
  Append(one.bias_weight, state);
  Append(one.squared_norm, state);
}

void Append(const ScoreVectors& vectors, LearnerStateView& state) {
  if (!vectors.is_multiclass()) return AppendWeights(vectors, state);
  Append(static_cast<double>(vectors.size()), state);
  Append(static_cast<double>(vectors.count()), state);
  for (size_t k = 0; k < vectors.count(); ++k) {
    Append(vectors[k], state);
    Append(vectors.Has(static_cast<int32_t>(k)) ? 1.0 : 0.0, state);
  }
}

void AppendWeights(const ScoreVectors& vectors, LearnerStateView& state) {
  for (size_t k = 0; k < vectors.count(); ++k) Append(vectors[k], state);
}

std::optional<ScoreVectors> ReadScoreVectors(StateReader& state, const ScoreVectors& like) {
  std::vector<LinearWeights> vectors;
  std::vector<bool> exists;
  if (!like.is_multiclass()) {
    vectors.push_back(LinearWeights::Read(state));
    const size_t size = vectors[0].weights.size();
    return ScoreVectors(like, size, std::move(vectors), {true});
  }
  const uint64_t size = state.Count();
  const uint64_t count = state.Count();
  if (count > like.max_count()) return std::nullopt;
  for (uint64_t k = 0; k < count; ++k) {
    vectors.push_back(LinearWeights::Read(state));
    if (vectors.back().weights.size() != size) return std::nullopt;
    exists.push_back(state.Scalar() != 0);
  }
  return ScoreVectors(like, size, std::move(vectors), std::move(exists));
}

ScoreVectors ReadWeights(StateReader& state, const ScoreVectors& like) {
  std::vector<LinearWeights> vectors;
  std::vector<bool> exists;
  for (size_t k = 0; k < like.count(); ++k) {
    vectors.push_back(LinearWeights::Read(state));
    exists.push_back(!like.is_multiclass() || like.Has(static_cast<int32_t>(k)));
  }
  return {like, like.size(), std::move(vectors), std::move(exists)};
}

}  // namespace perceptrond
