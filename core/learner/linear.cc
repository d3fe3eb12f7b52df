#include "core/learner/linear.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/learner/state.h"
#include "core/vector/kernels.h"

namespace perceptrond {
namespace {

// Rows.
constexpr size_t kScanned = 64;

}  // namespace

double LinearWeights::Score(const Row& row, double offset_value) const {
  return Dot(weights, row) + offset_weight * offset_value;
}

bool LinearWeights::StaysFinite(double step, const Row& row, double offset_value) const {
  return std::abs(offset_weight + step * offset_value) <= std::numeric_limits<float>::max() &&
         perceptrond::StaysFinite(weights, step, row);
}

void LinearWeights::Add(double step, const Row& row, double offset_value) {
  AddScaled(weights, step, row, squared_norm);
  offset_weight = static_cast<float>(offset_weight + step * offset_value);
}

void LinearWeights::AppendTo(LearnerStateView& state) const {
  Append(weights, state);
  Append(offset_weight, state);
  Append(squared_norm, state);
}

LinearWeights LinearWeights::From(StateReader& state) {
  LinearWeights read;
  read.weights = state.Array();
  read.offset_weight = state.Scalar();
  read.squared_norm = state.Sum();
  return read;
}

LinearLearner::LinearLearner(const LearnerSettings& settings, size_t size)
    : tie_rule_(settings.tie_rule), offset_value_(settings.offset_value) {
  const StartingWeights& start = settings.start;
  linear_.weights.resize(size);
  AddScaled(linear_.weights, 1,
            Row{start.indices.data(), start.values.data(), start.indices.size()},
            linear_.squared_norm);
  if (offset_value_ != 0) linear_.offset_weight = static_cast<float>(start.offset / offset_value_);
}

double LinearLearner::Score(const Row& row) const { return linear_.Score(row, offset_value_); }

int32_t LinearLearner::Predict(double score) const { return PredictByTieRule(score, tie_rule_); }

Judgement LinearLearner::Judge(const Row& row, int32_t label) const {
  JudgedRow judged;
  judged.judgement.score = Score(row);
  JudgeScores({&label, 1}, {&judged, 1});
  return judged.judgement;
}

// Some rows are scanned before any is judged: with nothing between them their weights arrive at
// once.
void LinearLearner::JudgeRows(const Batch& batch, size_t first, size_t max_features,
                              std::span<JudgedRow> judged) const {
  const auto dimension = static_cast<uint32_t>(size());
  const double offset = linear_.offset_weight * offset_value_;
  const bool scans = batch.dense_width == 0 || batch.dense_width == dimension;
  std::array<RowScan, kScanned> scan;
  for (size_t done = 0; done < judged.size(); done += kScanned) {
    const size_t count = std::min(kScanned, judged.size() - done);
    if (scans) ScanRows(linear_.weights, batch, first + done, std::span(scan).first(count));
    for (size_t i = 0; i < count; ++i) {
      JudgedRow& row = judged[done + i];
      row.fault = CheckScanned(batch.row(first + done + i), dimension, max_features, scan[i]);
      row.squared_norm = scan[i].squared_norm;
      row.judgement.score = scan[i].dot + offset;
    }
    JudgeScores(batch.labels.subspan(first + done, count), judged.subspan(done, count));
  }
}

bool LinearLearner::CanUpdate(const Row& row, const Target& target,
                              const Judgement& judgement) const {
  const double step = Step(row, target.label * judgement.score, target.weight);
  return linear_.StaysFinite(target.label * step, row, offset_value_);
}

void LinearLearner::Update(const Row& row, const Target& target, const Judgement& judgement) {
  const double step = Step(row, target.label * judgement.score, target.weight);
  linear_.Add(target.label * step, row, offset_value_);
}

double LinearLearner::Answer(const Row& row, uint64_t /*age*/) const { return Score(row); }

double LinearLearner::answer_squared_norm(uint64_t /*age*/) const { return squared_norm(); }

Hypothesis LinearLearner::AnswerHypothesis(uint64_t /*age*/) const {
  return {linear_.weights, linear_.offset_weight * offset_value_};
}

std::optional<double> LinearLearner::AnswerWeight(uint32_t index, uint64_t /*age*/) const {
  return linear_.weights[index];
}

std::optional<double> LinearLearner::AnswerShare(const PastUpdate& update, uint64_t /*age*/) const {
  const Target& target = update.target;
  return target.label * Step(update.row, target.label * update.score, target.weight);
}

void LinearLearner::Adopt(const Row& weights, float offset_weight, uint64_t /*age*/) {
  std::fill(linear_.weights.begin(), linear_.weights.end(), 0.0F);
  linear_.squared_norm = CompensatedSum();
  AddScaled(linear_.weights, 1, weights, linear_.squared_norm);
  linear_.offset_weight = offset_value_ != 0 ? offset_weight : 0;
}

void LinearLearner::Grow(size_t size) {
  if (size > linear_.weights.size()) linear_.weights.resize(size);
}

double LinearLearner::AugmentedSquaredNorm(const Row& row) const {
  return SquaredNorm(row) + offset_value_ * offset_value_;
}

LearnerStateView LinearLearner::State() const {
  LearnerStateView state;
  linear_.AppendTo(state);
  return state;
}

bool LinearLearner::Restore(LearnerState state) {
  StateReader reader(std::move(state));
  LinearWeights linear = LinearWeights::From(reader);
  if (!reader.Done()) return false;
  linear_ = std::move(linear);
  return true;
}

}  // namespace perceptrond
