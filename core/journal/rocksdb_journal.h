// The default home: RocksDB in a directory of its own. Its write-ahead log gives group commit and
// checksums, its batches give atomic commits.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "core/journal/directory_lock.h"
#include "core/journal/journal.h"
#include "core/sync/mutex.h"

namespace rocksdb {
class DB;
class WriteBatch;
class Status;
}  // namespace rocksdb

namespace perceptrond {

class RocksDbJournal final : public Journal {
 public:
  struct Options {
    // Created if absent, with its parents.
    std::string directory;
    // Memory for blocks read from disk, in bytes.
    size_t block_cache_bytes = 64 << 20;
    // Memory for what is written before it goes to a table, in bytes; the log on disk is bounded by
    // a few times this.
    size_t write_buffer_bytes = 16 << 20;
    // While the disk has less free than this, nothing but deletions is written: what RocksDB writes
    // in the background has room to finish, and it never meets a full disk itself.
    uint64_t reserve_bytes = 64 << 20;
    // A snapshot is written in parts of about this size: what writing and loading one needs in
    // memory besides the model. Well below the 2 GiB that Protobuf can write.
    size_t snapshot_part_bytes = 64 << 20;
    // The log is never waited for until it is on disk: for data that can be made again.
    bool never_sync = false;
    // How long Open waits for another server to release the directory.
    absl::Duration lock_timeout = absl::ZeroDuration();
    // Called once if Open has to wait for the lock.
    std::function<void()> on_locked;
  };

  // UNAVAILABLE if the directory cannot be used (another server holds it, no permission); DATA_LOSS
  // if its content fails its checks, with what to do about it; FAILED_PRECONDITION if a newer
  // version wrote it.
  static absl::StatusOr<std::unique_ptr<RocksDbJournal>> Open(const Options& options);
  // Flushes nothing that is not durable already.
  ~RocksDbJournal() override;

  absl::Status Create(storage::ModelHeader& header) override;
  absl::StatusOr<storage::ModelHeader> Find(absl::string_view name) override;
  absl::Status Replace(const storage::ModelHeader& header) override;
  absl::Status Delete(absl::string_view name) override;
  absl::StatusOr<std::vector<storage::ModelHeader>> List(absl::string_view after,
                                                         size_t limit) override;
  absl::StatusOr<uint64_t> Count() override;
  absl::Status Commit(std::span<const JournalEntry> entries, bool sync) override;
  absl::Status Sync() override;
  absl::StatusOr<CommittedState> LoadCommittedState(uint64_t model_id) override;
  absl::StatusOr<storage::Counters> LoadCounters(uint64_t model_id) override;
  absl::Status Replay(uint64_t model_id, uint64_t after_revision,
                      const std::function<absl::Status(const storage::UpdateRecord&, size_t bytes)>&
                          replay) override;
  absl::StatusOr<std::optional<storage::Snapshot>> LoadSnapshot(uint64_t model_id) override;
  absl::Status SaveSnapshot(uint64_t model_id, const storage::Snapshot& snapshot) override;
  absl::Status DropAfter(uint64_t model_id, uint64_t revision) override;

 private:
  // What a write goes through. kTable: past the log, and durable, with all that was written before,
  // once WriteTable returns.
  enum class Through { kSyncedLog, kLog, kTable };

  RocksDbJournal(DirectoryLock lock, std::unique_ptr<rocksdb::DB> db, Options options);

  absl::Status CheckFormat();
  // DATA_LOSS if the bytes are no message; `what` it was to be.
  static absl::Status Parse(std::string_view bytes, google::protobuf::MessageLite& message,
                            absl::string_view what);
  // A message's bytes; RESOURCE_EXHAUSTED if they are more than Protobuf can write.
  static absl::Status Serialize(const google::protobuf::MessageLite& message, std::string& bytes);
  // Writes a part's bytes as pieces, from number `next_chunk` on, and moves it.
  absl::Status WriteChunks(uint64_t model_id, uint64_t place, const std::string& bytes,
                           Through through, uint64_t& next_chunk);
  absl::StatusOr<std::string> ReadChunks(uint64_t model_id, uint64_t place, uint64_t bytes,
                                         uint64_t& next_chunk);
  // UNAVAILABLE for want of space, or for good once a write has failed: RocksDB's log must not be
  // written behind a write whose end is not known.
  absl::Status Write(rocksdb::WriteBatch& batch, Through through);
  absl::Status WriteTable();
  // Whether so many bytes, with what waits for a table already, are worth one. Smaller tables would
  // be merged more often.
  bool FillsTable(size_t bytes) const;
  // Writes the head of a snapshot whose pieces are written, and with it drops what it makes
  // superfluous; or the pieces, if the model was deleted meanwhile.
  absl::Status TurnTo(uint64_t model_id, uint64_t place, const std::string& head, Through through);
  absl::Status CheckNotFailed() const;
  absl::Status CheckSpace() const;
  // Of a write: none may follow on one that failed.
  absl::Status Written(const rocksdb::Status& status);
  // Reads one key; false if it is absent.
  absl::StatusOr<bool> Get(const std::string& key, std::string& value);
  absl::StatusOr<bool> GetMessage(const std::string& key, google::protobuf::MessageLite& message);

  // Released after the database is closed.
  const DirectoryLock lock_;
  const std::unique_ptr<rocksdb::DB> db_;
  const Options options_;
  std::atomic<bool> failed_ = false;
  // Headers change one at a time.
  Mutex headers_mutex_;
};

}  // namespace perceptrond
