// How a batch is learned.
#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error/stopped.h"
#include "core/ledger/producers.h"
#include "core/model/admission.h"
#include "core/model/batch_rows.h"
#include "core/model/cost.h"
#include "core/model/model.h"
#include "core/model/row_learning.h"

namespace perceptrond {
namespace {

// What a row takes besides its features, in multiply-adds.
constexpr size_t kLearnWork = 100;

using StateReader = Guarded<ModelState>::Reader;
using StateWriter = Guarded<ModelState>::Writer;

// Whether a rule that learns from batches (null: it does not) has one that is full after `age`
// examples, and one with mistakes that the weights do not have yet.
bool IsFull(const BatchLearning* batch, uint64_t age) {
  return batch != nullptr && batch->ExamplesUntilFull(age) == 0;
}
bool IsPending(const BatchLearning* batch) { return batch != nullptr && batch->IsPending(); }

// One message being learned: check its rows, resolve names, evaluate under the shared lock, update
// under the exclusive one, account. A segment is handed to the ledger under the lock of the state that
// its latest row was evaluated on, or updated. Only rows that changed nothing may be counted later.
class Learning {
 public:
  Learning(ModelCore& core, const LearnCall& call, LearnOutcome& outcome)
      : core_(core),
        plan_(core.plan),
        call_(call),
        outcome_(outcome),
        rows_(core, call.batch, call.row_errors),
        updater_(core, rows_),
        sampler_(core.ledger.stored_examples()),
        releases_state_early_(!core.plan.counts_examples &&
                              !core.ledger.stored_examples().samples()) {
    segment_.producer = call.producer->id;
    segment_.components = call.components;
  }
  ~Learning() {
    if (reserved_ > 0) core_.limits.memory->Release(MemoryUse::kRequests, reserved_);
  }
  Learning(const Learning&) = delete;
  Learning& operator=(const Learning&) = delete;

  absl::Status Run() {
    const Guarded<LearningGate>::Reader gate(core_.gate);
    absl::Status status = core_.CheckWritable();
    if (status.ok()) status = gate->stopped;
    if (status.ok()) status = Begin(gate->frozen);
    while (status.ok() && next_ != Next::kNothing) status = TakeStep();
    return status;
  }

 private:
  enum class Next { kEvaluate, kUpdate, kEndBatch, kNothing };

  absl::Status TakeStep() {
    switch (next_) {
      case Next::kEvaluate:
        return EvaluateRows();
      case Next::kUpdate:
        return Update();
      case Next::kEndBatch:
        return EndBatch();
      case Next::kNothing:
        break;
    }
    return absl::OkStatus();
  }

  absl::Status Begin(bool frozen) {
    if (absl::Status status = rows_.Begin(); !status.ok()) return status;
    call_.producer->turn.AssertHeld();
    const ProducerPosition& position = call_.producer->position();
    const absl::StatusOr<NewRows> admitted =
        Admit(call_, rows_.size(), position, frozen, core_.name);
    if (!admitted.ok()) return admitted.status();
    ends_new_pass_ = admitted->ends_new_pass;
    row_ = admitted->first_new_row;
    counted_row_ = row_;
    outcome_.duplicates = row_;
    tally_.duplicates = row_ - std::min(row_, call_.counted_rows);
    segment_.first_offset = position.next_offset;
    outcome_.next_offset = position.next_offset;
    evaluator_ = MakeRowEvaluator(plan_, rows_, core_.limits.max_example_features);
    if (call_.all_or_nothing) {
      if (absl::Status status = CheckAllRows(); !status.ok()) return status;
    }
    if (call_.detail) {
      outcome_.scores.resize(rows_.size(), kNoScore);
      outcome_.predicted.resize(rows_.size(), plan_.decision.no_label());
      predictions_ = {outcome_.scores.data(), outcome_.predicted.data()};
    }
    return absl::OkStatus();
  }

  // Before the first row is worked on.
  absl::Status CheckCost(const Learner& learner) {
    if (large_.has_value() || row_ == rows_.size()) return absl::OkStatus();
    const absl::StatusOr<uint64_t> cost = rows_.CheckCost(core_, learner);
    if (!cost.ok()) return cost.status();
    large_.emplace(core_, *cost);
    return Reserve();
  }

  // Reserves what the batch may take until it is written, so that of many at once each is learned whole or not at all.
  // Less than 256 KiB is not reserved: the rule of docs/operate.md adds 100 KB a stream.
  absl::Status Reserve() {
    MemoryBudget* const memory = core_.limits.memory;
    const uint64_t bytes = memory == nullptr ? 0 : UncommittedBound(core_, rows_.batch());
    if (bytes < WorkMemory::Lease::kFreeBytes) return absl::OkStatus();
    if (!memory->TryReserve(MemoryUse::kRequests, bytes))
      return MemoryExhausted("room for the examples in the queue of the journal", bytes, *memory);
    reserved_ = bytes;
    return absl::OkStatus();
  }

  // Refuses the batch for its first new row that is invalid by itself.
  absl::Status CheckAllRows() {
    {
      const StateReader state(core_.state);
      if (absl::Status status = CheckCost(*state->learner); !status.ok()) return status;
      rows_.Resolve(*state);
    }
    for (size_t i = row_; i < rows_.size(); ++i) {
      double squared_norm = 0;
      const ValidationCode code = rows_.Check(i, &squared_norm);
      if (!KeepGoing(kLearnWork)) return StoppedError("nothing was learned");
      if (code == ValidationCode::kNone) continue;
      outcome_.row_errors.push_back({static_cast<uint32_t>(i), rows_.Describe(i, code)});
      return absl::InvalidArgumentError("a row is invalid");
    }
    return absl::OkStatus();
  }

  // Passes correct rows and rows with errors, up to one that calls for an update or fills a batch.
  absl::Status EvaluateRows() {
    if (IsFrequencyChangeDue()) {
      if (absl::Status status = ChangeFrequencies(core_); !status.ok()) return status;
    }
    StateReader state(core_.state);
    if (absl::Status open = core_.CheckOpen(*state); !open.ok()) return open;
    core_.MarkScored();
    if (absl::Status status = CheckCost(*state->learner); !status.ok()) return status;
    rows_.Resolve(*state);
    evaluator_->Discard();
    const BatchLearning* const batch = state->learner->batch_learning();
    // 0 if a crash came between the row that filled a batch and the batch's end.
    const uint64_t until_full = batch == nullptr
                                    ? std::numeric_limits<uint64_t>::max()
                                    : batch->ExamplesUntilFull(core_.ledger.examples());
    while (row_ < rows_.size() && tally_.examples < until_full && !IsFrequencyChangeDue()) {
      if (!KeepGoing(kLearnWork)) return Stop(state, state->revision);
      uint64_t most = until_full - tally_.examples;
      if (core_.documents != nullptr) most = std::min(most, core_.documents->UntilDue());
      if (const size_t next = evaluator_->CountRightRows(row_, most, predictions_, tally_);
          next != row_) {
        segment_.rows += static_cast<int64_t>(next - row_);
        row_ = next;
        continue;
      }
      RowEvaluation row;
      const ValidationCode code = evaluator_->Evaluate(*state->learner, row_, row);
      if (Stopped()) return Stop(state, state->revision);
      if (code != ValidationCode::kNone) {
        Refuse(rows_.Describe(row_, code));
        continue;
      }
      if (row.evaluation.update) {
        evaluator_->OnUpdate(row_);
        squared_norm_ = row.squared_norm;
        next_ = Next::kUpdate;
        tally_revision_ = state->revision;
        sampler_.Release();
        // Rules that count examples read in the ledger how many came before the row.
        if (plan_.counts_examples) {
          CloseTally(state->revision);
          Account(state);
        }
        return absl::OkStatus();
      }
      const int32_t label = rows_.label(row_);
      OfferToSample(*state, label);
      Count(row, label, tally_);
    }
    const bool batch_is_full = tally_.examples >= until_full;
    CloseTally(state->revision);
    Finish(state, batch_is_full);
    return absl::OkStatus();
  }

  // Evaluates the row again, which called for an update a moment ago, and learns it if it still
  // does.
  absl::Status Update() {
    StateWriter state(core_.state);
    if (absl::Status open = core_.CheckOpen(*state); !open.ok()) return open;
    const TornByException torn(core_.ledger);
    // Another stream has updated the state since.
    if (state->revision != tally_revision_) CloseTally(tally_revision_);
    rows_.Resolve(*state);
    UpdateRow& update = segment_.updates.emplace_back();
    RowUpdate result = updater_.Learn(*state, row_, tally_, update);
    if (result.stopped) {
      segment_.updates.pop_back();
      return Stop(state, tally_revision_);
    }
    const bool updated = !result.error && result.evaluation.update;
    uint64_t evaluated = result.age;
    if (result.error) {
      tally_.unlearned = true;
      Refuse(std::move(result.error));
    } else {
      ++evaluated;
      const int32_t label = rows_.label(row_);
      OfferToSample(*state, label);
      if (updated) NoteUpdated(update.revision);
      Count({result.evaluation, squared_norm_}, label, tally_);
    }
    if (updated) {
      update.tally = TakeTally();
    } else {
      segment_.updates.pop_back();
      CloseTally(state->revision);
    }
    Finish(state, IsFull(state->learner->batch_learning(), evaluated));
    return absl::OkStatus();
  }

  // Counts the rows before row_, evaluated on `revision`: they stay learned. Row row_ changed
  // nothing.
  template <typename Guard>
  absl::Status Stop(Guard& state, uint64_t revision) {
    CloseTally(revision);
    outcome_.revision = state->revision;
    outcome_.epoch = core_.epoch.load(std::memory_order_acquire);
    Account(state);
    return StoppedError(
        absl::StrCat("the first ", row_, " of ", rows_.size(), " rows are learned, and stay so"));
  }

  void NoteUpdated(uint64_t revision) {
    outcome_.updated_rows.push_back(static_cast<uint32_t>(row_));
    outcome_.update_revisions.push_back(revision);
  }

  // Ends the batch of a rule that learns from batches, if it is full or ends with the pass.
  absl::Status EndBatch() {
    StateWriter state(core_.state);
    if (absl::Status open = core_.CheckOpen(*state); !open.ok()) return open;
    const TornByException torn(core_.ledger);
    const std::optional<uint64_t> age = core_.CountedExamples();
    BatchLearning* const batch = state->learner->batch_learning();
    const bool ends_with_pass = row_ == rows_.size() && ends_new_pass_;
    if (ends_with_pass) ends_new_pass_ = false;
    // Another stream may have ended the batch a moment ago.
    if (IsFull(batch, age.value_or(0)) || (ends_with_pass && IsPending(batch))) {
      batch->EndBatch();
      ++state->revision;
      UpdateRow update;
      update.revision = state->revision;
      update.age = age;
      update.squared_norm = state->learner->augmented_squared_norm();
      update.tally.updates = 1;
      update.tally.components = call_.components;
      segment_.updates.push_back(std::move(update));
    }
    Finish(state, /*batch_is_full=*/false);
    return absl::OkStatus();
  }

  // Counts the row at row_ and passes it.
  void Count(const RowEvaluation& row, int32_t label, Tally& tally) {
    tally.AddEvaluation(row.evaluation, plan_.decision.MarginSign(label),
                        plan_.ExampleNorm(row.squared_norm));
    if (rows_.weight(row_) != 1) ++tally.weighted_examples;
    predictions_.Set(row_, row.evaluation);
    PassRow();
  }

  void Refuse(ValidationError error) {
    tally_.AddRowError(error.code);
    outcome_.row_errors.push_back({static_cast<uint32_t>(row_), std::move(error)});
    PassRow();
  }

  void PassRow() {
    ++segment_.rows;
    ++row_;
  }

  // Counts the rows since it did last; of models with document frequencies only.
  void CountDocuments() {
    if (core_.documents == nullptr) return;
    rows_.CountDocuments(counted_row_, row_, *core_.documents);
    counted_row_ = row_;
  }

  bool IsFrequencyChangeDue() {
    CountDocuments();
    return core_.documents != nullptr && core_.documents->UntilDue() == 0;
  }

  void OfferToSample(const ModelState& state, int32_t label) {
    if (!core_.ledger.stored_examples().samples()) return;
    // The row is learned: it is stored whole.
    const CancellationScope whole(nullptr);
    const Row mapped = rows_.MapInOrder(row_);
    rows_.UnknownNames(row_, unknown_);
    sampler_.Offer({mapped, label, unknown_}, state.names, segment_.sample);
  }

  // Moves the tally, of rows that changed nothing and were evaluated on `revision`, to the segment.
  void CloseTally(uint64_t revision) {
    if (tally_.examples == 0 && tally_.row_error_count == 0 && tally_.duplicates == 0) return;
    segment_.unchanged.push_back({revision, TakeTally()});
  }

  Tally TakeTally() {
    tally_.components = call_.components;
    outcome_.examples += tally_.examples;
    outcome_.mistakes += tally_.mistakes;
    return std::exchange(tally_, Tally());
  }

  // Decides what comes next, and hands the segment to the ledger: at the end of the message with
  // the end of its pass.
  template <typename Guard>
  void Finish(Guard& state, bool batch_is_full) {
    if (batch_is_full) {
      next_ = Next::kEndBatch;
    } else if (row_ < rows_.size()) {
      next_ = Next::kEvaluate;
    } else if (ends_new_pass_ && IsPending(state->learner->batch_learning())) {
      next_ = Next::kEndBatch;
    } else {
      next_ = Next::kNothing;
      outcome_.revision = state->revision;
      outcome_.epoch = core_.epoch.load(std::memory_order_acquire);
      segment_.completed_pass = call_.completed_pass;
    }
    Account(state);
  }

  // Hands the segment to the ledger, and releases the state, if it may be, as soon as nothing can
  // come between the two: other streams evaluate rows while the ledger counts.
  template <typename Guard>
  void Account(Guard& state) {
    sampler_.Release();
    CountDocuments();
    if (segment_.unchanged.empty() && segment_.updates.empty() && segment_.completed_pass == 0)
      return;
    segment_.predictions = TakeLearned(unlearned_, row_, outcome_.row_errors);
    segment_.revision = state->revision;
    if (segment_.completed_pass > 0) segment_.weight_norm = plan_.WeightNorm(*state->learner);
    Ledger::Applied applied = core_.ledger.Apply(*call_.producer, segment_, state->names, [&] {
      if (releases_state_early_) state.Release();
    });
    outcome_.next_offset = applied.next_offset;
    if (segment_.completed_pass > 0) outcome_.pass = std::move(applied.pass);
    outcome_.uncommitted_bytes += UncommittedBytes(core_, applied.pending_bytes);
    for (const SampledRow& row : segment_.sample)
      outcome_.uncommitted_bytes += row.second->memory_bytes();
    segment_.first_offset = applied.next_offset;
    segment_.rows = 0;
    segment_.unchanged.clear();
    segment_.updates.clear();
    segment_.sample.clear();
  }

  ModelCore& core_;
  std::optional<LargeWork> large_;
  // In the memory budget.
  size_t reserved_ = 0;
  const LearningPlan& plan_;
  const LearnCall& call_;
  std::span<const PredictionOfRow> unlearned_ = call_.predictions;
  LearnOutcome& outcome_;
  BatchRows rows_;
  RowUpdater updater_;
  std::unique_ptr<RowEvaluator> evaluator_;
  RowPredictions predictions_;
  StoredExamples::Sampler sampler_;
  // Nothing reads what the ledger counts under the state's lock alone: no count of examples, and no
  // sample.
  const bool releases_state_early_;
  Next next_ = Next::kEvaluate;
  // The next row.
  size_t row_ = 0;
  // The next row to be counted as a document.
  size_t counted_row_ = 0;
  // The message ends a pass that has not ended, nor has the batch that ends with it.
  bool ends_new_pass_ = false;
  // The squared norm of the mapped features of the row that calls for an update.
  double squared_norm_ = 0;
  // Counts the rows that are not in the segment yet.
  Tally tally_;
  // What they were evaluated on, when a row after them calls for an update.
  uint64_t tally_revision_ = 0;
  Segment segment_;
  // Names of one row without a weight.
  std::vector<absl::string_view> unknown_;
};

}  // namespace

absl::Status LearnBatch(ModelCore& core, const LearnCall& call, LearnOutcome& outcome) {
  return Learning(core, call, outcome).Run();
}

}  // namespace perceptrond
