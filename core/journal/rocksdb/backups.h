// Backups of journals in a directory of their own, by RocksDB's backup engine: online, and
// incremental, since tables that an earlier backup has are not copied again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/journal/journal.h"

namespace rocksdb {
class BackupEngine;
class DB;
class Env;
}  // namespace rocksdb

namespace perceptrond {

// Every method may return UNAVAILABLE (the directory cannot be read or written, or another process
// changes it) or DATA_LOSS (a file of a backup fails its checks).
//
// Thread contract: safe for any number of threads and processes. Those that change the directory
// lock it.
class Backups {
 public:
  explicit Backups(const std::string& directory);

  // Adds a backup of an open database, that of the journal with this id, whose last write has
  // `sequence`, and then deletes all but the newest `keep` (0: none). Writes continue meanwhile.
  // FAILED_PRECONDITION: the directory has other files, or backups of another journal.
  absl::StatusOr<Backup> Create(rocksdb::DB& db, const std::string& journal_id, uint64_t sequence,
                                uint32_t keep) const;
  // Creates the directory, and checks that it may have backups of this journal. Errors as Create.
  absl::Status Prepare(const std::string& journal_id) const;
  // The backups, oldest first, damaged ones among them, also the newest one if only its files are there.
  absl::StatusOr<std::vector<Backup>> List() const;
  // Reads all files of a backup, and checks them against their checksums. NOT_FOUND.
  absl::Status Verify(uint32_t number) const;
  // Copies a backup into a directory, which is created or must be empty: after a crash it is either
  // a whole journal or refused by every server. NOT_FOUND; FAILED_PRECONDITION: the directory is not empty.
  absl::Status Restore(uint32_t number, const std::string& data_directory) const;
  // Calls `read` with a directory and an Env in which the backup is a database that can be read,
  // while it exists. NOT_FOUND.
  absl::Status Read(uint32_t number,
                    const std::function<absl::Status(const std::string& directory,
                                                     rocksdb::Env* env)>& read) const;

  // Within the directory: where a journal is put together that is to be backed up.
  std::string CopyDirectory() const;
  // Whether the directory has backups, and no journal.
  static bool IsBackupDirectory(const std::string& directory);

 private:
  const std::string directory_;
};

}  // namespace perceptrond
