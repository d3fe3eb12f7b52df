// The default home of a journal: RocksDB in a directory of its own, which one process opens at a time. Its write-ahead log
// provides checksums and the order of writes, its batches atomic commits.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/journal/journal.h"
#include "core/journal/rocksdb/data_directory.h"
#include "core/journal/rocksdb/ordered_logs.h"
#include "core/journal/rocksdb/watermark.h"
#include "core/journal/table.h"
#include "core/sync/mutex.h"

namespace rocksdb {
class DB;
class Env;
class Status;
class WriteBatch;
}  // namespace rocksdb

namespace perceptrond {

class RocksDbTable final : public Table {
 public:
  struct Options {
    // Created if absent, with its parents.
    std::string directory;
    // Memory for blocks with rows that are read by themselves, in bytes.
    size_t block_cache_bytes = 8 << 20;
    // Memory for writes that are not in a table yet, in bytes. The log on disk takes at most a few
    // times this.
    size_t write_buffer_bytes = 16 << 20;
    // While the disk has less free space than this, only deletions of ranges are written: what is left is for RocksDB's
    // background writes, unless other programs take it.
    uint64_t reserve_bytes = 64 << 20;
    // Never wait until the log is on disk: for data that can be recreated.
    bool never_sync = false;
    // Open although writes that were on disk once are missing. What is left is used.
    bool accept_data_loss = false;
    // Open what is there for reading alone, and change nothing.
    bool read_only = false;
    // Names the boot of the machine (Watermark::boot_id). Empty: the kernel's.
    std::string boot_id;
    // Where files are. Null: the file system. Must outlive the table.
    rocksdb::Env* env = nullptr;
    // How long Open waits for another server to release the directory.
    absl::Duration lock_timeout = absl::ZeroDuration();
    // Called once if Open has to wait for the lock.
    std::function<void()> on_locked;
    // Each table of this kind has this row from its first commit on. A database without a marker that has others and
    // not this one is of another program.
    std::string first_key;
  };

  // UNAVAILABLE if the directory cannot be used (another server holds it, no permission); DATA_LOSS
  // if its content fails its checks, or lacks writes that were on disk once;
  // FAILED_PRECONDITION if it is neither empty nor a whole database of ours; NOT_FOUND if it is to be read only and there is none.
  // Then nothing in it is changed. A table whose disk is full or read-only is opened for reading:
  // each write fails, says so (UNAVAILABLE), and first tries whether the disk has room by now, at
  // most once a second.
  static absl::StatusOr<std::unique_ptr<RocksDbTable>> Open(const Options& options);
  // Syncs the log, and notes where it ends.
  ~RocksDbTable() override;

  absl::StatusOr<std::optional<std::string>> Get(absl::string_view key) override;
  absl::Status Scan(const KeyRange& range, OnRow on_row) override;
  absl::StatusOr<std::unique_ptr<TableReader>> Freeze(std::span<const KeyRange> ranges) override;
  // UNAVAILABLE while there is too little space, and for ever after a failed write, which may be there after a restart:
  // nothing may follow in the log on a write whose end is not known.
  absl::StatusOr<bool> Commit(const TableChange& change, bool sync) override
      ABSL_LOCKS_EXCLUDED(commit_mutex_);
  // Other threads may write meanwhile.
  absl::Status Sync() override;

  // Notes, durably and once, that a failure of the machine may take updates that were acknowledged. To be called before
  // they are.
  void NoteUnsyncedUpdates();
  // Reads all files, and checks them against their checksums.
  absl::Status Verify();
  JournalStats Stats() ABSL_LOCKS_EXCLUDED(db_mutex_);
  // The sequence number of the last write in the log.
  uint64_t sequence() const { return logged_; }
  std::shared_ptr<rocksdb::DB> db() const ABSL_LOCKS_EXCLUDED(db_mutex_);

 private:
  class Frozen;
  // kWriteOnFullDisk: with as little written as may be.
  enum class Access { kRead, kWrite, kWriteOnFullDisk, kCreate };
  // How much of the logs must be whole.
  enum class Recovery {
    // The table was closed: all.
    kComplete,
    // What is before the first damage. The watermark tells whether that is enough.
    kUpToDamage,
    // There is no watermark: all but a last write that a crash cut off.
    kTolerateTornTail,
  };
  class FileChanges;

  RocksDbTable(DirectoryLock lock, Options options);

  // (core/journal/rocksdb/open.cc)
  // Opens the database of the locked directory in the way that its content and the disk allow.
  absl::Status OpenDirectory(const DirectoryContent& content);
  absl::StatusOr<std::shared_ptr<rocksdb::DB>> OpenDatabase(
      Access access, std::shared_ptr<FileChanges> changes) const;
  // Chooses the recovery. Unless the database was closed as it is, also checks what it has, and
  // leaves it unchanged. DATA_LOSS as CheckSequence.
  absl::Status CheckComplete(const Watermark& watermark);
  // Counts the writes that the watermark has and a database with this last write lacks. DATA_LOSS
  // if there are any, unless that is accepted.
  absl::Status CheckSequence(uint64_t sequence);
  // The database's id. FAILED_PRECONDITION if the marker has another.
  absl::StatusOr<std::string> CheckId(rocksdb::DB& db, const DirectoryContent& content) const;
  // Opens the database for writing, and writes what comes first: watermark, marker.
  absl::Status OpenForWriting(const DirectoryContent& content, Access access)
      ABSL_LOCKS_EXCLUDED(db_mutex_);
  // FAILED_PRECONDITION if another program wrote the database.
  absl::Status CheckOwn();
  // The writes of OpenForWriting. `recovered` is the last write that the database had.
  absl::Status WriteFirst(const DirectoryContent& content, const std::string& id,
                          uint64_t recovered);
  // Makes this the database that is used; returns the one before.
  std::shared_ptr<rocksdb::DB> Exchange(std::shared_ptr<rocksdb::DB> db)
      ABSL_LOCKS_EXCLUDED(db_mutex_);
  absl::Status OpenForReading(const DirectoryContent& content, std::string why)
      ABSL_LOCKS_EXCLUDED(db_mutex_);
  // Why the directory can only be read, and what to do; empty if it can be written.
  std::string WhyReadOnly() const;
  // Opens a table that can only be read for writing, if the disk allows it now. A deletion may
  // use what is kept for it (disk_reserve.h). UNAVAILABLE.
  absl::Status LeaveReadOnly(bool is_deletion) ABSL_LOCKS_EXCLUDED(db_mutex_, reopen_mutex_);
  rocksdb::Env* env() const;
  std::string boot_id() const { return options_.boot_id.empty() ? BootId() : options_.boot_id; }

  // DATA_LOSS for damage, UNAVAILABLE for every other error.
  static absl::Status ToAbsl(const rocksdb::Status& status);
  absl::StatusOr<bool> AreMet(const TableChange& change);
  // Writes a batch, if there is space and writing is allowed.
  absl::Status Write(rocksdb::WriteBatch& batch, bool sync);
  absl::Status WriteUnchecked(rocksdb::WriteBatch& batch, bool sync);
  absl::Status CheckNotFailed() const;
  // UNAVAILABLE: less than the reserve is free. Looks again after 100 ms, or once `bytes` add up to
  // a 64th of the reserve.
  absl::Status CheckSpace(size_t bytes);
  // Converts the status of a write, and remembers a failure.
  absl::Status OnWritten(const rocksdb::Status& status);

  // Released after the database is closed.
  const DirectoryLock lock_;
  const Options options_;
  // The database's files, whose log it syncs.
  OrderedLogs logs_;
  mutable Mutex db_mutex_;
  std::shared_ptr<rocksdb::DB> db_ ABSL_GUARDED_BY(db_mutex_);
  // Why db_ can only be read; empty if it can be written.
  std::string read_only_ ABSL_GUARDED_BY(db_mutex_);
  // Set by OpenForWriting, before is_read_only_ is cleared and anything else is written.
  std::shared_ptr<WatermarkFile> watermark_;
  // Set while the table is opened: the watermark that was there, what it means, what is missing.
  std::optional<Watermark> watermark_before_;
  Recovery recovery_ = Recovery::kTolerateTornTail;
  std::atomic<uint64_t> lost_writes_ = 0;
  std::atomic<bool> may_lack_updates_ = false;
  // The index of tables ended early, and that was accepted.
  bool is_index_lost_ = false;
  std::atomic<bool> is_read_only_ = false;
  std::atomic<bool> failed_ = false;
  // The last write in the log, by its sequence number.
  std::atomic<uint64_t> logged_ = 0;
  // Written since the disk was last found to have room, and when that was (Unix time).
  std::atomic<uint64_t> unchecked_bytes_ = 0;
  std::atomic<int64_t> checked_at_ = 0;
  // Held by each commit: what it asks for is so until it is written.
  Mutex commit_mutex_ ABSL_ACQUIRED_BEFORE(reopen_mutex_);
  // Held by LeaveReadOnly.
  Mutex reopen_mutex_ ABSL_ACQUIRED_BEFORE(db_mutex_);
  absl::Time next_attempt_ ABSL_GUARDED_BY(reopen_mutex_) = absl::InfinitePast();
};

}  // namespace perceptrond
