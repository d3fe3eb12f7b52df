#include "core/store/model_history.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "core/convergence/progress.h"
#include "core/error/error.h"
#include "core/error/stopped.h"
#include "core/model/past_state.h"
#include "core/model/snapshot.h"
#include "core/settings/settings.h"
#include "core/store/model_expiry.h"
#include "core/store/snapshotter.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

absl::Status SnapshotNotFound(absl::string_view name, absl::string_view id) {
  return MakeError(
      absl::StatusCode::kNotFound, "SNAPSHOT_NOT_FOUND",
      absl::StrCat("model \"", name, "\" keeps no snapshot \"", id, "\"; list those that it keeps"),
      {{"model", std::string(name)}, {"snapshot", std::string(id)}});
}

absl::Status RolledBack(absl::string_view name) {
  return WithRetry(
      MakeError(absl::StatusCode::kUnavailable, "MODEL_RELOADED",
                absl::StrCat("model \"", name, "\" was rolled back: connect again, and resume"),
                {{"model", std::string(name)}}),
      absl::Milliseconds(100));
}

auto FindKept(storage::ModelHeader& header, absl::string_view id) {
  auto& kept = *header.mutable_kept_snapshots();
  return std::find_if(kept.begin(), kept.end(),
                      [&](const storage::KeptSnapshot& one) { return one.id() == id; });
}

// The newest kept snapshot that the model was at before `revision`, or at it, if all updates between
// are held, which are those after `begin`; else the end.
auto FindBase(storage::ModelHeader& header, uint64_t begin, uint64_t revision) {
  auto& kept = *header.mutable_kept_snapshots();
  auto base = kept.end();
  for (auto one = kept.begin(); one != kept.end(); ++one) {
    if (one->revision() <= revision) base = one;
  }
  if (base != kept.end() && base->revision() < revision && base->revision() < begin)
    return kept.end();
  return base;
}

absl::Status RevisionNotKept(const storage::ModelHeader& header, uint64_t begin, uint64_t current,
                             uint64_t revision) {
  // Beside the snapshots' own.
  std::vector<std::string> revisions;
  for (const storage::KeptSnapshot& kept : header.kept_snapshots()) {
    if (kept.revision() >= begin) {
      revisions.push_back(kept.revision() < current ? absl::StrCat(kept.revision(), " to ", current)
                                                    : absl::StrCat(current));
      break;
    }
    revisions.push_back(absl::StrCat(kept.revision()));
  }
  const std::string& name = header.model().name();
  return MakeError(
      absl::StatusCode::kNotFound, "REVISION_NOT_KEPT",
      absl::StrCat("model \"", name, "\" cannot go back to revision ", revision, ": ",
                   revisions.empty() ? "it keeps no snapshot; make one first"
                                     : absl::StrCat("it keeps ", absl::StrJoin(revisions, ", "))),
      {{"model", name},
       {"revision", absl::StrCat(revision)},
       {"revisions", absl::StrJoin(revisions, ", ")}});
}

absl::Status CheckKeeps(storage::ModelHeader& header, const std::string& id) {
  const std::string& name = header.model().name();
  if (FindKept(header, id) != header.mutable_kept_snapshots()->end()) {
    return MakeError(absl::StatusCode::kAlreadyExists, "SNAPSHOT_EXISTS",
                     absl::StrCat("model \"", name, "\" keeps a snapshot \"", id,
                                  "\" already: delete it first, or choose another id"),
                     {{"model", name}, {"snapshot", id}});
  }
  if (header.kept_snapshots_size() < ModelHistory::kMostKept) return absl::OkStatus();
  return MakeError(absl::StatusCode::kResourceExhausted, "SNAPSHOT_LIMIT",
                   absl::StrCat("model \"", name, "\" keeps ", header.kept_snapshots_size(),
                                " snapshots, the most that it may: delete one first"),
                   {{"model", name}});
}

void SetNow(google::protobuf::Timestamp& time) {
  const int64_t nanos = absl::GetCurrentTimeNanos();
  time.set_seconds(nanos / 1'000'000'000);
  time.set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
}

// The squared norm of the weights in a model's state. DATA_LOSS if it is none of such a model.
absl::StatusOr<double> NormOf(const ModelSettings& settings, const storage::Snapshot& state) {
  const ModelState initial = MakeInitialState(settings, 0);
  absl::StatusOr<LearnerState> learner = ReadState(state);
  if (!learner.ok()) return learner.status();
  if (!initial.learner->Restore(*std::move(learner)))
    return absl::DataLossError("the kept snapshot has another learner's shape");
  return initial.learner->augmented_squared_norm();
}

}  // namespace

absl::StatusOr<std::shared_ptr<Model>> ModelHistory::AcquireToWrite(absl::string_view name) {
  absl::StatusOr<std::shared_ptr<Model>> model = store_.Acquire(name);
  if (!model.ok()) return model;
  if (absl::Status status = (*model)->core().CheckWritable(); !status.ok()) return status;
  return model;
}

absl::Status ModelHistory::CommitAndClose(const std::shared_ptr<Model>& model,
                                          const absl::Status& why, bool predicts) {
  if (absl::Status status = store_.committer_->Commit(model); !status.ok()) return status;
  // What was learned meanwhile, of which correct rows are acknowledged.
  StopLearning(model->core(), why);
  if (absl::Status status = store_.committer_->Commit(model); !status.ok()) return status;
  if (predicts) model->core().is_last_copy.store(true, std::memory_order_release);
  model->Close(why);
  // Refused, and after whatever is being written.
  (void)store_.committer_->Commit(model);
  store_.snapshotter_->Await(model->id());
  return absl::OkStatus();
}

absl::StatusOr<ModelHistory::WholeModel> ModelHistory::Read(absl::string_view name) {
  absl::StatusOr<std::shared_ptr<Model>> model = store_.Acquire(name);
  if (!model.ok()) return model.status();
  absl::StatusOr<storage::ModelHeader> header = store_.catalogue_.Find(name);
  if (!header.ok()) return header.status();
  WholeModel whole;
  whole.header = *std::move(header);
  {
    const ModelReader reader(**model, ComponentAccess::kNone);
    whole.state = MakeSnapshot(reader);
    whole.committed = reader.ledger().CopyState();
  }
  if (absl::Status closed = (*model)->closed(); !closed.ok()) return closed;
  SetNow(*whole.state.mutable_time());
  return whole;
}

absl::StatusOr<v1::Model> ModelHistory::CreateCopy(const storage::ModelHeader& source,
                                                   const storage::Snapshot& state,
                                                   const CommittedState& committed,
                                                   absl::string_view new_name,
                                                   const std::string& request_id) {
  absl::StatusOr<v1::Model> created =
      store_.catalogue_.CreateCopy(source, new_name, request_id, state, committed);
  if (created.ok()) store_.expiry_->OnExpireAfter(ExpireAfter(*created));
  return created;
}

absl::StatusOr<v1::Model> ModelHistory::Copy(absl::string_view name, absl::string_view new_name,
                                             const std::string& request_id) {
  const absl::StatusOr<WholeModel> model = Read(name);
  if (!model.ok()) return model.status();
  const ModelCopyMemory memory(store_.memory_, model->state.SpaceUsedLong());
  return CreateCopy(model->header, model->state, model->committed, new_name, request_id);
}

absl::StatusOr<ModelFilePieces> ModelHistory::Export(absl::string_view name) {
  const absl::StatusOr<WholeModel> model = Read(name);
  if (!model.ok()) return model.status();
  const ModelCopyMemory memory(store_.memory_, 2 * model->state.SpaceUsedLong());
  return WriteModelFile(model->header, model->state, model->committed);
}

ModelFileReader ModelHistory::ReadFile(ModelFileReader::Hold hold) const {
  return ModelFileReader(store_.options_.limits, std::move(hold));
}

absl::Status ModelHistory::CheckImport(const storage::ModelHeader& settings,
                                       absl::string_view new_name, const std::string& request_id) {
  v1::Model model = settings.model();
  model.set_name(std::string(new_name));
  absl::Status status =
      store_.catalogue_.Create(std::move(model), request_id, /*validate_only=*/true).status();
  const bool is_refused = absl::IsAlreadyExists(status) || absl::IsResourceExhausted(status) ||
                          absl::IsPermissionDenied(status) || absl::IsUnauthenticated(status);
  // Other errors may be of damage that only the checksum shows.
  return is_refused ? status : absl::OkStatus();
}

absl::StatusOr<v1::Model> ModelHistory::Import(ModelFileReader file, absl::string_view new_name,
                                               const std::string& request_id) {
  const ModelCopyMemory memory(store_.memory_, file.memory_bytes());
  absl::StatusOr<ModelFile> read = file.Finish();
  if (!read.ok()) return read.status();
  return CreateCopy(read->header, read->state, read->committed, new_name, request_id);
}

absl::Status ModelHistory::Rename(absl::string_view name, absl::string_view new_name,
                                  absl::string_view etag) {
  const absl::Status not_found = ModelNotFound(name);
  const auto rename = [&](const storage::ModelHeader& renamed, const storage::ModelHeader& before) {
    const absl::StatusOr<std::shared_ptr<Model>> model = AcquireToWrite(name);
    if (!model.ok()) return model.status();
    absl::Status status = CommitAndClose(*model, not_found, /*predicts=*/false);
    if (status.ok()) {
      status = store_.journal_->Rename(renamed, before);
      status = JournalError(status, absl::IsAlreadyExists(status) ? new_name : name);
    }
    // Also if it failed: the next use loads it anew.
    store_.cache_.CloseAndRemove(name, not_found);
    return status;
  };
  const absl::StatusOr<v1::Model> renamed = store_.catalogue_.Rename(name, new_name, etag, rename);
  if (!renamed.ok()) return renamed.status();
  if (store_.last_copies_ != nullptr) store_.last_copies_->Remove(name);
  store_.streams_.EndAll(renamed->uid(), not_found);
  return absl::OkStatus();
}

absl::StatusOr<storage::KeptSnapshot> ModelHistory::Keep(absl::string_view name,
                                                         const std::string& id) {
  storage::KeptSnapshot kept;
  const auto keep = [&](storage::ModelHeader& header) -> absl::Status {
    if (absl::Status status = CheckKeeps(header, id); !status.ok()) return status;
    const absl::StatusOr<std::shared_ptr<Model>> model = AcquireToWrite(name);
    if (!model.ok()) return model.status();
    const ModelCopyMemory memory(store_.memory_, MeasureMemory(**model).state);
    storage::Snapshot snapshot;
    {
      const ModelReader reader(**model, ComponentAccess::kNone);
      snapshot = MakeSnapshot(reader);
      *kept.mutable_counters() = reader.ledger().counters();
    }
    // What is kept was acknowledged, or will be.
    if (absl::Status status = store_.committer_->Commit(*model); !status.ok()) return status;
    kept.set_id(id);
    kept.set_number(header.last_kept_number() + 1);
    kept.set_revision(snapshot.revision());
    SetNow(*kept.mutable_time());
    *snapshot.mutable_time() = kept.time();
    if (absl::Status status = store_.journal_->SaveKept(header.id(), snapshot, kept); !status.ok())
      return JournalError(status, name);
    header.set_last_kept_number(kept.number());
    *header.add_kept_snapshots() = kept;
    return absl::OkStatus();
  };
  if (absl::Status status = store_.catalogue_.ChangeKept(name, keep); !status.ok()) return status;
  return kept;
}

absl::StatusOr<std::vector<storage::KeptSnapshot>> ModelHistory::List(absl::string_view name) {
  const absl::StatusOr<storage::ModelHeader> header = store_.catalogue_.Find(name);
  if (!header.ok()) return header.status();
  return std::vector<storage::KeptSnapshot>(header->kept_snapshots().begin(),
                                            header->kept_snapshots().end());
}

absl::Status ModelHistory::Delete(absl::string_view name, absl::string_view id) {
  const auto remove = [&](storage::ModelHeader& header) {
    const auto found = FindKept(header, id);
    if (found == header.mutable_kept_snapshots()->end()) return SnapshotNotFound(name, id);
    header.mutable_kept_snapshots()->erase(found);
    return absl::OkStatus();
  };
  if (absl::Status status = store_.catalogue_.ChangeKept(name, remove); !status.ok()) return status;
  // A snapshot drops the records that were held for this one.
  const std::shared_ptr<Model> loaded = store_.GetIfLoaded(name);
  if (loaded != nullptr && loaded->core().CheckWritable().ok())
    store_.snapshotter_->Request(loaded);
  return absl::OkStatus();
}

absl::Status ModelHistory::RollBack(absl::string_view name, const RollbackTarget& target,
                                    std::optional<uint64_t> expected_revision) {
  const auto roll_back = [&](storage::ModelHeader& header) -> absl::Status {
    if (header.model().state() == v1::MODEL_STATE_FROZEN) return ModelFrozen(name);
    const absl::StatusOr<std::shared_ptr<Model>> model = AcquireToWrite(name);
    if (!model.ok()) return model.status();
    const ModelCopyMemory memory(store_.memory_, 3 * MeasureMemory(**model).state);
    absl::StatusOr<PastState> past = Find(header, *model, target);
    if (!past.ok()) return past.status();
    return CommitRollback(*model, *std::move(past), expected_revision);
  };
  return store_.catalogue_.ChangeKept(name, roll_back);
}

absl::StatusOr<PastState> ModelHistory::Find(storage::ModelHeader& header,
                                             const std::shared_ptr<Model>& model,
                                             const RollbackTarget& target) {
  if (target.revision.has_value()) return FindRevision(header, model, *target.revision);
  const auto kept = FindKept(header, target.id);
  if (kept == header.mutable_kept_snapshots()->end())
    return SnapshotNotFound(model->name(), target.id);
  return Load(header, *kept);
}

absl::StatusOr<PastState> ModelHistory::Load(const storage::ModelHeader& header,
                                             const storage::KeptSnapshot& kept) {
  absl::StatusOr<storage::Snapshot> state = store_.journal_->LoadKept(header.id(), kept);
  if (!state.ok()) return JournalError(state.status(), header.model().name());
  return PastState{*std::move(state), kept.counters()};
}

absl::StatusOr<PastState> ModelHistory::FindRevision(storage::ModelHeader& header,
                                                     const std::shared_ptr<Model>& model,
                                                     uint64_t revision) {
  uint64_t newest = 0;
  PastMoment moment{revision};
  {
    const ModelReader reader(*model, ComponentAccess::kNone);
    newest = reader.revision();
    if (revision == newest) moment.examples = reader.core().CountedExamples();
  }
  // What is learned is in the journal once it is committed.
  if (absl::Status status = store_.committer_->Commit(model); !status.ok()) return status;
  const absl::StatusOr<storage::History> history = store_.journal_->LoadHistory(header.id());
  if (!history.ok()) return JournalError(history.status(), model->name());
  const auto kept = FindBase(header, history->begin(), revision);
  if (revision > newest || kept == header.mutable_kept_snapshots()->end())
    return RevisionNotKept(header, history->begin(), newest, revision);
  absl::StatusOr<PastState> past = Load(header, *kept);
  // Of a snapshot without the updates that followed, its own moment is what is known.
  if (!past.ok() || kept->revision() < history->begin()) return past;
  const auto records = [&](uint64_t after_revision, const ReplayCallback& replay) {
    return store_.journal_->Replay(header.id(), after_revision, replay);
  };
  absl::StatusOr<PastState> found = ReplayTo(moment, *std::move(past), header, records);
  // They were dropped meanwhile, or a server that does not know of them did.
  if (absl::IsNotFound(found.status())) return RevisionNotKept(header, newest, newest, revision);
  if (found.ok()) return found;
  return Stopped() ? StoppedError() : JournalError(found.status(), model->name());
}

absl::Status ModelHistory::CommitRollback(const std::shared_ptr<Model>& model, PastState past,
                                          std::optional<uint64_t> expected_revision) {
  const std::string name = model->name();
  const absl::StatusOr<double> norm = NormOf(model->settings(), past.state);
  if (!norm.ok()) return JournalError(norm.status(), name);
  const auto check_revision = [&](uint64_t revision) {
    if (expected_revision.value_or(revision) == revision) return absl::OkStatus();
    return MakeError(absl::StatusCode::kAborted, "REVISION_MISMATCH",
                     absl::StrCat("the model is at revision ", revision, ", not at ",
                                  *expected_revision, ": it has learned since; decide again"),
                     {{"revision", absl::StrCat(revision)}});
  };
  if (absl::Status status = check_revision(model->revision()); !status.ok()) return status;
  const absl::Status why = RolledBack(name);
  absl::Status status = CommitAndClose(model, why, /*predicts=*/true);
  if (!status.ok()) return status;
  const absl::StatusOr<storage::Counters> committed = store_.journal_->LoadCounters(model->id());
  status = committed.ok() ? check_revision(committed->report().updates())
                          : JournalError(committed.status(), name);
  if (status.ok()) {
    JournalEntry entry;
    entry.model_id = model->id();
    entry.counters = RollBackCounters(*committed, past.counters);
    storage::UpdateRecord& record = entry.records.emplace_back();
    record.set_first_revision(entry.counters.report().updates());
    entry.epochs = model->ledger().EpochsBegunBy(record.first_revision());
    record.add_labels(0);
    record.set_squared_norm(*norm);
    record.set_arithmetic_version(1);
    past.state.clear_learning_curve();
    *record.mutable_restored_state() = std::move(past.state);
    *record.mutable_restored_counters() = entry.counters;
    const absl::StatusOr<CommitOutcome> outcome = store_.journal_->Commit({&entry, 1}, {});
    status = outcome.status();
    if (outcome.ok() && outcome->written == 0) status = WrittenByAnother();
    status = JournalError(status, name);
    // What the write may have left is dropped before the model is loaded.
    if (!status.ok()) store_.OnCommitFailure(*model, status);
  }
  // The next use loads what the journal has.
  store_.streams_.EndAll(model->uid(), why);
  store_.RemoveFromMemory(*model, absl::OkStatus());
  return status;
}

}  // namespace perceptrond
