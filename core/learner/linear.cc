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

Evaluation LinearLearner::Evaluate(const Row& row, int32_t label) const {
  EvaluatedRow evaluated;
  evaluated.evaluation.score = Score(row);
  EvaluateScores({&label, 1}, {&evaluated, 1});
  return evaluated.evaluation;
}

// Some rows are scanned before any is judged: with nothing between them their weights arrive at
// once.
void LinearLearner::EvaluateRows(const Batch& batch, size_t first, size_t max_features,
                                 std::span<EvaluatedRow> evaluated) const {
  const auto dimension = static_cast<uint32_t>(size());
  const double offset = linear_.offset_weight * offset_value_;
  const bool scans = batch.dense_width == 0 || batch.dense_width == dimension;
  std::array<RowScan, kScanned> scan;
  for (size_t done = 0; done < evaluated.size(); done += kScanned) {
    const size_t count = std::min(kScanned, evaluated.size() - done);
    if (scans) ScanRows(linear_.weights, batch, first + done, std::span(scan).first(count));
    for (size_t i = 0; i < count; ++i) {
      EvaluatedRow& row = evaluated[done + i];
      row.code = CheckScanned(batch.row(first + done + i), dimension, max_features, scan[i]);
      row.squared_norm = scan[i].squared_norm;
      row.evaluation.score = scan[i].dot + offset;
    }
    EvaluateScores(batch.labels.subspan(first + done, count), evaluated.subspan(done, count));
  }
}

bool LinearLearner::CanUpdate(const Row& row, const Target& target,
                              const Evaluation& evaluation) const {
  const double step = Step(row, target.label * evaluation.score, target.weight);
  return linear_.StaysFinite(target.label * step, row, offset_value_);
}

void LinearLearner::Update(const Row& row, const Target& target, const Evaluation& evaluation) {
  const double step = Step(row, target.label * evaluation.score, target.weight);
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

void LinearLearner::ReplaceWeights(const Row& weights, float offset_weight, uint64_t /*age*/) {
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
