// A fleet's journal: aliases, other names, kept snapshots, earlier revisions and copies of models.
#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/journal/jetstream/jetstream_journal.h"

namespace perceptrond {

using jetstream::StoredEntries;

absl::Status JetStreamJournal::Rename(const storage::ModelHeader& header,
                                      const storage::ModelHeader& before) {
  if (absl::Status status = CheckWritable(); !status.ok()) return status;
  return catalogue_->Rename(header, before);
}

absl::Status JetStreamJournal::PutAlias(const Alias& alias, absl::string_view etag) {
  if (absl::Status status = CheckWritable(); !status.ok()) return status;
  return catalogue_->PutAlias(alias, etag);
}

absl::Status JetStreamJournal::DeleteAlias(absl::string_view name, absl::string_view etag) {
  if (absl::Status status = CheckWritable(); !status.ok()) return status;
  return catalogue_->DeleteAlias(name, etag);
}

// Not among the pieces that a newer snapshot replaces.
std::string JetStreamJournal::KeptPiecesOf(uint64_t model_id) const {
  return absl::StrCat(snapshots_->options().subject, ".kept-", model_id);
}

std::string JetStreamJournal::NameOf(const storage::KeptSnapshot& kept) {
  return kept.epoch() == 0 ? absl::StrCat(kept.number())
                           : absl::StrCat(kept.number(), "-", kept.epoch());
}

std::string JetStreamJournal::PiecesOf(uint64_t model_id, const storage::KeptSnapshot& kept) const {
  return absl::StrCat(KeptPiecesOf(model_id), ".", NameOf(kept));
}

absl::Status JetStreamJournal::SaveKept(uint64_t model_id, const storage::Snapshot& snapshot,
                                        storage::KeptSnapshot& kept) {
  if (absl::Status status = CheckWritable(); !status.ok()) return status;
  const std::optional<int64_t> epoch = PartitionFor(model_id).own_epoch();
  if (!epoch.has_value()) return WrittenByAnother();
  kept.set_epoch(*epoch);
  const std::string subject = PiecesOf(model_id, kept);
  // What a snapshot that was never finished left.
  if (absl::Status status = snapshots_->DeleteAll(subject); !status.ok()) return status;
  const absl::StatusOr<WrittenPieces> written = WritePieces(subject, snapshot);
  if (!written.ok()) return written.status();
  kept.mutable_part_bytes()->Assign(written->part_bytes.begin(), written->part_bytes.end());
  return absl::OkStatus();
}

absl::StatusOr<storage::Snapshot> JetStreamJournal::LoadKept(uint64_t model_id,
                                                             const storage::KeptSnapshot& kept) {
  return ReadPieces(PiecesOf(model_id, kept),
                    {kept.part_bytes().data(), static_cast<size_t>(kept.part_bytes_size())});
}

absl::Status JetStreamJournal::DeleteKept(uint64_t model_id, const storage::KeptSnapshot& kept) {
  if (absl::Status status = CheckWritable(); !status.ok()) return status;
  return snapshots_->DeleteAll(PiecesOf(model_id, kept));
}

absl::Status JetStreamJournal::Replay(uint64_t model_id, uint64_t after_revision,
                                      const ReplayCallback& replay) {
  const absl::StatusOr<StoredEntries> entries =
      PartitionFor(model_id).Read(model_id, after_revision);
  if (!entries.ok()) return entries.status();
  return entries->Replay(std::max(after_revision, entries->GetHistory().begin()), replay);
}

absl::StatusOr<storage::History> JetStreamJournal::LoadHistory(uint64_t model_id) {
  const absl::StatusOr<StoredEntries> entries = PartitionFor(model_id).Read(model_id);
  if (!entries.ok()) return entries.status();
  return entries->GetHistory();
}

absl::Status JetStreamJournal::CreateLearned(storage::ModelHeader& header,
                                             const storage::Snapshot& snapshot,
                                             const CommittedState& committed,
                                             const ModelGuard& guard) {
  if (absl::Status status = CheckWritable(); !status.ok()) return status;
  // Only the writer of a partition may append a snapshot to it.
  const absl::StatusOr<uint64_t> id =
      catalogue_->ReserveId([&](uint64_t id) { return PartitionFor(id).ConfirmWriter(); });
  if (!id.ok()) return id.status();
  header.set_id(*id);
  // Before its first message, so that no sweep takes those for left ones.
  {
    MutexLock lock(&creating_mutex_);
    creating_.insert(*id);
  }
  const absl::Cleanup end = [&] {
    MutexLock lock(&creating_mutex_);
    creating_.erase(*id);
  };
  storage::SnapshotHead head;
  head.set_revision(snapshot.revision());
  // Any entry before those of the model, which has none yet.
  head.set_sequence(1);
  *head.mutable_counters() = committed.counters;
  head.mutable_positions()->Assign(committed.positions.begin(), committed.positions.end());
  head.set_pieces(absl::StrCat(snapshot.revision(), "-", absl::GetCurrentTimeNanos()));
  const std::string subject = absl::StrCat(PiecesOf(*id), ".", head.pieces());
  const absl::StatusOr<WrittenPieces> written = WritePieces(subject, snapshot);
  if (!written.ok()) return written.status();
  head.mutable_part_bytes()->Assign(written->part_bytes.begin(), written->part_bytes.end());
  const absl::Status set = PartitionFor(*id).SetSnapshot(*id, head).status();
  if (!set.ok()) {
    // Even if it was appended: no model will have this id.
    PartitionFor(*id).Delete(*id).IgnoreError();
    snapshots_->DeleteAll(subject).IgnoreError();
    return set;
  }
  // The catalogue comes last: before that a crash leaves what no model has, until it is swept.
  bool refused = false;
  const auto ask = [&](const ModelsNow& models) {
    absl::Status asked = guard == nullptr ? absl::OkStatus() : guard(models);
    refused = !asked.ok();
    return asked;
  };
  const absl::Status status = catalogue_->Create(header, ask);
  if (absl::IsUnknown(status)) return absl::UnavailableError(status.message());
  if (refused || absl::IsAlreadyExists(status)) {
    PartitionFor(*id).Delete(*id).IgnoreError();
    snapshots_->DeleteAll(subject).IgnoreError();
  }
  return status;
}

}  // namespace perceptrond
