#include "core/journal/rocksdb_open.h"

#include <unistd.h>

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>

#include <fstream>

#include "absl/strings/str_cat.h"

namespace perceptrond {
namespace {

rocksdb::Options DatabaseOptions(const RocksDbJournal::Options& options) {
  rocksdb::Options db;
  db.create_if_missing = true;
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

}  // namespace

absl::Status ToAbsl(const rocksdb::Status& status) {
  if (status.ok()) return absl::OkStatus();
  if (status.IsCorruption())
    return absl::DataLossError(absl::StrCat("journal: ", status.ToString()));
  return absl::UnavailableError(absl::StrCat("journal: ", status.ToString()));
}

absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenRocksDb(const RocksDbJournal::Options& options) {
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status =
      rocksdb::DB::Open(DatabaseOptions(options), options.directory, &db);
  if (!status.ok()) return ToAbsl(status);
  return std::unique_ptr<rocksdb::DB>(db);
}

absl::Status WithDamageAdvice(absl::Status status, const std::string& directory) {
  if (!absl::IsDataLoss(status)) return status;
  const std::string log = DamagedLog(directory);
  return absl::DataLossError(absl::StrCat(
      "the journal in ", directory, " is damaged", log.empty() ? "" : ", in the log ", log, ": ",
      status.message(), "; restore the directory from a backup, or see Damage in docs/journal.md"));
}

}  // namespace perceptrond
