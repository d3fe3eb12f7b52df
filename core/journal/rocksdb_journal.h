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
    // Memory for writes that are not in a table yet, in bytes. The log on disk takes at most a few
    // times this.
    size_t write_buffer_bytes = 16 << 20;
    // While the disk has less free space than this, only deletions are written, so that RocksDB's
    // background writes never meet a full disk.
    uint64_t reserve_bytes = 64 << 20;
    // A snapshot is written in parts of about this size: the memory that writing and loading one
    // takes besides the model. Well below the 2 GiB that Protobuf can write.
    size_t snapshot_part_bytes = 64 << 20;
    // Never wait until the log is on disk: for data that can be recreated.
    bool never_sync = false;
    // How long Open waits for another server to release the directory.
    absl::Duration lock_timeout = absl::ZeroDuration();
    // Called once if Open has to wait for the lock.
    std::function<void()> on_locked;
  };

  // UNAVAILABLE if the directory cannot be used (another server holds it, no permission); DATA_LOSS
  // if its content fails its checks; FAILED_PRECONDITION if a newer version wrote it, or if it is
  // neither empty nor a whole journal: then nothing in it is changed.
  static absl::StatusOr<std::unique_ptr<RocksDbJournal>> Open(const Options& options);
  // Flushes nothing: what was acknowledged is durable already.
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
  // How a write becomes durable. kTable: not through the log, but with everything written before,
  // once WriteTable returns.
  enum class Through { kSyncedLog, kLog, kTable };

  RocksDbJournal(DirectoryLock lock, std::unique_ptr<rocksdb::DB> db, Options options);

  // Opens the database, or creates it if `create`; the caller holds the directory's lock. Errors as
  // ToAbsl.
  static absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenDatabase(const Options& options,
                                                                   bool create);
  // FAILED_PRECONDITION if a newer version wrote the journal, or another program the database.
  absl::Status CheckFormat();
  // DATA_LOSS for damage, UNAVAILABLE for every other error.
  static absl::Status ToAbsl(const rocksdb::Status& status);
  // DATA_LOSS if the bytes do not parse; `what` names the message.
  static absl::Status Parse(std::string_view bytes, google::protobuf::MessageLite& message,
                            absl::string_view what);
  // RESOURCE_EXHAUSTED if the message is larger than Protobuf can write.
  static absl::Status Serialize(const google::protobuf::MessageLite& message, std::string& bytes);
  // Writes the bytes of a part as pieces numbered from `next_chunk`, and advances it.
  absl::Status WriteChunks(uint64_t model_id, uint64_t slot, const std::string& bytes,
                           Through through, uint64_t& next_chunk);
  absl::StatusOr<std::string> ReadChunks(uint64_t model_id, uint64_t slot, uint64_t bytes,
                                         uint64_t& next_chunk);
  // UNAVAILABLE while there is too little space, and for ever after a failed write: nothing may
  // follow in the log on a write whose end is not known.
  absl::Status Write(rocksdb::WriteBatch& batch, Through through);
  absl::Status WriteTable();
  // Whether this many bytes, with those not in a table yet, are worth a table. Smaller tables would
  // be merged more often.
  bool FillsTable(size_t bytes) const;
  // Makes a snapshot whose pieces are written the current one, and drops what it replaces; or drops
  // the pieces, if the model was deleted meanwhile.
  absl::Status MakeCurrent(uint64_t model_id, uint64_t slot, const std::string& head,
                           Through through);
  absl::Status CheckNotFailed() const;
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
  const std::unique_ptr<rocksdb::DB> db_;
  const Options options_;
  std::atomic<bool> failed_ = false;
  // Written since the disk was last found to have room, and when that was (Unix time).
  std::atomic<uint64_t> unchecked_bytes_ = 0;
  std::atomic<int64_t> checked_at_ = 0;
  // Held by each change of headers.
  Mutex headers_mutex_;
};

}  // namespace perceptrond
