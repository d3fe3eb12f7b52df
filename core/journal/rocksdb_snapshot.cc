// How the RocksDB journal stores a model's snapshot: in pieces, and a head that refers to them once
// they are complete, through the log or directly in a table (docs/journal.md, Snapshots).
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/journal/keys.h"
#include "core/journal/rocksdb_journal.h"
#include "core/journal/snapshot_parts.h"
#include "core/journal/stored_message.h"

namespace perceptrond {
namespace {

// Set in the revision in the keys of a snapshot's pieces if it replaced one of the same revision.
constexpr uint64_t kOtherSlot = uint64_t{1} << 63;
// The size of the values that a snapshot is stored in: a large value would go through memory and
// the log in one piece.
constexpr size_t kChunkBytes = 1 << 20;

}  // namespace

absl::StatusOr<std::optional<storage::Snapshot>> RocksDbJournal::LoadSnapshot(uint64_t model_id) {
  std::string head;
  absl::StatusOr<bool> found = Get(keys::SnapshotHead(model_id), head);
  if (!found.ok()) return found.status();
  if (!*found) return std::nullopt;
  // The head holds the snapshot's revision and the size of each part.
  if (head.size() < 16 || head.size() % 8 != 0)
    return absl::DataLossError("journal: a snapshot's head is not a list of sizes");
  const uint64_t slot = keys::ReadNumber(head);
  std::vector<uint64_t> part_bytes;
  for (size_t at = 8; at < head.size(); at += 8)
    part_bytes.push_back(keys::ReadNumber(absl::string_view(head).substr(at)));
  absl::StatusOr<storage::Snapshot> snapshot =
      ReadPieces(keys::SnapshotPieces(model_id, slot), part_bytes);
  if (!snapshot.ok()) return snapshot.status();
  if (snapshot->revision() != (slot & ~kOtherSlot))
    return absl::DataLossError("journal: a snapshot is of another revision than its head says");
  return *std::move(snapshot);
}

absl::StatusOr<storage::Snapshot> RocksDbJournal::ReadPieces(const std::string& prefix,
                                                             std::span<const uint64_t> part_bytes) {
  storage::Snapshot snapshot;
  uint64_t chunk = 0;
  for (const uint64_t size : part_bytes) {
    absl::StatusOr<std::string> bytes = ReadChunks(prefix, size, chunk);
    if (!bytes.ok()) return bytes.status();
    storage::Snapshot part;
    if (absl::Status status = ParseStored(*bytes, part, "a snapshot"); !status.ok()) return status;
    bytes->clear();
    if (absl::Status status = AppendPart(std::move(part), snapshot); !status.ok()) return status;
  }
  return snapshot;
}

absl::StatusOr<std::vector<uint64_t>> RocksDbJournal::WritePieces(const std::string& prefix,
                                                                  const storage::Snapshot& snapshot,
                                                                  Through through) {
  std::vector<uint64_t> part_bytes;
  std::string bytes;
  uint64_t chunk = 0;
  const auto write = [&](const storage::Snapshot& part) {
    absl::Status status = SerializeStored(part, bytes);
    part_bytes.push_back(bytes.size());
    return status.ok() ? WriteChunks(prefix, bytes, through, chunk) : status;
  };
  if (absl::Status status = ForEachPart(snapshot, options_.snapshot_part_bytes, write);
      !status.ok())
    return status;
  return part_bytes;
}

absl::StatusOr<std::string> RocksDbJournal::ReadChunks(const std::string& prefix, uint64_t size,
                                                       uint64_t& next_chunk) {
  std::string bytes;
  // Not as a string grows, to up to twice the size. Of a damaged size no more than of a part.
  bytes.reserve(std::min<uint64_t>(size, options_.snapshot_part_bytes));
  std::string chunk;
  while (bytes.size() < size) {
    absl::StatusOr<bool> found = Get(prefix + keys::Number(next_chunk), chunk);
    if (!found.ok()) return found.status();
    if (!*found || chunk.empty() || chunk.size() > size - bytes.size()) {
      return absl::DataLossError(
          absl::StrCat("journal: piece ", next_chunk, " of a snapshot is missing or incomplete"));
    }
    bytes += chunk;
    ++next_chunk;
  }
  return bytes;
}

absl::Status RocksDbJournal::WriteChunks(const std::string& prefix, const std::string& bytes,
                                         Through through, uint64_t& next_chunk) {
  for (size_t at = 0; at < bytes.size(); at += kChunkBytes) {
    rocksdb::WriteBatch batch;
    batch.Put(prefix + keys::Number(next_chunk++),
              rocksdb::Slice(bytes.data() + at, std::min(kChunkBytes, bytes.size() - at)));
    if (absl::Status status = Write(batch, through); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status RocksDbJournal::SaveSnapshot(uint64_t model_id, const storage::Snapshot& snapshot) {
  const uint64_t revision = snapshot.revision();
  std::string kept;
  absl::StatusOr<bool> found_kept = Get(keys::SnapshotHead(model_id), kept);
  if (!found_kept.ok()) return found_kept.status();
  // Not over the pieces that the head refers to: a crash in between would leave neither snapshot.
  const bool taken = *found_kept && kept.size() >= 16 && keys::ReadNumber(kept) == revision;
  const uint64_t slot = taken ? revision | kOtherSlot : revision;
  // Not through the log, which would only carry it to the table that it gets anyway.
  const bool to_table = FillsTable(snapshot.ByteSizeLong());
  const absl::StatusOr<std::vector<uint64_t>> part_bytes = WritePieces(
      keys::SnapshotPieces(model_id, slot), snapshot, to_table ? Through::kTable : Through::kLog);
  if (!part_bytes.ok()) return part_bytes.status();
  const std::string head = keys::SnapshotHeadOf(slot, *part_bytes);
  absl::Status status =
      MakeCurrent(model_id, slot, head, snapshot, to_table ? Through::kTable : Through::kSyncedLog);
  return status.ok() && to_table ? WriteTable() : status;
}

absl::StatusOr<storage::History> RocksDbJournal::LoadHistory(uint64_t model_id) {
  storage::History history;
  std::string head;
  absl::StatusOr<bool> found = Get(keys::SnapshotHead(model_id), head);
  if (!found.ok()) return found.status();
  if (!*found) return history;
  const uint64_t revision = keys::ReadNumber(head) & ~kOtherSlot;
  found = GetMessage(keys::History(model_id), history);
  if (!found.ok()) return found.status();
  // A server that does not know it replaced the snapshot, and dropped all records.
  if (*found && history.revision() == revision) return history;
  history.Clear();
  history.set_revision(revision);
  history.set_begin(revision);
  return history;
}

absl::Status RocksDbJournal::MakeCurrent(uint64_t model_id, uint64_t slot, const std::string& head,
                                         const storage::Snapshot& snapshot, Through through) {
  MutexLock lock(&headers_mutex_);
  std::string alive;
  absl::StatusOr<bool> found = Get(keys::Alive(model_id), alive);
  if (!found.ok()) return found.status();
  if (!*found) {
    const std::string chunks = keys::OfModel('c', model_id);
    rocksdb::WriteBatch leftovers;
    leftovers.DeleteRange(chunks, keys::EndOf(chunks));
    return Write(leftovers, Through::kLog);
  }
  const uint64_t revision = snapshot.revision();
  uint64_t dropped = revision;
  rocksdb::WriteBatch batch;
  batch.Put(keys::SnapshotHead(model_id), head);
  if (snapshot.has_history()) {
    dropped = snapshot.history().begin();
    std::string bytes;
    if (absl::Status status = SerializeStored(snapshot.history(), bytes); !status.ok())
      return status;
    batch.Put(keys::History(model_id), bytes);
  } else {
    batch.Delete(keys::History(model_id));
  }
  // Servers that know only one part, or one slot, must not open it.
  if (head.size() > 16 || slot != revision) RaiseFormat(batch, keys::kSnapshotFormat);
  batch.DeleteRange(keys::Record(model_id, 0), keys::Record(model_id, dropped + 1));
  batch.DeleteRange(keys::SnapshotChunk(model_id, 0, 0), keys::SnapshotChunk(model_id, slot, 0));
  // The pieces of unfinished snapshots too.
  batch.DeleteRange(keys::SnapshotChunk(model_id, slot + 1, 0),
                    keys::EndOf(keys::OfModel('c', model_id)));
  return Write(batch, through);
}

absl::Status RocksDbJournal::WriteTable() {
  if (absl::Status status = CheckNotFailed(); !status.ok()) return status;
  // First the log that ends here: what follows in the next must not outlive its end.
  if (!options_.never_sync) {
    if (absl::Status status = SyncLog(); !status.ok()) return status;
  }
  return OnWritten(db()->Flush(rocksdb::FlushOptions()));
}

bool RocksDbJournal::FillsTable(size_t bytes) const {
  uint64_t waiting = 0;
  db()->GetIntProperty(rocksdb::DB::Properties::kCurSizeActiveMemTable, &waiting);
  return bytes > options_.logged_snapshot_bytes &&
         waiting + bytes > options_.write_buffer_bytes / 2;
}

}  // namespace perceptrond
