// How the RocksDB journal opens its directory: the lock, the database, the format, and what an
// operator is notified of damage.
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <fstream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/journal/data_directory.h"
#include "core/journal/keys.h"
#include "core/journal/rocksdb_journal.h"

namespace perceptrond {
namespace {

rocksdb::Options DatabaseOptions(const RocksDbJournal::Options& options, bool create) {
  rocksdb::Options db;
  // RocksDB takes a directory without its file CURRENT for a new one, and deletes its tables.
  db.create_if_missing = create;
  db.error_if_exists = create;
  // The marker has this id too.
  db.write_dbid_to_manifest = true;
  db.write_buffer_size = options.write_buffer_bytes;
  // Each table of an updated model holds a snapshot and the records after it, and the next table
  // makes all of them obsolete: two are worth a compaction.
  db.level0_file_num_compaction_trigger = 2;
  db.max_total_wal_size = 4 * options.write_buffer_bytes;
  // Preallocated space counts as used, and a log that grows needs no more syncing.
  db.allow_fallocate = false;
  // Everything that was reported as written is in the log or in a table.
  db.avoid_flush_during_shutdown = true;
  db.max_background_jobs = 2;
  db.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  db.keep_log_file_num = 2;
  // Threads without work were part of the time that an empty server takes to start.
  db.max_file_opening_threads = 1;
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  // A crash leaves a log that ends in the middle of a write. Damage anywhere else must not be taken
  // for such an end.
  db.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(options.block_cache_bytes);
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  db.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return db;
}

// What RocksDB noted of damage in its logs, which its status does not name; "" if nothing.
std::string DamagedLog(const std::string& directory) {
  std::ifstream notes(directory + "/LOG");
  std::string found;
  for (std::string line; std::getline(notes, line);) {
    const size_t end = line.find(".log: dropping ");
    if (end == std::string::npos) continue;
    const size_t begin = line.find_last_of(" /", end) + 1;
    found = line.substr(begin, end + 4 - begin);
  }
  return found;
}

// Adds to DATA_LOSS where the damage is and what to do about it. Returns other statuses unchanged.
absl::Status WithDamageAdvice(absl::Status status, const std::string& directory) {
  if (!absl::IsDataLoss(status)) return status;
  const std::string log = DamagedLog(directory);
  return absl::DataLossError(absl::StrCat(
      "the journal in ", directory, " is damaged", log.empty() ? "" : ", in the log ", log, ": ",
      status.message(), "; restore the directory from a backup, or see Damage in docs/journal.md"));
}

absl::Status MixedDirectories(const std::string& directory, const std::string& marker,
                              const std::string& id) {
  return absl::FailedPreconditionError(absl::StrCat(
      directory, " has the marker of the journal ", marker, " and the data of the journal ", id,
      ": files of two directories are mixed; restore one from a backup"));
}

}  // namespace

absl::Status RocksDbJournal::ToAbsl(const rocksdb::Status& status) {
  if (status.ok()) return absl::OkStatus();
  if (status.IsCorruption())
    return absl::DataLossError(absl::StrCat("journal: ", status.ToString()));
  return absl::UnavailableError(absl::StrCat("journal: ", status.ToString()));
}

absl::StatusOr<std::unique_ptr<rocksdb::DB>> RocksDbJournal::OpenDatabase(const Options& options,
                                                                          bool create) {
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status =
      rocksdb::DB::Open(DatabaseOptions(options, create), options.directory, &db);
  if (!status.ok()) return ToAbsl(status);
  return std::unique_ptr<rocksdb::DB>(db);
}

absl::StatusOr<std::unique_ptr<RocksDbJournal>> RocksDbJournal::Open(const Options& options) {
  if (absl::Status status = CreateDataDirectory(options.directory); !status.ok()) return status;
  // The lock is a file: a directory of something else gets none.
  absl::StatusOr<DirectoryContent> content = ReadDirectory(options.directory);
  if (!content.ok()) return content.status();
  absl::StatusOr<DirectoryLock> lock =
      DirectoryLock::Acquire(options.directory, options.lock_timeout, options.on_locked);
  if (!lock.ok()) return lock.status();
  // Another server may have used it meanwhile.
  content = ReadDirectory(options.directory);
  if (!content.ok()) return content.status();
  absl::StatusOr<std::unique_ptr<rocksdb::DB>> db = OpenDatabase(options, !content->has_database);
  if (!db.ok()) return WithDamageAdvice(db.status(), options.directory);
  auto journal = std::unique_ptr<RocksDbJournal>(
      new RocksDbJournal(*std::move(lock), *std::move(db), options));
  std::string id;
  if (const rocksdb::Status status = journal->db_->GetDbIdentity(id); !status.ok())
    return ToAbsl(status);
  if (content->id.value_or(id) != id) return MixedDirectories(options.directory, *content->id, id);
  if (absl::Status status = journal->CheckFormat(); !status.ok())
    return WithDamageAdvice(status, options.directory);
  // Last: a crash in between leaves a journal that gets its marker at the next start.
  if (!content->id.has_value()) {
    if (absl::Status status = WriteMarker(options.directory, id); !status.ok()) return status;
  }
  return journal;
}

absl::Status RocksDbJournal::CheckFormat() {
  std::string value;
  absl::StatusOr<bool> found = Get(std::string(keys::kFormat), value);
  if (!found.ok()) return found.status();
  if (!*found) {
    const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions()));
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
    return Write(batch, Through::kLog);
  }
  const uint64_t version = keys::ReadNumber(value);
  if (version <= keys::kFormatVersion) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the journal has format ", version,
                                                    "; this server reads up to ",
                                                    keys::kFormatVersion, ": use a newer server"));
}

}  // namespace perceptrond
