// The default journal: RocksDB in a directory of its own. Its write-ahead log provides group commit
// and checksums, its batches atomic commits.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/journal/data_directory.h"
#include "core/journal/journal.h"
#include "core/journal/recent_entries.h"
#include "core/journal/rocksdb_logs.h"
#include "core/journal/watermark.h"
#include "core/sync/mutex.h"

namespace rocksdb {
class DB;
class Env;
class WriteBatch;
class Status;
}  // namespace rocksdb

namespace perceptrond {

class RocksDbJournal final : public Journal {
 public:
  struct Options {
    // Created if absent, with its parents.
    std::string directory;
    // Memory for blocks read from disk by lists, in bytes.
    size_t block_cache_bytes = 8 << 20;
    // Memory for writes that are not in a table yet, in bytes. The log on disk takes at most a few
    // times this.
    size_t write_buffer_bytes = 16 << 20;
    // While the disk has less free space than this, only deletions are written, so that RocksDB's
    // background writes never meet a full disk.
    uint64_t reserve_bytes = 64 << 20;
    // A snapshot is written in parts of about this size: the memory that writing and loading one
    // takes besides the model. Well below the 2 GiB that Protobuf can write.
    size_t snapshot_part_bytes = 64 << 20;
    // A snapshot larger than this goes past the log, if it makes a table worth writing.
    size_t logged_snapshot_bytes = 1 << 20;
    // Never wait until the log is on disk: for data that can be recreated.
    bool never_sync = false;
    // Open although writes that were on disk once are missing. What is left is used, and the
    // journal gets a new history.
    bool accept_data_loss = false;
    // Begin a new history, as for a journal restored from a backup.
    bool new_history = false;
    // Open a journal that becomes a copy: a new one, or a copy that was begun.
    std::optional<ImportOptions> import;
    // Open what is there for reading alone, and change nothing.
    bool read_only = false;
    // Names the boot of the machine (Watermark::boot_id). Empty: the kernel's.
    std::string boot_id;
    // Where files are. Null: the file system. Must outlive the journal.
    rocksdb::Env* env = nullptr;
    // Bytes of the latest entries that are held in memory for tails.
    size_t tail_bytes = 0;
    // How long Open waits for another server to release the directory.
    absl::Duration lock_timeout = absl::ZeroDuration();
    // Called once if Open has to wait for the lock.
    std::function<void()> on_locked;
  };

  // UNAVAILABLE if the directory cannot be used (another server holds it, no permission); DATA_LOSS
  // if its content fails its checks, or lacks writes that were on disk once;
  // FAILED_PRECONDITION if a newer version wrote it, or if it is neither empty nor a whole journal
  // (or, with `import`, the beginning of a copy).
  // Then nothing in it is changed. A journal whose disk is full or read-only is opened for reading:
  // each write fails, says so (UNAVAILABLE), and first tries whether the disk has room by now, at
  // most once a second.
  static absl::StatusOr<std::unique_ptr<RocksDbJournal>> Open(const Options& options);
  // Syncs the log, and notes where it ends.
  ~RocksDbJournal() override;

  absl::StatusOr<storage::ModelHeader> Find(absl::string_view name) override;
  absl::Status Replace(const storage::ModelHeader& header,
                       const storage::ModelHeader& before) override;
  absl::Status Rename(const storage::ModelHeader& header,
                      const storage::ModelHeader& before) override;
  const AliasMap& aliases() const override { return aliases_; }
  absl::Status PutAlias(const Alias& alias, absl::string_view etag) override;
  absl::Status DeleteAlias(absl::string_view name, absl::string_view etag) override;
  absl::Status SaveKept(uint64_t model_id, const storage::Snapshot& snapshot,
                        storage::KeptSnapshot& kept) override;
  absl::StatusOr<storage::Snapshot> LoadKept(uint64_t model_id,
                                             const storage::KeptSnapshot& kept) override;
  absl::Status DeleteKept(uint64_t model_id, const storage::KeptSnapshot& kept) override;
  absl::StatusOr<std::vector<storage::ModelHeader>> List(absl::string_view after,
                                                         size_t limit) override;
  absl::StatusOr<uint64_t> Count() override;
  absl::StatusOr<CommitOutcome> Commit(std::span<const JournalEntry> entries,
                                       const CommitOptions& options) override
      ABSL_LOCKS_EXCLUDED(commit_mutex_);
  absl::StatusOr<uint64_t> LastSequence(uint32_t partition) override
      ABSL_LOCKS_EXCLUDED(commit_mutex_);
  absl::StatusOr<std::unique_ptr<JournalTail>> Tail(uint32_t partition, uint64_t after) override;
  absl::Status Sync() override;
  absl::StatusOr<CommittedState> LoadCommittedState(uint64_t model_id) override;
  absl::StatusOr<storage::Counters> LoadCounters(uint64_t model_id) override;
  absl::Status Replay(uint64_t model_id, uint64_t after_revision,
                      const ReplayCallback& replay) override;
  absl::StatusOr<std::optional<storage::Snapshot>> LoadSnapshot(uint64_t model_id) override;
  absl::Status SaveSnapshot(uint64_t model_id, const storage::Snapshot& snapshot) override;
  absl::StatusOr<storage::History> LoadHistory(uint64_t model_id) override;
  absl::Status DropAfter(uint64_t model_id, uint64_t revision) override;
  bool keeps_predictions() const override { return true; }
  absl::Status SavePredictions(uint64_t model_id,
                               std::span<const KeptPrediction> predictions) override;
  absl::Status DropPredictions(uint64_t model_id, std::span<const uint64_t> numbers) override;
  absl::StatusOr<std::vector<KeptPrediction>> LoadPredictions(uint64_t model_id) override;
  absl::Status BeginImport() override;
  absl::Status FinishImport() override ABSL_LOCKS_EXCLUDED(db_mutex_);
  std::string Id() override;
  std::string HistoryId() override ABSL_LOCKS_EXCLUDED(db_mutex_);
  JournalStats Stats() override ABSL_LOCKS_EXCLUDED(db_mutex_);
  absl::StatusOr<Backup> BackUp(const Backups& backups, uint32_t keep) override {
    return backups.Create(*db(), Id(), logged_, keep);
  }
  // Reads all tables, and checks them against their checksums. The sequence number of the last
  // write in the log. For verification.
  absl::Status Verify() override;
  uint64_t sequence() const { return logged_; }

 private:
  absl::Status CreateModel(storage::ModelHeader& header, const ModelGuard& guard) override
      ABSL_LOCKS_EXCLUDED(headers_mutex_);
  absl::Status DeleteModel(absl::string_view name, const ModelGuard& guard) override
      ABSL_LOCKS_EXCLUDED(headers_mutex_);
  absl::Status CreateLearned(storage::ModelHeader& header, const storage::Snapshot& snapshot,
                             const CommittedState& committed, const ModelGuard& guard) override
      ABSL_LOCKS_EXCLUDED(headers_mutex_);
  // OK without a guard.
  absl::Status Ask(const ModelGuard& guard) ABSL_EXCLUSIVE_LOCKS_REQUIRED(headers_mutex_);
  absl::StatusOr<uint64_t> CountLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(headers_mutex_);
  // After a model came or went.
  void AddToCount(int64_t difference) ABSL_EXCLUSIVE_LOCKS_REQUIRED(headers_mutex_);
  // How a write becomes durable. kTable: not through the log, but with everything written before,
  // once WriteTable returns.
  enum class Through { kSyncedLog, kLog, kTable };

  // kWriteOnFullDisk: with as little written as may be.
  enum class Access { kRead, kWrite, kWriteOnFullDisk, kCreate };
  // How much of the logs must be whole.
  enum class Recovery {
    // The journal was closed: all.
    kComplete,
    // What is before the first damage. The watermark tells whether that is enough.
    kUpToDamage,
    // There is no watermark: all but a last write that a crash cut off.
    kTolerateTornTail,
  };
  class FileChanges;

  RocksDbJournal(DirectoryLock lock, Options options);

  // Opens the database of the locked directory in the way that its content and the disk allow.
  absl::Status OpenDirectory(const DirectoryContent& content);
  absl::StatusOr<std::shared_ptr<rocksdb::DB>> OpenDatabase(
      Access access, std::shared_ptr<FileChanges> changes) const;
  // Chooses the recovery. Unless the journal was closed as it is, also checks what it has, and
  // leaves it unchanged. DATA_LOSS as CheckSequence.
  absl::Status CheckComplete(const Watermark& watermark);
  // Counts the writes that the watermark has and a database with this last write lacks. DATA_LOSS
  // if there are any, unless that is accepted.
  absl::Status CheckSequence(uint64_t sequence);
  // The database's id. FAILED_PRECONDITION if the marker has another.
  absl::StatusOr<std::string> CheckId(rocksdb::DB& db, const DirectoryContent& content) const;
  // Opens the database for writing, and writes what comes first: format, history, marker,
  // watermark.
  absl::Status OpenForWriting(const DirectoryContent& content, Access access)
      ABSL_LOCKS_EXCLUDED(db_mutex_);
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
  // Opens a journal that can only be read for writing, if the disk allows it now. A deletion may
  // use what is kept for it (disk_reserve.h). UNAVAILABLE.
  absl::Status LeaveReadOnly(bool is_deletion) ABSL_LOCKS_EXCLUDED(db_mutex_, reopen_mutex_);
  std::shared_ptr<rocksdb::DB> db() const ABSL_LOCKS_EXCLUDED(db_mutex_);
  rocksdb::Env* env() const;
  std::string boot_id() const { return options_.boot_id.empty() ? BootId() : options_.boot_id; }
  // FAILED_PRECONDITION if a newer version wrote the journal, or another program the database.
  absl::Status CheckFormat();
  // Reads the journal's history, or begins one, also if the one that is there has lost writes.
  absl::Status ReadHistory(bool writable);
  // DATA_LOSS for damage, UNAVAILABLE for every other error.
  static absl::Status ToAbsl(const rocksdb::Status& status);
  // Reads all aliases.
  absl::Status ReadAliases();
  // Drops the pieces of models that a crash kept from being created.
  absl::Status DropUnfinished();
  static void DropUnfinished(uint64_t model_id, rocksdb::WriteBatch& batch);
  // The id of the next model, in a batch that takes it.
  absl::StatusOr<uint64_t> NextId(rocksdb::WriteBatch& batch);
  // Has the batch raise the journal's format to this, unless it is as high.
  void RaiseFormat(rocksdb::WriteBatch& batch, uint64_t format);
  // A snapshot as pieces whose keys begin with `prefix`; the bytes of each part.
  absl::StatusOr<std::vector<uint64_t>> WritePieces(const std::string& prefix,
                                                    const storage::Snapshot& snapshot,
                                                    Through through);
  absl::StatusOr<storage::Snapshot> ReadPieces(const std::string& prefix,
                                               std::span<const uint64_t> part_bytes);
  // Writes the bytes of a part as pieces numbered from `next_chunk`, and advances it.
  absl::Status WriteChunks(const std::string& prefix, const std::string& bytes, Through through,
                           uint64_t& next_chunk);
  absl::StatusOr<std::string> ReadChunks(const std::string& prefix, uint64_t bytes,
                                         uint64_t& next_chunk);
  // UNAVAILABLE while there is too little space, and for ever after a failed write: nothing may
  // follow in the log on a write whose end is not known.
  absl::Status Write(rocksdb::WriteBatch& batch, Through through);
  // The same, whatever the space and before writing is allowed.
  absl::Status WriteUnchecked(rocksdb::WriteBatch& batch, Through through);
  absl::Status WriteTable();
  // Has everything in the log on disk.
  absl::Status SyncLog();
  // Whether this many bytes, with those not in a table yet, are worth a table. Smaller tables would
  // be merged more often.
  bool FillsTable(size_t bytes) const;
  // Makes a snapshot whose pieces are written the current one, and drops what it replaces; or drops
  // the pieces, if the model was deleted meanwhile.
  absl::Status MakeCurrent(uint64_t model_id, uint64_t slot, const std::string& head,
                           const storage::Snapshot& snapshot, Through through);
  absl::Status CheckNotFailed() const;
  // Advances the watermark over a batch that was written.
  void AdvanceOver(const rocksdb::WriteBatch& batch, bool synced);
  // UNAVAILABLE: less than the reserve is free. Looks again after 100 ms, or once `bytes` add up to
  // a 64th of the reserve.
  absl::Status CheckSpace(size_t bytes);
  // Converts the status of a write, and remembers a failure.
  absl::Status OnWritten(const rocksdb::Status& status);
  // Reads one key. False if it is absent.
  absl::StatusOr<bool> Get(const std::string& key, std::string& value);
  absl::StatusOr<bool> GetMessage(const std::string& key, google::protobuf::MessageLite& message);

  // Released after the database is closed.
  const DirectoryLock lock_;
  const Options options_;
  // The database's files, whose log it syncs.
  OrderedLogs logs_;
  mutable Mutex db_mutex_;
  std::shared_ptr<rocksdb::DB> db_ ABSL_GUARDED_BY(db_mutex_);
  // Why db_ can only be read; empty if it can be written.
  std::string read_only_ ABSL_GUARDED_BY(db_mutex_);
  std::string history_id_ ABSL_GUARDED_BY(db_mutex_);
  // Set by OpenForWriting, before is_read_only_ is cleared and anything else is written.
  std::shared_ptr<WatermarkFile> watermark_;
  // Set while the journal is opened: the watermark that was there, what it means, what is missing.
  std::optional<Watermark> watermark_before_;
  Recovery recovery_ = Recovery::kTolerateTornTail;
  std::atomic<uint64_t> lost_writes_ = 0;
  std::atomic<bool> may_lack_updates_ = false;
  // The index of tables ended early, and that was accepted.
  bool lost_index_ = false;
  std::atomic<bool> is_read_only_ = false;
  std::atomic<bool> failed_ = false;
  // The last write in the log, by its sequence number.
  std::atomic<uint64_t> logged_ = 0;
  // Written since the disk was last found to have room, and when that was (Unix time).
  std::atomic<uint64_t> unchecked_bytes_ = 0;
  std::atomic<int64_t> checked_at_ = 0;
  // The latest entries, for tails.
  const std::shared_ptr<RecentEntries> recent_;
  // Held by each commit.
  Mutex commit_mutex_ ABSL_ACQUIRED_BEFORE(reopen_mutex_);
  // The sequence number of the last commit, or of the last write when the journal was opened.
  uint64_t last_commit_ ABSL_GUARDED_BY(commit_mutex_) = 0;
  // Held by each change of headers and aliases.
  Mutex headers_mutex_;
  // The models; below 0 until they are counted. Changed under headers_mutex_, and read without it:
  // a deletion may take long.
  std::atomic<int64_t> count_ = -1;
  AliasMap aliases_;
  // Held by LeaveReadOnly.
  Mutex reopen_mutex_ ABSL_ACQUIRED_BEFORE(db_mutex_);
  absl::Time next_attempt_ ABSL_GUARDED_BY(reopen_mutex_) = absl::InfinitePast();
};

}  // namespace perceptrond
