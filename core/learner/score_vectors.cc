#include "core/learner/score_vectors.h"

#include <cmath>
#include <limits>
#include <utility>

namespace perceptrond {

bool LinearWeights::StaysFinite(double step, const Row& row, double bias_input) const {
  return std::abs(bias_weight + step * bias_input) <= std::numeric_limits<float>::max() &&
         perceptrond::StaysFinite(weights, step, row);
}

void LinearWeights::Add(double step, const Row& row, double bias_input) {
  AddScaled(weights, step, row, squared_norm);
  bias_weight = static_cast<float>(bias_weight + step * bias_input);
}

void LinearWeights::AppendTo(LearnerStateView& state) const {
  Append(weights, state);
  Append(bias_weight, state);
  Append(squared_norm, state);
}

LinearWeights LinearWeights::Read(StateReader& state) {
  LinearWeights read;
  read.weights = state.Array();
  read.bias_weight = state.Scalar();
  read.squared_norm = state.Sum();
  return read;
}

ScoreVectors::ScoreVectors(const LearnerSettings& settings, size_t size)
    : bias_input_(settings.bias_input),
      tie_rule_(settings.tie_rule),
      max_count_(settings.is_multiclass() ? settings.classes.max : 1),
      size_(size),
      vectors_(settings.is_multiclass() ? settings.classes.initial : 1, LinearWeights(size)),
      exists_(vectors_.size(), true) {
  if (settings.is_multiclass()) return;
  const StartingWeights& start = settings.start;
  Replace(0, {start.indices.data(), start.values.data(), start.indices.size()},
          bias_input_ != 0 ? static_cast<float>(start.bias / bias_input_) : 0);
}

bool ScoreVectors::Has(int32_t label) const {
  if (!is_multiclass()) return label == 1 || label == -1;
  return label >= 0 && static_cast<size_t>(label) < exists_.size() &&
         exists_[static_cast<size_t>(label)];
}

void ScoreVectors::Scores(const Row& row, std::span<double> scores) const {
  for (size_t k = 0; k < vectors_.size(); ++k)
    scores[k] = exists_[k] ? Score(k, row) : std::numeric_limits<double>::quiet_NaN();
}

Evaluation ScoreVectors::Evaluate(std::span<const double> scores, int32_t label) const {
  Evaluation evaluation;
  evaluation.predicted = Label(scores);
  if (!is_multiclass()) {
    evaluation.score = scores[0];
    evaluation.mistake = perceptrond::IsMistake(scores[0], label, tie_rule_);
    return evaluation;
  }
  evaluation.rival = GreatestScore(scores, label);
  const bool exists = Has(label);
  const double own = exists ? scores[static_cast<size_t>(label)] : 0;
  evaluation.score = evaluation.rival < 0 ? std::numeric_limits<double>::infinity()
                                          : own - scores[static_cast<size_t>(evaluation.rival)];
  evaluation.mistake =
      !exists || IsClassMistake(evaluation.score, evaluation.predicted, label, tie_rule_);
  return evaluation;
}

bool ScoreVectors::IsMistake(const Row& row, int32_t label) const {
  if (!is_multiclass()) return perceptrond::IsMistake(Score(0, row), label, tie_rule_);
  ClassScores scores(count());
  Scores(row, {scores.data(), scores.size()});
  return Evaluate({scores.data(), scores.size()}, label).mistake;
}

double ScoreVectors::squared_norm() const {
  double sum = 0;
  for (const LinearWeights& one : vectors_) sum += one.squared_norm.value();
  return scale_ * scale_ * sum;
}

double ScoreVectors::augmented_squared_norm() const {
  double sum = 0;
  for (const LinearWeights& one : vectors_) sum += one.squared_norm.value();
  for (const LinearWeights& one : vectors_) sum += one.bias_weight * one.bias_weight;
  return scale_ * scale_ * sum;
}

bool ScoreVectors::AreZero() const {
  return std::all_of(vectors_.begin(), vectors_.end(), [](const LinearWeights& one) {
    return one.bias_weight == 0 && AllZero(one.weights);
  });
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

void ScoreVectors::AppendTo(LearnerStateView& state) const {
  if (!is_multiclass()) return vectors_[0].AppendTo(state);
  Append(static_cast<double>(size_), state);
  Append(static_cast<double>(vectors_.size()), state);
  for (size_t k = 0; k < vectors_.size(); ++k) {
    vectors_[k].AppendTo(state);
    Append(exists_[k] ? 1.0 : 0.0, state);
  }
}

void ScoreVectors::AppendVectors(LearnerStateView& state) const {
  for (const LinearWeights& one : vectors_) one.AppendTo(state);
}

ScoreVectors ScoreVectors::ReadVectors(StateReader& state) const {
  ScoreVectors read(bias_input_, tie_rule_, max_count_);
  read.size_ = size_;
  read.exists_ = exists_;
  for (size_t k = 0; k < vectors_.size(); ++k) read.vectors_.push_back(LinearWeights::Read(state));
  return read;
}

std::optional<ScoreVectors> ScoreVectors::Read(StateReader& state) const {
  ScoreVectors read(bias_input_, tie_rule_, max_count_);
  if (!is_multiclass()) {
    read.vectors_.push_back(LinearWeights::Read(state));
    read.exists_.push_back(true);
    read.size_ = read.vectors_[0].weights.size();
    return read;
  }
  read.size_ = state.Count();
  const uint64_t count = state.Count();
  if (count > max_count_) return std::nullopt;
  for (uint64_t k = 0; k < count; ++k) {
    read.vectors_.push_back(LinearWeights::Read(state));
    if (read.vectors_.back().weights.size() != read.size_) return std::nullopt;
    read.exists_.push_back(state.Scalar() != 0);
  }
  return read;
}

}  // namespace perceptrond
