#include "core/model/correct_rows.h"

#include <limits>
#include <memory>
#include <utility>

#include "core/error/error.h"
#include "core/error/stopped.h"
#include "core/ledger/producers.h"
#include "core/model/batch_rows.h"
#include "core/model/cost.h"
#include "core/model/row_learning.h"
#include "core/sync/cancellation.h"

namespace perceptrond {
namespace {

// What a row takes besides its features, in multiply-adds.
constexpr size_t kEvaluationWork = 100;

// One batch on one state, from its first row on.
class RowsEvaluation final {
 public:
  RowsEvaluation(const ModelCore& core, BatchRows& rows, bool detail, CorrectRows& result)
      : core_(core),
        rows_(rows),
        evaluator_(MakeRowEvaluator(core.plan, rows, core.limits.max_example_features)),
        result_(result) {
    if (!detail) return;
    result_.outcome.scores.resize(rows.size(), kNoScore);
    result_.outcome.predicted.resize(rows.size(), core.plan.decision.no_label());
    predictions_ = {result_.outcome.scores.data(), result_.outcome.predicted.data()};
  }

  absl::Status Run(const Learner& learner) {
    while (result_.rows < rows_.size() && Advance(learner)) {
    }
    result_.outcome.examples = result_.tally.examples;
    return Stopped() ? StoppedError("nothing was learned") : absl::OkStatus();
  }

 private:
  // Passes the next row, or several. False if it calls for an update, or the work was stopped.
  bool Advance(const Learner& learner) {
    const size_t row = result_.rows;
    if (!KeepGoing(kEvaluationWork)) return false;
    result_.rows = evaluator_->CountRightRows(row, std::numeric_limits<uint64_t>::max(),
                                              predictions_, result_.tally);
    if (result_.rows != row) return true;
    RowEvaluation evaluated;
    const ValidationCode code = evaluator_->Evaluate(learner, row, evaluated);
    if (Stopped()) return false;
    if (code != ValidationCode::kNone) {
      result_.tally.AddRowError(code);
      result_.outcome.row_errors.push_back({static_cast<uint32_t>(row), rows_.Describe(row, code)});
    } else if (evaluated.evaluation.update || !rows_.NewClass(row).empty()) {
      return false;
    } else {
      Count(row, evaluated);
    }
    ++result_.rows;
    return true;
  }

  void Count(size_t row, const RowEvaluation& result) {
    result_.tally.AddEvaluation(result.evaluation, core_.plan.decision.MarginSign(rows_.label(row)),
                                core_.plan.ExampleNorm(result.squared_norm));
    if (rows_.weight(row) != 1) ++result_.tally.weighted_examples;
    predictions_.Set(row, result.evaluation);
  }

  const ModelCore& core_;
  BatchRows& rows_;
  const std::unique_ptr<RowEvaluator> evaluator_;
  RowPredictions predictions_;
  CorrectRows& result_;
};

}  // namespace

bool CanEvaluateElsewhere(const Model& model) {
  const ModelCore& core = model.core();
  if (!core.settings.components.empty() || core.settings.stored_examples.sample > 0) return false;
  return Guarded<ModelState>::Reader(core.state)->learner->batch_learning() == nullptr;
}

absl::Status EvaluateCorrectRows(const Model& model, const Batch& batch,
                                 std::span<const RowError> row_errors, bool detail,
                                 CorrectRows& result) {
  const ModelCore& core = model.core();
  result.rows = 0;
  result.tally = Tally();
  result.outcome.Clear();
  BatchRows rows(core, batch, row_errors);
  if (absl::Status status = rows.Begin(); !status.ok()) return status;
  const Guarded<LearningGate>::Reader gate(core.gate);
  const Guarded<ModelState>::Reader state(core.state);
  if (absl::Status open = core.CheckOpen(*state); !open.ok()) return open;
  core.MarkScored();
  result.outcome.revision = state->revision;
  result.outcome.epoch = core.epoch.load(std::memory_order_acquire);
  if (gate->frozen) return ModelFrozen(core.name);
  if (rows.size() == 0) return absl::OkStatus();
  // As Learn has it: what the writer would refuse is not evaluated in part.
  const absl::StatusOr<uint64_t> cost = rows.CheckCost(core, *state->learner);
  if (!cost.ok()) return cost.status();
  const LargeWork large(core, *cost);
  rows.Resolve(*state);
  return RowsEvaluation(core, rows, detail, result).Run(*state->learner);
}

absl::Status CountCorrectRows(Model& model, Producer& producer, int64_t first_offset, int64_t rows,
                              std::vector<UnchangedRows> unchanged) {
  ModelCore& core = model.core();
  producer.turn.AssertHeld();
  const Guarded<LearningGate>::Reader gate(core.gate);
  if (absl::Status status = core.CheckWritable(); !status.ok()) return status;
  if (!gate->stopped.ok()) return gate->stopped;
  const Guarded<ModelState>::Reader state(core.state);
  if (absl::Status open = core.CheckOpen(*state); !open.ok()) return open;
  core.MarkScored();
  if (producer.position().next_offset != first_offset) return ProducerSupersededError(producer.id);
  if (!unchanged.empty() && unchanged.back().revision > state->revision)
    return WriterChangedError();
  Segment segment;
  segment.producer = producer.id;
  segment.first_offset = first_offset;
  segment.rows = rows;
  segment.unchanged = std::move(unchanged);
  for (UnchangedRows& one : segment.unchanged) one.tally.examples_elsewhere = one.tally.examples;
  segment.revision = state->revision;
  core.ledger.Apply(producer, segment, state->names);
  return absl::OkStatus();
}

}  // namespace perceptrond
