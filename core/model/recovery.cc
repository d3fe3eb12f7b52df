// How a model is restored from its journal.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "core/error/stopped.h"
#include "core/model/model.h"
#include "core/model/recovery.h"
#include "core/model/snapshot.h"
#include "core/vector/kernels.h"
#include "core/vector/name.h"

namespace perceptrond {
namespace {

// The newest order of operations that this server can repeat (UpdateRecord.arithmetic_version).
constexpr uint32_t kArithmeticVersion = 1;

// What replaying an update takes besides its features, in multiply-adds.
constexpr size_t kReplayWork = 1000;

bool IsName(absl::string_view name) { return !name.empty() && name.size() <= kMaxNameBytes; }

}  // namespace

bool HasVector(const ModelCore& core, const ModelState& state, size_t number) {
  if (!core.settings.is_multiclass()) return number == 0;
  return state.learner->predictor().HasLabel(static_cast<int32_t>(number));
}

absl::Status Recovery::Inconsistent(absl::string_view what) const {
  return absl::DataLossError(absl::StrCat("the journal of \"", core_.name,
                                          "\" is inconsistent at "
                                          "revision ",
                                          state_.revision, ": ", what));
}

size_t Recovery::classes() const {
  return core_.settings.is_multiclass() ? state_.learner->predictor().scores() : 0;
}

bool Recovery::HasLabel(int32_t label) const {
  if (!core_.settings.is_multiclass()) return label == 1 || label == -1;
  const uint32_t limit = core_.settings.named_classes() ? state_.class_names.size()
                                                        : core_.settings.learner.classes.max;
  return label >= 0 && static_cast<uint32_t>(label) < limit;
}

bool Recovery::HasWeights(const Row& row) const {
  for (size_t i = 0; i < row.size; ++i) {
    if (row.index(i) >= state_.learner->size() || (core_.has_names() && row.index(i) == 0))
      return false;
  }
  return true;
}

bool Recovery::UnknownNamesHaveNoWeight() const {
  const LearnedWeights* const weights = state_.learner->learned_weights();
  return weights == nullptr || weights->AreZero(0);
}

bool Recovery::AddClassNames(const google::protobuf::RepeatedPtrField<std::string>& names) {
  for (const std::string& name : names) {
    // A record that a snapshot covers in part brings names that the snapshot has.
    if (state_.class_names.Find(name) != Dictionary::kUnknown) continue;
    if (!IsName(name) || core_.settings.new_classes != NewClasses::kNamed ||
        state_.class_names.size() == core_.settings.learner.classes.max)
      return false;
    state_.class_names.Add(name);
  }
  return true;
}

absl::Status Recovery::RestoreSnapshot(const storage::Snapshot& snapshot) {
  if (absl::Status status = RestoreLearner(snapshot); !status.ok()) return status;
  if (absl::Status status = RestoreNames(snapshot); !status.ok()) return status;
  if (!RestoreFrequencies(snapshot, core_, state_))
    return Inconsistent("the snapshot's document frequencies are wrong");
  state_.revision = snapshot.revision();
  if (absl::Status status = RestoreStoredExamples(snapshot.stored_rows()); !status.ok())
    return status;
  if (!snapshot.has_learning_curve()) return absl::OkStatus();
  std::optional<CurvePoints> points = CurvePoints::From(snapshot.learning_curve());
  if (!points.has_value()) return Inconsistent("the snapshot's learning curve is wrong");
  if (!points->points().empty() &&
      static_cast<uint64_t>(points->points().back().revision()) > state_.revision)
    return Inconsistent("the snapshot's learning curve goes beyond its revision");
  core_.ledger.RestoreCurvePoints(*std::move(points));
  return absl::OkStatus();
}

absl::Status Recovery::RestoreLearner(const storage::Snapshot& snapshot) {
  // Checked before memory is allocated: no array is longer than the space with the weight of
  // unknown names.
  const bool fits = std::all_of(snapshot.arrays().begin(), snapshot.arrays().end(),
                                [this](const storage::StateArray& array) {
                                  return array.size() <= uint64_t{core_.weight_space.size} + 1;
                                });
  if (!fits || static_cast<size_t>(snapshot.arrays_size()) > state_.learner->max_arrays())
    return Inconsistent("the snapshot has another model's shape");
  absl::StatusOr<LearnerState> state = ReadState(snapshot);
  if (!state.ok()) return state.status();
  if (!state_.learner->Restore(*std::move(state)))
    return Inconsistent("the snapshot has another learner's shape, or weights that are not finite");
  return absl::OkStatus();
}

absl::Status Recovery::RestoreNames(const storage::Snapshot& snapshot) {
  state_.names = Dictionary();
  for (const std::string& name : snapshot.names()) {
    if (!IsName(name) || state_.names.Find(name) != Dictionary::kUnknown)
      return Inconsistent("the snapshot has a name twice, or one that no feature can have");
    state_.names.Add(name);
  }
  if (!AddClassNames(snapshot.class_names()) ||
      (core_.settings.named_classes() && state_.class_names.size() != classes()))
    return Inconsistent("the snapshot has other classes");
  const size_t size = state_.learner->size();
  const bool fits = core_.has_names()
                        ? size == size_t{state_.names.size()} + 1 && UnknownNamesHaveNoWeight()
                        : size == core_.weight_space.size && state_.names.size() == 0;
  if (!fits) return Inconsistent(absl::StrCat("the snapshot has ", size, " weights"));
  return absl::OkStatus();
}

absl::Status Recovery::RestoreStoredExamples(const storage::StoredRows& stored) {
  const StoredRowShape shape{state_.learner->size(), core_.has_names()};
  absl::StatusOr<StoredExamplesCopy> examples = FromStorage(stored, shape, state_.names);
  if (!examples.ok()) return Inconsistent(examples.status().message());
  const bool labels =
      std::all_of(stored.rows().begin(), stored.rows().end(), [this](const auto& row) {
        return HasLabel(row.label()) && (!row.has_rival() || HasLabel(row.rival()));
      });
  if (!labels) return Inconsistent("a stored example has a label that the model does not have");
  core_.ledger.stored_examples().Restore(*std::move(examples));
  return absl::OkStatus();
}

absl::Status Recovery::AddNames(const storage::UpdateRecord& record) {
  if (!core_.has_names() && record.new_names_size() > 0)
    return Inconsistent("feature names in a space without names");
  for (const std::string& name : record.new_names()) {
    if (!IsName(name)) return Inconsistent("a name that no feature can have");
    // A record that a snapshot covers in part brings names that the snapshot has.
    if (state_.names.Find(name) == Dictionary::kUnknown) state_.names.Add(name);
  }
  if (core_.has_names() && state_.names.size() > core_.weight_space.size)
    return Inconsistent("more feature names than the model may have");
  if (record.new_names_size() > 0) state_.learner->Grow(state_.names.size() + 1);
  if (!AddClassNames(record.new_classes()))
    return Inconsistent("more classes than the model may have");
  return absl::OkStatus();
}

absl::Status Recovery::Replay(const storage::UpdateRecord& record, bool whole) {
  if (record.arithmetic_version() > kArithmeticVersion) {
    return WithRetry(
        MakeError(absl::StatusCode::kUnavailable, "NEWER_ARITHMETIC",
                  absl::StrCat("model \"", core_.name,
                               "\" has updates of a newer server, with arithmetic ",
                               record.arithmetic_version(), "; this one knows up to ",
                               kArithmeticVersion, ": ask another server, and update this one"),
                  {{"model", core_.name}}),
        absl::Seconds(1));
  }
  if (record.first_revision() > state_.revision + 1)
    return Inconsistent("records are missing before the next one");
  if (record.has_restored_state()) return ReplayRestoredState(record);
  if (record.has_document_frequencies()) return ReplayFrequencyChange(record, core_, state_);
  if (absl::Status status = AddNames(record); !status.ok()) return status;
  Batch batch;
  batch.row_ends = {record.row_ends().data(), static_cast<size_t>(record.row_ends_size())};
  batch.indices = {record.indices().data(), static_cast<size_t>(record.indices_size())};
  batch.values = {record.values().data(), static_cast<size_t>(record.values_size())};
  // The label of new weights is the update's, not one of their rows'.
  if (!record.replaces_weights())
    batch.labels = {record.labels().data(), static_cast<size_t>(record.labels_size())};
  batch.weights = {record.weights().data(), static_cast<size_t>(record.weights_size())};
  batch.dense_width = record.dense_width();
  if (ValidationError error = CheckColumns(batch)) return Inconsistent(error.description);
  const size_t updates = record.replaces_weights() ? 1 : batch.rows();
  if (static_cast<size_t>(record.labels_size()) != updates)
    return Inconsistent("a row has no label");
  if (static_cast<size_t>(record.ages_size()) != (counts_examples_ ? updates : 0))
    return Inconsistent("a row has no age");
  if (absl::Status status = ReplayRows(record, batch); !status.ok()) return status;
  if (core_.settings.named_classes() && state_.class_names.size() != classes())
    return Inconsistent("a class has a name and no example");
  if (whole && (state_.learner->augmented_squared_norm() != record.squared_norm() ||
                !std::isfinite(record.squared_norm())))
    return Inconsistent("replay ends with other weights");
  return ReplayCurve(record);
}

absl::Status Recovery::ReplayRows(const storage::UpdateRecord& record, const Batch& batch) {
  if (record.replaces_weights()) {
    if (record.first_revision() <= state_.revision) return absl::OkStatus();
    return ReplayWeightReplacement(record, batch);
  }
  for (size_t i = state_.revision + 1 - record.first_revision(); i < batch.rows(); ++i) {
    absl::Status status;
    if (std::binary_search(record.batch_ends().begin(), record.batch_ends().end(), i)) {
      status = ReplayBatchEnd(batch.row(i), batch.labels[i]);
    } else {
      status = ReplayUpdate(record, batch, i);
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Recovery::ReplayUpdate(const storage::UpdateRecord& record, const Batch& batch,
                                    size_t i) {
  const Row row = batch.row(i);
  if (!HasWeights(row)) return Inconsistent("a feature lies outside the model");
  const int32_t label = batch.labels[i];
  if (!HasLabel(label)) return Inconsistent("an example has a label that the model does not have");
  const uint64_t age = counts_examples_ ? record.ages(static_cast<int>(i)) : 0;
  const Target target{label, batch.weight(i) * core_.settings.learner.class_weight(label), age};
  if (!KeepGoing(row.size + kReplayWork)) return StoppedError();
  const Evaluation evaluation = state_.learner->Evaluate(row, label);
  if (Stopped()) return StoppedError();
  // An update is made whole.
  const CancellationScope whole(nullptr);
  if (!evaluation.update)
    return Inconsistent("the next example calls for no update, but did when it was learned");
  state_.learner->Update(row, target, evaluation);
  ++state_.revision;
  if (on_update_ != nullptr) on_update_(row, target);
  StoreExample({std::make_shared<const StoredRow>(SeenExample{row, label, {}}), state_.revision,
                batch.weight(i), Saturate(evaluation.score),
                counts_examples_ ? std::optional(age) : std::nullopt, evaluation.rival});
  return absl::OkStatus();
}

void Recovery::StoreExample(const StoredUpdate& update) {
  StoredExamples& stored = core_.ledger.stored_examples();
  if (stored.samples()) {
    std::vector<absl::string_view> unknown;
    std::vector<SampledRow> candidates;
    {
      StoredExamples::Sampler sampler(stored);
      sampler.Offer(update.row->Seen(unknown), state_.names, candidates);
    }
    stored.Add(candidates, state_.names);
  }
  stored.AddUpdate(update);
}

absl::Status Recovery::ReplayBatchEnd(const Row& row, int32_t label) {
  BatchLearning* const learning = state_.learner->batch_learning();
  if (row.size > 0 || label != 0 || learning == nullptr || !learning->IsPending())
    return Inconsistent("a batch of examples ends that did not begin");
  learning->EndBatch();
  ++state_.revision;
  return absl::OkStatus();
}

absl::Status Recovery::ReplayWeightReplacement(const storage::UpdateRecord& record,
                                               const Batch& batch) {
  ReplaceableWeights* const replaceable = state_.learner->replaceable_weights();
  const size_t rows = batch.rows();
  if (rows == 0 || rows != static_cast<size_t>(record.bias_weights_size()) ||
      rows > state_.learner->predictor().scores() || batch.dense_width > 0 ||
      record.labels(0) != 0 || replaceable == nullptr)
    return Inconsistent("a record replaces weights and has none for this model");
  std::vector<ReplacementVector> vectors;
  for (size_t k = 0; k < rows; ++k) {
    const ReplacementVector one{batch.row(k), record.bias_weights(static_cast<int>(k))};
    const bool is_empty = one.weights.size == 0 && one.bias_weight == 0;
    if (!HasWeights(one.weights) || (!is_empty && !HasVector(core_, state_, k)))
      return Inconsistent("a replaced weight lies outside the model");
    vectors.push_back(one);
  }
  replaceable->ReplaceWeights(vectors, counts_examples_ ? record.ages(0) : 0);
  ++state_.revision;
  return absl::OkStatus();
}

absl::Status Recovery::ReplayRestoredState(const storage::UpdateRecord& record) {
  // A snapshot covers it.
  if (record.first_revision() <= state_.revision) return absl::OkStatus();
  if (record.labels_size() != 1 || record.labels(0) != 0 || record.row_ends_size() > 0)
    return Inconsistent("a record restores a state and has examples");
  const storage::Snapshot& state = record.restored_state();
  const uint64_t revision = state_.revision + 1;
  state_ = MakeInitialState(core_.settings, state_.margin_of_interest);
  state_.revision = revision;
  absl::Status status = RestoreLearner(state);
  if (status.ok()) status = RestoreNames(state);
  if (status.ok()) status = RestoreStoredExamples(state.stored_rows());
  if (!status.ok()) return status;
  return state_.learner->augmented_squared_norm() == record.squared_norm() &&
                 RestoreFrequencies(state, core_, state_)
             ? absl::OkStatus()
             : Inconsistent("a restored state has other weights or wrong document frequencies");
}

absl::Status Recovery::ReplayCurve(const storage::UpdateRecord& record) {
  for (const LearningCurvePoint& point : record.learning_curve()) {
    const auto revision = static_cast<uint64_t>(point.revision());
    if (!IsSound(point) || revision < record.first_revision() || revision > state_.revision)
      return Inconsistent("a point of the learning curve is wrong");
    // Not added if a snapshot covers it: it is there, or was dropped when the curve was thinned.
    core_.ledger.ReplayCurve(point);
  }
  return absl::OkStatus();
}

absl::Status Recover(StoredModel& stored, ModelCore& core) {
  const storage::Counters& committed = stored.committed().counters;
  const Guarded<ModelState>::Writer state(core.state);
  Recovery recovery(core, *state);
  absl::StatusOr<std::optional<storage::Snapshot>> snapshot = stored.TakeSnapshot();
  if (!snapshot.ok()) return snapshot.status();
  if (!KeepGoing()) return StoppedError();
  JournalUse use;
  if (snapshot->has_value()) {
    if (absl::Status status = recovery.RestoreSnapshot(**snapshot); !status.ok()) return status;
    use.snapshot_time = absl::FromUnixSeconds((*snapshot)->time().seconds()) +
                        absl::Nanoseconds((*snapshot)->time().nanos());
  }
  const auto replay = [&](const storage::UpdateRecord& record, size_t bytes) {
    use.bytes += bytes;
    return recovery.Replay(record);
  };
  if (absl::Status status = stored.Replay(state->revision, replay); !status.ok()) return status;
  if (state->revision != committed.report().updates()) {
    return absl::DataLossError(absl::StrCat("the journal of \"", core.name, "\" ends at revision ",
                                            state->revision, ", but its counters at ",
                                            committed.report().updates()));
  }
  if (committed.undone_updates() > committed.report().updates() ||
      committed.undone_examples() > committed.report().examples()) {
    return absl::DataLossError(absl::StrCat("the counters of \"", core.name,
                                            "\" have more updates or examples undone than made"));
  }
  core.ledger.BeginEpoch({core.epoch.load(), state->revision});
  core.ledger.stored_examples().FinishRecovery(
      committed.report().examples() == 0 || committed.sample_complete(), committed.sampled());
  *Guarded<JournalUse>::Writer(core.journal_use) = use;
  return absl::OkStatus();
}

absl::Status Follow(const JournalEntry& entry, ModelCore& core) {
  const Guarded<ModelState>::Writer state(core.state);
  if (!entry.records.empty() && entry.records.front().first_revision() > state->revision + 1) {
    return absl::OutOfRangeError(absl::StrCat("\"", core.name, "\" is at revision ",
                                              state->revision, " and lacks records before ",
                                              entry.records.front().first_revision()));
  }
  // What uses the model may know the numbers of names that it would have no more.
  const bool rolls_back =
      std::any_of(entry.records.begin(), entry.records.end(),
                  [](const storage::UpdateRecord& record) { return record.has_restored_state(); });
  if (rolls_back) return absl::OutOfRangeError("it was rolled back");
  // Applied whole, whatever becomes of the call.
  const CancellationScope whole(nullptr);
  const TornByException torn(core.ledger);
  Recovery recovery(core, *state);
  for (const storage::UpdateRecord& record : entry.records) {
    if (LastRevision(record) <= state->revision) continue;
    if (absl::Status status = recovery.Replay(record); !status.ok()) return status;
  }
  // Of an older entry, the later one's stay.
  if (entry.counters.report().updates() < state->revision) return absl::OkStatus();
  if (entry.counters.report().updates() > state->revision) {
    return absl::OutOfRangeError(absl::StrCat("\"", core.name, "\" is at revision ",
                                              state->revision, ", and the counters at ",
                                              entry.counters.report().updates()));
  }
  core.ledger.Follow(entry.counters, entry.positions);
  return absl::OkStatus();
}

}  // namespace perceptrond
