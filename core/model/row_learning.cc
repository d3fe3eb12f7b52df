#include "core/model/row_learning.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/convergence/tally.h"
#include "core/sync/cancellation.h"
#include "core/vector/kernels.h"
#include "core/vector/row.h"

namespace perceptrond {
namespace {

// A run of rows, checked and evaluated at once, so that their weights are fetched from memory
// together (BatchEvaluation); empty at first. The evaluations of rows that are apart mean nothing.
// The rows must outlive it.
class EvaluatedRows {
 public:
  EvaluatedRows(BatchRows& rows, size_t max_features) : batch_(rows), max_features_(max_features) {}

  // Evaluates the rows from `first` on, at most `most`.
  void Evaluate(const Learner& learner, size_t first, size_t most) {
    begin_ = first;
    end_ = std::min(batch_.size(), first + most);
    const size_t count = end_ - begin_;
    if (rows_.size() < count) rows_.resize(count);
    const Batch& batch = batch_.batch();
    KeepGoing(batch.row_begin(end_ - 1) + batch.row(end_ - 1).size - batch.row_begin(begin_));
    learner.batch_evaluation()->EvaluateRows(batch_.Together(first, count), first, max_features_,
                                             std::span(rows_).first(count));
  }
  void Clear() { end_ = begin_; }

  // The row after the last.
  size_t end() const { return end_; }
  bool Has(size_t row) const { return row >= begin_ && row < end_; }
  const EvaluatedRow& operator[](size_t row) const { return rows_[row - begin_]; }

 private:
  BatchRows& batch_;
  const size_t max_features_;
  std::vector<EvaluatedRow> rows_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

ValidationCode EvaluateAlone(BatchRows& rows, const Learner& learner, size_t i,
                             RowEvaluation& result) {
  const ValidationCode code = rows.Check(i, &result.squared_norm);
  if (code != ValidationCode::kNone) return code;
  const Row row = rows.Map(i);
  if (KeepGoing(row.size)) result.evaluation = learner.Evaluate(row, rows.label(i));
  return code;
}

class OneByOne final : public RowEvaluator {
 public:
  explicit OneByOne(BatchRows& rows) : rows_(rows) {}

  ValidationCode Evaluate(const Learner& learner, size_t i, RowEvaluation& result) override {
    return EvaluateAlone(rows_, learner, i, result);
  }

 private:
  BatchRows& rows_;
};

// Evaluates rows ahead. Each update voids what was evaluated after it, so runs are long only where
// updates are rare.
class InRuns : public RowEvaluator {
 public:
  InRuns(BatchRows& rows, size_t max_features) : rows_(rows), evaluated_(rows, max_features) {}

  ValidationCode Evaluate(const Learner& learner, size_t i, RowEvaluation& result) override {
    if (const ValidationCode code = rows_.CheckTarget(i); code != ValidationCode::kNone)
      return rows_.Check(i, &result.squared_norm);
    if (!evaluated_.Has(i)) EvaluateRun(learner, i);
    if (rows_.IsApart(i)) return EvaluateAlone(rows_, learner, i, result);
    const EvaluatedRow& row = evaluated_[i];
    result = {row.evaluation, row.squared_norm};
    return row.code;
  }
  void Discard() override { evaluated_.Clear(); }
  void OnUpdate(size_t i) override { quiet_since_ = static_cast<int64_t>(i) + 1; }

 protected:
  BatchRows& rows() { return rows_; }
  const EvaluatedRows& evaluated() const { return evaluated_; }

 private:
  static constexpr size_t kShortestRun = 4;
  static constexpr size_t kLongestRun = 64;

  void EvaluateRun(const Learner& learner, size_t i) {
    const auto quiet = static_cast<size_t>(static_cast<int64_t>(i) - quiet_since_);
    evaluated_.Evaluate(learner, i, std::clamp(quiet / 2, kShortestRun, kLongestRun));
  }

  BatchRows& rows_;
  EvaluatedRows evaluated_;
  // The row after the last that called for an update. A message begins as if 32 rows before it had
  // called for none.
  int64_t quiet_since_ = -32;
};

// Of rules for which a right row is no more than a count. All rows have weight 1.
class InCountedRuns final : public InRuns {
 public:
  InCountedRuns(const LearningPlan& plan, BatchRows& rows, size_t max_features)
      : InRuns(rows, max_features), bias_squared_(plan.bias_squared) {}

  size_t CountRightRows(size_t i, uint64_t most, const RowPredictions& predictions,
                        Tally& tally) override {
    if (!evaluated().Has(i)) return i;
    size_t end = std::min(evaluated().end(), rows().NextRowError(i));
    if (end > i) end = i + static_cast<size_t>(std::min<uint64_t>(end - i, most));
    Tally counted = tally;
    for (; i < end; ++i) {
      const EvaluatedRow& row = evaluated()[i];
      if (row.code != ValidationCode::kNone || row.evaluation.update) break;
      if (!rows().has_label(i) || rows().IsApart(i)) break;
      counted.AddEvaluation(row.evaluation, rows().label(i), row.squared_norm + bias_squared_);
      predictions.Set(i, row.evaluation);
    }
    tally = counted;
    return i;
  }

 private:
  // LearningPlan::ExampleNorm of linear rules adds it.
  const double bias_squared_;
};

}  // namespace

void RowPredictions::Set(size_t row, const Evaluation& evaluation) const {
  if (scores == nullptr) return;
  scores[row] = Saturate(evaluation.score);
  labels[row] = evaluation.predicted;
}

std::unique_ptr<RowEvaluator> MakeRowEvaluator(const LearningPlan& plan, BatchRows& rows,
                                               size_t max_features) {
  if (!plan.evaluates_runs || !rows.can_scan()) return std::make_unique<OneByOne>(rows);
  if (!plan.counts_right_rows || !rows.batch().weights.empty())
    return std::make_unique<InRuns>(rows, max_features);
  return std::make_unique<InCountedRuns>(plan, rows, max_features);
}

RowUpdate RowUpdater::Learn(ModelState& state, size_t i, Tally& tally, UpdateRow& update) {
  Learner& learner = *state.learner;
  Row mapped = rows_.MapInOrder(i);
  const std::optional<uint64_t> age = core_.CountedExamples();
  const int32_t label = rows_.label(i);
  const double weight = rows_.weight(i) * core_.settings.learner.class_weight(label);
  const Target target{label, weight, age.value_or(0)};
  RowUpdate result;
  result.age = target.age;
  result.evaluation = learner.Evaluate(mapped, label);
  result.stopped = Stopped();
  if (result.stopped) return result;
  // From here on the row is learned whole.
  const CancellationScope whole(nullptr);
  result.error = Prepare(state, i, target, result.evaluation, mapped, update);
  if (result.error || !result.evaluation.update) return result;
  learner.Update(mapped, target, result.evaluation);
  ++state.revision;
  update.revision = state.revision;
  update.row = std::make_shared<const StoredRow>(SeenExample{mapped, label, {}});
  update.weight = rows_.weight(i);
  update.score = Saturate(result.evaluation.score);
  update.age = age;
  update.rival = result.evaluation.rival;
  update.squared_norm = learner.augmented_squared_norm();
  tally.updates = 1;
  NoteUpdate(core_.settings.learner, learner, mapped, target, tally);
  return result;
}

// Everything that can fail comes first: on an error the state is as it was.
ValidationError RowUpdater::Prepare(ModelState& state, size_t i, const Target& target,
                                    const Evaluation& evaluation, Row& mapped, UpdateRow& update) {
  const absl::string_view new_class = rows_.NewClass(i);
  if (!new_class.empty() && state.class_names.size() == core_.settings.learner.classes.max)
    return ClassCap();
  if (!evaluation.update) return {};
  if (!state.learner->CanUpdate(mapped, target, evaluation)) {
    return {ValidationCode::kWeightOverflow, "values",
            "learning this example would take a weight out of float32's range"};
  }
  if (core_.plan.keeps_rows &&
      state.learner->State().rows->memory_bytes() > core_.limits.max_model_bytes)
    return RowCap();
  if (core_.has_names()) {
    if (ValidationError error = AddNames(state, i, mapped, update)) return error;
  }
  if (!new_class.empty()) {
    state.class_names.Add(new_class);
    update.new_class = std::string(new_class);
  }
  return {};
}

ValidationError RowUpdater::AddNames(ModelState& state, size_t i, Row& mapped, UpdateRow& update) {
  const bool full = !HasRoom(state);
  const uint32_t cap = full ? state.names.size() : core_.settings.space.size;
  if (!rows_.AddUnknownNames(i, cap, state.names, update.new_names))
    return full ? MemoryCap() : FeatureCap(state, i);
  if (update.new_names.empty()) return {};
  state.learner->Grow(state.names.size() + 1);
  rows_.Resolve(state);
  mapped = rows_.Map(i);
  return {};
}

bool RowUpdater::HasRoom(const ModelState& state) const {
  const size_t most = core_.limits.max_model_bytes;
  const Learner& learner = *state.learner;
  size_t bytes = state.names.bytes();
  if (bytes + learner.size() * learner.max_arrays() * sizeof(float) <= most) return true;
  for (const std::span<const float> array : learner.State().arrays) bytes += array.size_bytes();
  return bytes <= most;
}

ValidationError RowUpdater::MemoryCap() const {
  return {
      ValidationCode::kFeatureCap, "feature_names",
      absl::StrCat("the model's names and weights take the ", core_.limits.max_model_bytes >> 20,
                   " MiB that a model may take, and it keeps all of them; leave new names "
                   "out, or raise the server's --memory-budget")};
}

ValidationError RowUpdater::RowCap() const {
  return {ValidationCode::kFeatureCap, "values",
          absl::StrCat("the examples that the model's rule keeps take the ",
                       core_.limits.max_model_bytes >> 20,
                       " MiB that a model may take; leave this example out, create a model with a "
                       "smaller budget, or raise the server's --memory-budget")};
}

ValidationError RowUpdater::ClassCap() const {
  return {ValidationCode::kClassCap, "labels",
          absl::StrCat("the model has ", core_.settings.learner.classes.max,
                       " classes, the most it can have, and keeps all of them; leave this example "
                       "out, or create a model with a larger max_classes")};
}

ValidationError RowUpdater::FeatureCap(const ModelState& state, size_t i) {
  std::vector<absl::string_view> unknown;
  rows_.UnknownNames(i, unknown);
  return {
      ValidationCode::kFeatureCap, "feature_names",
      absl::StrCat("the model has ", state.names.size(), " of at most ", core_.settings.space.size,
                   " names and keeps all of them, and this example needs ", unknown.size(),
                   " new ones; leave them out, or create a model with a larger max_features")};
}

}  // namespace perceptrond
