// A fleet's journal: aliases, other names and kept snapshots of models.
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/journal/jetstream/jetstream_journal.h"

namespace perceptrond {

absl::Status JetStreamJournal::Rename(absl::string_view before,
                                      const storage::ModelHeader& header) {
  if (absl::Status status = CheckWritable(); !status.ok()) return status;
  return catalogue_->Rename(before, header);
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

absl::StatusOr<std::vector<uint64_t>> JetStreamJournal::SaveKept(
    uint64_t model_id, uint64_t number, const storage::Snapshot& snapshot) {
  if (absl::Status status = CheckWritable(); !status.ok()) return status;
  const std::string subject = absl::StrCat(KeptPiecesOf(model_id), ".", number);
  // What a snapshot that was never finished left.
  if (absl::Status status = snapshots_->DeleteAll(subject); !status.ok()) return status;
  absl::StatusOr<WrittenPieces> written = WritePieces(subject, snapshot);
  if (!written.ok()) return written.status();
  return std::move(written->part_bytes);
}

absl::StatusOr<storage::Snapshot> JetStreamJournal::LoadKept(uint64_t model_id,
                                                             const storage::KeptSnapshot& kept) {
  return ReadPieces(absl::StrCat(KeptPiecesOf(model_id), ".", kept.number()),
                    {kept.part_bytes().data(), static_cast<size_t>(kept.part_bytes_size())});
}

absl::Status JetStreamJournal::DeleteKept(uint64_t model_id, uint64_t number) {
  if (absl::Status status = CheckWritable(); !status.ok()) return status;
  return snapshots_->DeleteAll(absl::StrCat(KeptPiecesOf(model_id), ".", number));
}

}  // namespace perceptrond
