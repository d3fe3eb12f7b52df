// How a model comes back from its journal: the snapshot, then every record behind it, each checked
// against what it says of itself. docs/journal.md has the whole.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/learner/catalogue.h"
#include "core/model/error.h"
#include "core/model/model.h"
#include "core/model/retention_codec.h"
#include "core/model/snapshot_codec.h"
#include "core/vector/kernels.h"

namespace perceptrond {

absl::Status Model::Rebuild(Journal& journal, const storage::Counters& committed) {
  MutexLock lock(&mutex_);
  absl::StatusOr<std::optional<storage::Snapshot>> snapshot = journal.LoadSnapshot(id_);
  if (!snapshot.ok()) return snapshot.status();
  JournalUse use;
  if (snapshot->has_value()) {
    if (absl::Status status = RestoreSnapshot(**snapshot); !status.ok()) return status;
    use.snapshot_time = absl::FromUnixSeconds((*snapshot)->time().seconds()) +
                        absl::Nanoseconds((*snapshot)->time().nanos());
  }
  const auto replay = [&](const storage::UpdateRecord& record, size_t bytes)
                          ABSL_NO_THREAD_SAFETY_ANALYSIS {
                            use.bytes += bytes;
                            return ReplayRecord(record);
                          };
  if (absl::Status status = journal.Replay(id_, revision_, replay); !status.ok()) return status;
  if (revision_ != committed.report().updates()) {
    return absl::DataLossError(absl::StrCat("the journal of \"", name_, "\" ends at revision ",
                                            revision_, " but its counters stand at ",
                                            committed.report().updates()));
  }
  ledger_.retention().Settle(committed.report().examples() == 0 || committed.sample_complete(),
                             committed.sampled());
  MutexLock use_lock(&use_mutex_);
  use_ = use;
  return absl::OkStatus();
}

absl::Status Model::RestoreSnapshot(const storage::Snapshot& snapshot) {
  const bool named = weight_space_.kind == FeatureSpace::Kind::kNamed;
  // Before room is made for them: no array is wider than the space and the weight of unknown names.
  const bool fits = std::all_of(snapshot.arrays().begin(), snapshot.arrays().end(),
                                [this](const storage::StateArray& array) {
                                  return array.size() <= uint64_t{weight_space_.size} + 1;
                                });
  if (!fits || static_cast<size_t>(snapshot.arrays_size()) > learner_->most_arrays()) {
    return absl::DataLossError(
        absl::StrCat("the snapshot of \"", name_, "\" has another model's shape"));
  }
  absl::StatusOr<LearnerState> state = ReadState(snapshot);
  if (!state.ok()) return state.status();
  if (!learner_->Restore(*std::move(state))) {
    return absl::DataLossError(
        absl::StrCat("the snapshot of \"", name_,
                     "\" has another learner's shape, or weights that are no numbers"));
  }
  dictionary_ = Dictionary();
  for (const std::string& name : snapshot.names()) dictionary_.Add(name);
  if (!TakeClassNames(snapshot.class_names()) ||
      (settings_.named_classes() && class_names_.size() != classes())) {
    return absl::DataLossError(absl::StrCat("the snapshot of \"", name_, "\" has other classes"));
  }
  const size_t size = learner_->size();
  if (named ? size != size_t{dictionary_.size()} + 1 || !UnknownNamesWeighNothing()
            : size != weight_space_.size || dictionary_.size() > 0) {
    return absl::DataLossError(
        absl::StrCat("the snapshot of \"", name_, "\" has ", size, " weights"));
  }
  revision_ = snapshot.revision();
  if (absl::Status status = RestoreRetained(snapshot.retained()); !status.ok()) return status;
  if (!snapshot.has_history()) return absl::OkStatus();
  std::optional<History> history = History::From(snapshot.history());
  const bool sound = history.has_value() &&
                     (history->points().empty() ||
                      static_cast<uint64_t>(history->points().back().revision()) <= revision_);
  if (!sound) {
    return absl::DataLossError(
        absl::StrCat("the snapshot of \"", name_, "\" has a learning curve that contradicts it"));
  }
  ledger_.RestoreHistory(*std::move(history));
  return absl::OkStatus();
}

absl::Status Model::ReplayBatchEnd(const Row& row, int32_t label) {
  if (row.size > 0 || label != 0 || !learner_->BatchWaits())
    return absl::DataLossError(absl::StrCat("the journal of \"", name_, "\" at revision ",
                                            revision_, ": the end of a batch that there is not"));
  learner_->EndBatch();
  ++revision_;
  return absl::OkStatus();
}

absl::Status Model::ReplayRecord(const storage::UpdateRecord& record) {
  const auto loss = [&](absl::string_view what)
                        ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return Contradiction(what); };
  if (record.first_revision() > revision_ + 1)
    return loss("records are missing before the next one");
  const bool named = weight_space_.kind == FeatureSpace::Kind::kNamed;
  if (!named && record.new_names_size() > 0) return loss("names where features have none");
  for (const std::string& name : record.new_names()) {
    // A record that a snapshot covers in part brings names that the snapshot has already.
    if (dictionary_.Find(name) == Dictionary::kUnknown) dictionary_.Add(name);
  }
  if (named && dictionary_.size() > weight_space_.size) return loss("more names than the cap");
  if (record.new_names_size() > 0) learner_->Grow(dictionary_.size() + 1);
  if (!TakeClassNames(record.new_classes())) return loss("more classes than the model may have");
  Batch batch;
  batch.row_ends = {record.row_ends().data(), static_cast<size_t>(record.row_ends_size())};
  batch.indices = {record.indices().data(), static_cast<size_t>(record.indices_size())};
  batch.values = {record.values().data(), static_cast<size_t>(record.values_size())};
  batch.labels = {record.labels().data(), static_cast<size_t>(record.labels_size())};
  batch.weights = {record.weights().data(), static_cast<size_t>(record.weights_size())};
  batch.dense_width = record.dense_width();
  if (ValidationError error = CheckColumns(batch)) return loss(error.description);
  if (batch.labels.size() != batch.rows()) return loss("a row has no label");
  const bool counts = FindLearner(settings_.learner.kind).counts_examples;
  if (static_cast<size_t>(record.ages_size()) != (counts ? batch.rows() : 0))
    return loss("a row has no age");
  for (size_t i = revision_ + 1 - record.first_revision(); i < batch.rows(); ++i) {
    if (std::binary_search(record.batch_ends().begin(), record.batch_ends().end(), i)) {
      if (absl::Status status = ReplayBatchEnd(batch.row(i), batch.labels[i]); !status.ok())
        return status;
      continue;
    }
    absl::Status status =
        record.adopted() ? ReplayWeightReplacement(record, batch) : ReplayUpdate(record, batch, i);
    if (!status.ok()) return status;
  }
  if (settings_.named_classes() && class_names_.size() != classes())
    return loss("a class has a name and no example");
  if (learner_->augmented_squared_norm() != record.squared_norm() ||
      !std::isfinite(record.squared_norm()))
    return loss("replay ends at other weights");
  return ReplayHistory(record);
}

absl::Status Model::ReplayHistory(const storage::UpdateRecord& record) {
  for (const HistoryPoint& point : record.history()) {
    const auto at = static_cast<uint64_t>(point.revision());
    if (!IsSound(point) || at < record.first_revision() || at > revision_) {
      return absl::DataLossError(absl::StrCat("the journal of \"", name_, "\" at revision ",
                                              revision_,
                                              ": a point of its learning curve is wrong"));
    }
    // One that a snapshot covers is there already, or went when the curves were thinned.
    ledger_.ReplayHistory(point);
  }
  return absl::OkStatus();
}

absl::Status Model::Contradiction(absl::string_view what) const {
  return absl::DataLossError(
      absl::StrCat("the journal of \"", name_, "\" at revision ", revision_, ": ", what));
}

absl::Status Model::ReplayUpdate(const storage::UpdateRecord& record, const Batch& batch,
                                 size_t i) {
  const Row row = batch.row(i);
  const bool named = weight_space_.kind == FeatureSpace::Kind::kNamed;
  for (size_t j = 0; j < row.size; ++j) {
    // Index 0 of a named space is every unknown name's, and no update's.
    if (row.index(j) >= learner_->size() || (named && row.index(j) == 0))
      return Contradiction("a feature lies outside the model");
  }
  const int32_t label = batch.labels[i];
  if (!TakesLabel(label)) return Contradiction("a label is none of the model's");
  const bool counts = FindLearner(settings_.learner.kind).counts_examples;
  const Target target{label, batch.weight(i) * settings_.learner.class_weight(label),
                      counts ? record.ages(static_cast<int>(i)) : 0};
  const Evaluation evaluation = learner_->Evaluate(row, label);
  if (!evaluation.update)
    return Contradiction("the next example calls for no update, but did when it was learned");
  learner_->Update(row, target, evaluation);
  ++revision_;
  RetainReplayed({std::make_shared<const RetainedRow>(SeenExample{row, label, {}}), revision_,
                  batch.weight(i), Saturate(evaluation.score),
                  counts ? std::optional(target.age) : std::nullopt});
  return absl::OkStatus();
}

}  // namespace perceptrond
