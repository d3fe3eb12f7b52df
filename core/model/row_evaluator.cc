#include "core/model/row_evaluator.h"

#include <algorithm>

#include "core/model/evaluated_rows.h"
#include "core/vector/kernels.h"

namespace perceptrond {
namespace {

class OneByOne final : public RowEvaluator {
 public:
  explicit OneByOne(BatchRows& rows) : rows_(rows) {}

  ValidationCode Evaluate(const Learner& learner, size_t i, RowEvaluation& result) override {
    const ValidationCode code = rows_.Check(i, &result.squared_norm);
    if (code == ValidationCode::kNone)
      result.evaluation = learner.Evaluate(rows_.Map(i), rows_.label(i));
    return code;
  }

 private:
  BatchRows& rows_;
};

// Evaluates rows ahead. Each update voids what was evaluated after it, so runs are long only where
// updates are rare.
class InRuns : public RowEvaluator {
 public:
  InRuns(BatchRows& rows, size_t max_features)
      : rows_(rows), evaluated_(rows.batch(), max_features) {}

  ValidationCode Evaluate(const Learner& learner, size_t i, RowEvaluation& result) override {
    if (const ValidationCode code = rows_.CheckTarget(i); code != ValidationCode::kNone)
      return rows_.Check(i, &result.squared_norm);
    if (!evaluated_.Has(i)) EvaluateRun(learner, i);
    const EvaluatedRow& row = evaluated_[i];
    result = {row.evaluation, row.squared_norm};
    return row.code;
  }
  void Discard() override { evaluated_.Clear(); }
  void OnUpdate(size_t i) override {
    quiet_since_ = i + 1;
    head_start_ = 0;
  }

 protected:
  BatchRows& rows() { return rows_; }
  const EvaluatedRows& evaluated() const { return evaluated_; }

 private:
  static constexpr size_t kShortestRun = 4;
  static constexpr size_t kLongestRun = 64;

  void EvaluateRun(const Learner& learner, size_t i) {
    const size_t quiet = i - quiet_since_ + head_start_;
    evaluated_.Evaluate(learner, i, std::clamp(quiet / 2, kShortestRun, kLongestRun));
  }

  BatchRows& rows_;
  EvaluatedRows evaluated_;
  // The row after the last that called for an update.
  size_t quiet_since_ = 0;
  // A message begins as if this many rows before it had called for none.
  size_t head_start_ = 32;
};

// Of rules for which a right row is no more than a count. All rows have weight 1.
class InCountedRuns final : public InRuns {
 public:
  InCountedRuns(const LearningPlan& plan, BatchRows& rows, size_t max_features)
      : InRuns(rows, max_features), bias_squared_(plan.norm.Squared(0)) {}

  size_t CountRightRows(size_t i, const RowPredictions& predictions, Tally& tally) override {
    if (!evaluated().Has(i)) return i;
    const size_t end = std::min(evaluated().end(), rows().NextRefused(i));
    Tally counted = tally;
    for (; i < end; ++i) {
      const EvaluatedRow& row = evaluated()[i];
      if (row.code != ValidationCode::kNone || row.evaluation.update) break;
      if (!rows().has_label(i)) break;
      counted.AddEvaluation(row.evaluation, rows().batch().labels[i],
                            row.squared_norm + bias_squared_);
      predictions.Set(i, row.evaluation);
    }
    tally = counted;
    return i;
  }

 private:
  // ExampleNorm of linear rules adds it.
  const double bias_squared_;
};

}  // namespace

void RowPredictions::Set(size_t row, const Evaluation& evaluation) const {
  if (scores == nullptr) return;
  scores[row] = Saturate(evaluation.score);
  labels[row] = evaluation.predicted;
}

std::unique_ptr<RowEvaluator> MakeRowEvaluator(const LearningPlan& /*plan*/, BatchRows& rows,
                                               size_t /*max_features*/) {
  return std::make_unique<OneByOne>(rows);
}

std::unique_ptr<RowEvaluator> MakeRunEvaluator(const LearningPlan& plan, BatchRows& rows,
                                               size_t max_features) {
  if (!rows.are_plain()) return MakeRowEvaluator(plan, rows, max_features);
  if (!plan.counts_right_rows || !rows.batch().weights.empty())
    return std::make_unique<InRuns>(rows, max_features);
  return std::make_unique<InCountedRuns>(plan, rows, max_features);
}

}  // namespace perceptrond
