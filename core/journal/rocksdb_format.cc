// What a RocksDB journal has before any model: its format and its history.
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "core/journal/keys.h"
#include "core/journal/rocksdb_journal.h"

namespace perceptrond {

absl::Status RocksDbJournal::CheckFormat() {
  std::string value;
  absl::StatusOr<bool> found = Get(std::string(keys::kFormat), value);
  if (!found.ok()) return found.status();
  if (!*found) {
    const std::shared_ptr<rocksdb::DB> db = this->db();
    const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(rocksdb::ReadOptions()));
    it->SeekToFirst();
    if (!it->status().ok()) return ToAbsl(it->status());
    if (it->Valid()) {
      return absl::FailedPreconditionError(
          absl::StrCat(options_.directory,
                       " has a database of another program: name an empty "
                       "directory"));
    }
    rocksdb::WriteBatch batch;
    batch.Put(std::string(keys::kFormat), keys::Number(keys::kFirstFormat));
    // Synced with the first commit, which follows it in the log. Without one the journal is empty,
    // and the next Open writes it again.
    return WriteUnchecked(batch, Through::kLog);
  }
  const uint64_t version = keys::ReadNumber(value);
  if (version <= keys::kFormatVersion) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the journal has format ", version,
                                                    "; this server reads up to ",
                                                    keys::kFormatVersion, ": use a newer server"));
}

absl::Status RocksDbJournal::ReadHistory(bool writable) {
  std::string history;
  absl::StatusOr<bool> found = Get(std::string(keys::kHistory), history);
  if (!found.ok()) return found.status();
  const bool ends = lost_writes_ > 0 || lost_index_ || may_lack_updates_ || options_.new_history ||
                    (options_.accept_data_loss && !watermark_before_.has_value());
  if (writable && (ends || !*found)) {
    std::random_device random;
    history =
        absl::StrCat(absl::Hex(random(), absl::kZeroPad8), absl::Hex(random(), absl::kZeroPad8));
    rocksdb::WriteBatch batch;
    batch.Put(std::string(keys::kHistory), history);
    // A new journal's is synced with its first commit, as its format.
    absl::Status status = WriteUnchecked(batch, ends ? Through::kSyncedLog : Through::kLog);
    if (!status.ok()) return status;
  }
  MutexLock lock(&db_mutex_);
  history_id_ = std::move(history);
  return absl::OkStatus();
}

std::string RocksDbJournal::Id() {
  std::string id;
  const absl::StatusOr<bool> copied = Get(std::string(keys::kId), id);
  if (copied.ok() && *copied) return id;
  return copied.ok() && db()->GetDbIdentity(id).ok() ? id : "";
}

absl::Status RocksDbJournal::BeginImport() {
  if (!options_.import.has_value()) return Journal::BeginImport();
  if (!HasImportMark(options_.directory)) {
    const absl::StatusOr<uint64_t> models = Count();
    if (!models.ok()) return models.status();
    if (*models > 0) {
      return absl::FailedPreconditionError(
          absl::StrCat(options_.directory, " has ", *models, " models: name an empty directory"));
    }
    if (absl::Status status = WriteImportMark(env(), options_.directory); !status.ok())
      return status;
  }
  std::string id;
  const absl::StatusOr<bool> found = Get(std::string(keys::kId), id);
  if (!found.ok()) return found.status();
  if (*found && id == options_.import->id) return absl::OkStatus();
  if (*found) {
    return absl::FailedPreconditionError(
        absl::StrCat(options_.directory, " is an unfinished copy of another journal: delete it"));
  }
  rocksdb::WriteBatch batch;
  batch.Put(std::string(keys::kId), options_.import->id);
  return Write(batch, Through::kSyncedLog);
}

absl::Status RocksDbJournal::FinishImport() {
  if (!options_.import.has_value()) return Journal::FinishImport();
  if (const std::string& history = options_.import->history_id; !history.empty()) {
    rocksdb::WriteBatch batch;
    batch.Put(std::string(keys::kHistory), history);
    if (absl::Status status = Write(batch, Through::kSyncedLog); !status.ok()) return status;
    MutexLock lock(&db_mutex_);
    history_id_ = history;
  }
  if (absl::Status status = Sync(); !status.ok()) return status;
  return RemoveImportMark(env(), options_.directory);
}

}  // namespace perceptrond
