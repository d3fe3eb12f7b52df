// The RocksDB journal: aliases, other names, kept snapshots and copies of models.
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include "absl/strings/str_cat.h"
#include "core/journal/keys.h"
#include "core/journal/rocksdb_journal.h"
#include "core/journal/stored_message.h"

namespace perceptrond {

absl::Status RocksDbJournal::ReadAliases() {
  const std::string end = keys::EndOf(keys::Alias(""));
  const rocksdb::Slice upper(end);
  rocksdb::ReadOptions options;
  options.iterate_upper_bound = &upper;
  const std::shared_ptr<rocksdb::DB> db = this->db();
  const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(options));
  for (it->Seek(keys::Alias("")); it->Valid(); it->Next()) {
    Alias alias;
    if (absl::Status status =
            ParseStored({it->value().data(), it->value().size()}, alias, "an alias");
        !status.ok())
      return status;
    aliases_.Put(alias);
  }
  return ToAbsl(it->status());
}

absl::Status RocksDbJournal::PutAlias(const Alias& alias, absl::string_view etag) {
  MutexLock lock(&headers_mutex_);
  absl::Status status = aliases_.CheckEtag(alias.name(), etag);
  if (status.ok()) status = Find(alias.model()).status();
  std::string bytes;
  if (status.ok()) status = SerializeStored(alias, bytes);
  if (!status.ok()) return status;
  rocksdb::WriteBatch batch;
  batch.Put(keys::Alias(alias.name()), bytes);
  status = Write(batch, Through::kSyncedLog);
  if (status.ok()) aliases_.Put(alias);
  return status;
}

absl::Status RocksDbJournal::DeleteAlias(absl::string_view name, absl::string_view etag) {
  MutexLock lock(&headers_mutex_);
  absl::Status status = aliases_.CheckEtag(name, etag);
  if (!status.ok()) return status;
  rocksdb::WriteBatch batch;
  batch.Delete(keys::Alias(name));
  status = Write(batch, Through::kSyncedLog);
  if (status.ok()) aliases_.Remove(name);
  return status;
}

absl::Status RocksDbJournal::Rename(const storage::ModelHeader& header,
                                    const storage::ModelHeader& before) {
  MutexLock lock(&headers_mutex_);
  const std::string& name_before = before.model().name();
  const absl::StatusOr<storage::ModelHeader> found = Find(name_before);
  if (!found.ok()) return found.status();
  const std::string& name = header.model().name();
  if (found->id() != header.id())
    return absl::NotFoundError(absl::StrCat("there is no such model ", name_before));
  if (!IsSame(*found, before)) return ChangedByAnother(name_before);
  const absl::StatusOr<storage::ModelHeader> other = Find(name);
  if (other.ok()) return absl::AlreadyExistsError(absl::StrCat(name, " exists"));
  if (!absl::IsNotFound(other.status())) return other.status();
  rocksdb::WriteBatch batch;
  std::string bytes;
  if (absl::Status status = SerializeStored(header, bytes); !status.ok()) return status;
  batch.Delete(keys::Header(name_before));
  batch.Put(keys::Header(name), bytes);
  std::vector<Alias> aliases = aliases_.AllOf(name_before);
  for (Alias& alias : aliases) {
    alias.set_model(name);
    if (absl::Status status = SerializeStored(alias, bytes); !status.ok()) return status;
    batch.Put(keys::Alias(alias.name()), bytes);
  }
  absl::Status status = Write(batch, Through::kSyncedLog);
  if (!status.ok()) return status;
  for (const Alias& alias : aliases) aliases_.Put(alias);
  return status;
}

absl::Status RocksDbJournal::SaveKept(uint64_t model_id, const storage::Snapshot& snapshot,
                                      storage::KeptSnapshot& kept) {
  // What a snapshot that was never finished left.
  if (absl::Status status = DeleteKept(model_id, kept); !status.ok()) return status;
  const absl::StatusOr<std::vector<uint64_t>> part_bytes =
      WritePieces(keys::KeptSnapshot(model_id, kept.number()), snapshot, Through::kLog);
  if (!part_bytes.ok()) return part_bytes.status();
  kept.clear_epoch();
  kept.mutable_part_bytes()->Assign(part_bytes->begin(), part_bytes->end());
  return Sync();
}

absl::StatusOr<storage::Snapshot> RocksDbJournal::LoadKept(uint64_t model_id,
                                                           const storage::KeptSnapshot& kept) {
  return ReadPieces(keys::KeptSnapshot(model_id, kept.number()),
                    {kept.part_bytes().data(), static_cast<size_t>(kept.part_bytes_size())});
}

absl::Status RocksDbJournal::DeleteKept(uint64_t model_id, const storage::KeptSnapshot& kept) {
  const std::string prefix = keys::KeptSnapshot(model_id, kept.number());
  rocksdb::WriteBatch batch;
  batch.DeleteRange(prefix, keys::EndOf(prefix));
  return Write(batch, Through::kLog);
}

absl::Status RocksDbJournal::DropUnfinished() {
  const std::string end = keys::EndOf("b");
  const rocksdb::Slice upper(end);
  rocksdb::ReadOptions options;
  options.iterate_upper_bound = &upper;
  const std::shared_ptr<rocksdb::DB> db = this->db();
  const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(options));
  rocksdb::WriteBatch batch;
  for (it->Seek("b"); it->Valid(); it->Next())
    DropUnfinished(keys::ReadNumber({it->key().data() + 1, it->key().size() - 1}), batch);
  if (!it->status().ok()) return ToAbsl(it->status());
  return batch.Count() == 0 ? absl::OkStatus() : Write(batch, Through::kLog);
}

void RocksDbJournal::DropUnfinished(uint64_t model_id, rocksdb::WriteBatch& batch) {
  const std::string pieces = keys::OfModel('c', model_id);
  batch.DeleteRange(pieces, keys::EndOf(pieces));
  batch.Delete(keys::Unfinished(model_id));
}

absl::StatusOr<uint64_t> RocksDbJournal::NextId(rocksdb::WriteBatch& batch) {
  std::string last_id;
  const absl::StatusOr<bool> found = Get(std::string(keys::kLastId), last_id);
  if (!found.ok()) return found.status();
  const uint64_t id = *found ? keys::ReadNumber(last_id) + 1 : 1;
  batch.Put(std::string(keys::kLastId), keys::Number(id));
  return id;
}

void RocksDbJournal::RaiseFormat(rocksdb::WriteBatch& batch, uint64_t format) {
  std::string value;
  const absl::StatusOr<bool> found = Get(std::string(keys::kFormat), value);
  if (found.ok() && *found && keys::ReadNumber(value) >= format) return;
  batch.Put(std::string(keys::kFormat), keys::Number(format));
}

absl::Status RocksDbJournal::CreateLearned(storage::ModelHeader& header,
                                           const storage::Snapshot& snapshot,
                                           const CommittedState& committed,
                                           const ModelGuard& guard) {
  const std::string name = header.model().name();
  {
    // Taken by itself: a crash leaves pieces that no model has, and the key that says so.
    MutexLock lock(&headers_mutex_);
    rocksdb::WriteBatch batch;
    const absl::StatusOr<uint64_t> id = NextId(batch);
    if (!id.ok()) return id.status();
    header.set_id(*id);
    batch.Put(keys::Unfinished(*id), "");
    if (absl::Status status = Write(batch, Through::kLog); !status.ok()) return status;
  }
  const absl::StatusOr<std::vector<uint64_t>> part_bytes =
      WritePieces(keys::SnapshotPieces(header.id(), snapshot.revision()), snapshot, Through::kLog);
  if (!part_bytes.ok()) return part_bytes.status();
  rocksdb::WriteBatch batch;
  std::string bytes;
  absl::Status status = SerializeStored(header, bytes);
  batch.Put(keys::Header(name), bytes);
  batch.Put(keys::Alive(header.id()), "");
  batch.Delete(keys::Unfinished(header.id()));
  batch.Put(keys::SnapshotHead(header.id()),
            keys::SnapshotHeadOf(snapshot.revision(), *part_bytes));
  if (part_bytes->size() > 1) RaiseFormat(batch, keys::kSnapshotFormat);
  if (status.ok()) status = SerializeStored(committed.counters, bytes);
  batch.Put(keys::Counters(header.id()), bytes);
  for (const storage::ProducerPosition& position : committed.positions) {
    if (status.ok()) status = SerializeStored(position, bytes);
    batch.Put(keys::Position(header.id(), position.id()), bytes);
  }
  if (!status.ok()) return status;
  MutexLock lock(&headers_mutex_);
  const absl::StatusOr<storage::ModelHeader> other = Find(name);
  if (!other.ok() && !absl::IsNotFound(other.status())) return other.status();
  const absl::Status refused =
      other.ok() ? absl::AlreadyExistsError(absl::StrCat(name, " exists")) : Ask(guard);
  if (!refused.ok()) {
    rocksdb::WriteBatch leftovers;
    DropUnfinished(header.id(), leftovers);
    (void)Write(leftovers, Through::kLog);
    return refused;
  }
  status = Write(batch, Through::kSyncedLog);
  if (status.ok()) AddToCount(1);
  return status;
}

}  // namespace perceptrond
