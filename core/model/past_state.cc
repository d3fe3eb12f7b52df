#include "core/model/past_state.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/convergence/progress.h"
#include "core/convergence/tally.h"
#include "core/error/error.h"
#include "core/model/model.h"
#include "core/model/recovery.h"
#include "core/model/snapshot.h"

namespace perceptrond {
namespace {

// Removes the last of the new names, so that with those that are known there are at most `count`.
void KeepUpTo(uint64_t count, const Dictionary& known,
              google::protobuf::RepeatedPtrField<std::string>& new_names) {
  uint64_t size = known.size();
  int kept = 0;
  for (; kept < new_names.size(); ++kept) {
    const bool is_new = known.Find(new_names[kept]) == Dictionary::kUnknown;
    if (is_new && size++ >= count) break;
  }
  new_names.DeleteSubrange(kept, new_names.size() - kept);
}

// The first rows of a record, with the names and classes that they introduce. Its squared_norm is that
// of the whole.
storage::UpdateRecord FirstRows(const storage::UpdateRecord& record, int rows,
                                const ModelState& state) {
  storage::UpdateRecord first = record;
  const auto truncate = [](auto& field, int size) {
    if (field.size() > size) field.Truncate(size);
  };
  const int values = record.dense_width() > 0 ? rows * static_cast<int>(record.dense_width())
                                              : static_cast<int>(record.row_ends(rows - 1));
  truncate(*first.mutable_row_ends(), rows);
  truncate(*first.mutable_indices(), values);
  truncate(*first.mutable_values(), values);
  truncate(*first.mutable_labels(), rows);
  truncate(*first.mutable_weights(), rows);
  truncate(*first.mutable_ages(), rows);
  auto& ends = *first.mutable_batch_ends();
  ends.Truncate(static_cast<int>(
      std::lower_bound(ends.begin(), ends.end(), static_cast<uint32_t>(rows)) - ends.begin()));
  // Names and classes are numbered as they come: index 1 is the first name, as is class 0.
  const auto last_name = std::max_element(first.indices().begin(), first.indices().end());
  KeepUpTo(last_name == first.indices().end() ? 0 : *last_name, state.names,
           *first.mutable_new_names());
  const int32_t last_class = *std::max_element(first.labels().begin(), first.labels().end());
  KeepUpTo(static_cast<uint64_t>(std::max(-1, last_class) + 1), state.class_names,
           *first.mutable_new_classes());
  first.clear_learning_curve();
  return first;
}

class PastReplay {
 public:
  // The caller holds the state exclusively.
  PastReplay(const PastMoment& moment, PastState past, ModelCore& core, ModelState& state)
      : revision_(moment.revision),
        examples_(moment.examples),
        past_(std::move(past)),
        core_(core),
        progress_(past_.counters),
        state_(state),
        recovery_(core, state_) {
    recovery_.Watch([this](const Row& row, const Target& target) { OnUpdate(row, target); });
  }

  absl::StatusOr<PastState> Run(const RecordSource& records) {
    absl::Status status = recovery_.RestoreSnapshot(past_.state);
    past_.state.Clear();
    if (!status.ok()) return status;
    noted_to_ = state_.revision;
    status = records(state_.revision, [this](const storage::UpdateRecord& record, size_t) {
      return Replay(record);
    });
    if (!status.ok() && !absl::IsCancelled(status)) return status;
    if (!is_taken_) {
      // No update followed.
      if (state_.revision != revision_ || (core_.plan.counts_examples && !examples_.has_value()))
        return Missing();
      TakeState();
    }
    return std::move(past_);
  }

 private:
  static absl::Status Missing() {
    return absl::NotFoundError("the journal lacks updates before the revision");
  }

  void OnUpdate(const Row& row, const Target& target) {
    Tally tally;
    tally.updates = 1;
    NoteUpdate(core_.settings.learner, *state_.learner, row, target, tally);
    progress_.Add(tally);
  }

  // CANCELLED once the state is taken.
  absl::Status Replay(const storage::UpdateRecord& record) {
    if (is_taken_) return absl::CancelledError();
    if (record.first_revision() > state_.revision + 1) return Missing();
    if (record.has_restored_state() && !record.has_restored_counters()) return Missing();
    const uint64_t last = LastRevision(record);
    if (last <= revision_) {
      absl::Status status = recovery_.Replay(record);
      if (status.ok()) NoteOthers(record, last);
      return status;
    }
    const auto rows = static_cast<int>(revision_ + 1 - record.first_revision());
    absl::Status status;
    if (rows > 0) {
      status = recovery_.Replay(FirstRows(record, rows, state_), /*whole=*/false);
      if (!status.ok()) return status;
      NoteOthers(record, revision_);
    }
    if (core_.plan.counts_examples) {
      examples_ = ExamplesBefore(record, rows);
      if (!examples_.has_value()) return Missing();
    }
    TakeState();
    // The norm at its end proves its beginning.
    if (rows > 0) status = recovery_.Replay(record);
    return status.ok() ? absl::CancelledError() : status;
  }

  // Of rules that count them: those of the run before a row of the record, or before what the record has in place of
  // rows. Absent: an older server made it.
  std::optional<uint64_t> ExamplesBefore(const storage::UpdateRecord& record, int row) const {
    if (record.has_restored_state()) {
      const auto all = static_cast<uint64_t>(record.restored_counters().report().examples());
      return all - progress_.counters().undone_examples();
    }
    return row < record.ages_size() ? std::optional(record.ages(row)) : std::nullopt;
  }

  // Updates of a record up to a revision that no row made.
  void NoteOthers(const storage::UpdateRecord& record, uint64_t last) {
    if (record.has_restored_state()) {
      progress_ = Progress(record.restored_counters());
      return;
    }
    if (record.replaces_weights()) progress_.AddWeightReplacement(record.first_revision());
    if (record.has_document_frequencies()) progress_.AddInputChange(record.first_revision());
    for (const uint32_t end : record.batch_ends()) {
      if (record.first_revision() + end > last) break;
      if (record.first_revision() + end <= noted_to_) continue;
      Tally tally;
      tally.updates = 1;
      progress_.Add(tally);
    }
    noted_to_ = last;
  }

  void TakeState() {
    is_taken_ = true;
    past_.state = MakeSnapshot(core_, state_);
    past_.counters = progress_.counters();
    ConvergenceReport& report = *past_.counters.mutable_report();
    report.set_updates(state_.revision);
    if (core_.plan.counts_examples)
      report.set_examples(*examples_ + past_.counters.undone_examples());
    const StoredExamplesStatistics stored = core_.ledger.stored_examples().statistics();
    past_.counters.set_sampled(stored.sampled);
    past_.counters.set_sample_bytes(stored.sample_bytes);
  }

  const uint64_t revision_;
  // Of rules that count them, in the run: those before the next update.
  std::optional<uint64_t> examples_;
  PastState past_;
  ModelCore& core_;
  Progress progress_;
  ModelState& state_;
  Recovery recovery_;
  uint64_t noted_to_ = 0;
  bool is_taken_ = false;
};

}  // namespace

absl::StatusOr<PastState> ReplayTo(const PastMoment& moment, PastState past,
                                   const storage::ModelHeader& header,
                                   const RecordSource& records) {
  absl::StatusOr<ModelSettings> settings = ReadSettings(header.model());
  if (!settings.ok()) return absl::DataLossError(settings.status().message());
  ModelCore core(header, *std::move(settings), ModelLimits(), CommittedState());
  const Guarded<ModelState>::Writer state(core.state);
  return PastReplay(moment, std::move(past), core, *state).Run(records);
}

}  // namespace perceptrond
