// A journal whose models, names and entries are rows of a table: what the rows mean, whatever their home. Each change is
// one conditional commit, so that of several servers that change the same thing at once one does, and the others know
// that they did not.
//
//   partitions  a row each says where its entries end (PartitionHead). Who appends an entry states that row as it was and
//               writes the next one, so that entries have one order, and a writer that another has superseded can
//               append nothing. The names of models and aliases are a partition of their own
//   models      all rows of one have its id in front. One row says that the model exists, which whatever is written of it
//               states: nothing can be left by a deletion
//   chain       each entry has a hash over that of the entry before and its bytes, and the head has the last one. Two
//               logs with one hash have the same past: what reads or writes a log compares them, so that it notices one
//               that lost entries, or another one, as after a fail-over
//   unknown     after a commit of which nobody knows whether it was made, the head is written once more with another
//               attempt: then that commit was made before, or never will be
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/journal/journal.h"
#include "core/journal/table.h"
#include "core/sync/mutex.h"
#include "perceptron/storage/v1/fleet.pb.h"

namespace perceptrond {

class TableJournal : public Journal {
 public:
  struct Options {
    // Of a new journal; one that exists has its own.
    uint32_t partitions = 1;
    // Bytes of the latest entries of each partition that are held for tails. 0: none; then this is the only opener.
    uint64_t held_bytes = 0;
    // A snapshot is written in parts of about this size: the memory that writing and loading one
    // takes besides the model.
    size_t snapshot_part_bytes = 8 << 20;
    // Open a journal that becomes a copy: a new one, or a copy that was begun.
    std::optional<ImportOptions> import = std::nullopt;
    // Creates nothing and refuses changes. Only ExcludeOthers writes.
    bool read_only = false;
    // How long ExcludeOthers listens: longer than servers are silent.
    absl::Duration exclusion_time = absl::Seconds(3);
    // Of a home that outlives the process and has one opener.
    bool keeps_predictions = false;
    // Journal::Id of a new journal; empty: random.
    std::string id = {};
  };

  // FAILED_PRECONDITION if it is a copy that is not whole, or of another format; NOT_FOUND if it is to be read only and
  // there is none. Errors as the table's.
  static absl::StatusOr<std::unique_ptr<TableJournal>> Open(std::unique_ptr<Table> table,
                                                            const Options& options);
  ~TableJournal() override;

  absl::StatusOr<storage::ModelHeader> Find(absl::string_view name) override;
  absl::Status Replace(const storage::ModelHeader& header,
                       const storage::ModelHeader& before) override;
  absl::Status Rename(const storage::ModelHeader& header,
                      const storage::ModelHeader& before) override;
  absl::StatusOr<std::vector<storage::ModelHeader>> List(absl::string_view after,
                                                         size_t limit) override;
  absl::StatusOr<uint64_t> Count() override ABSL_LOCKS_EXCLUDED(names_mutex_);
  void WatchModels(ModelWatcher watcher) override ABSL_LOCKS_EXCLUDED(names_mutex_);
  absl::Status Refresh() override ABSL_LOCKS_EXCLUDED(names_mutex_);

  const AliasMap& aliases() const override { return aliases_; }
  absl::Status PutAlias(const Alias& alias, absl::string_view etag) override;
  absl::Status DeleteAlias(absl::string_view name, absl::string_view etag) override;

  absl::Status SaveKept(uint64_t model_id, const storage::Snapshot& snapshot,
                        storage::KeptSnapshot& kept) override;
  absl::StatusOr<storage::Snapshot> LoadKept(uint64_t model_id,
                                             const storage::KeptSnapshot& kept) override;

  bool keeps_predictions() const override { return options_.keeps_predictions; }
  absl::Status SavePredictions(uint64_t model_id,
                               std::span<const KeptPrediction> predictions) override;
  absl::Status DropPredictions(uint64_t model_id, std::span<const uint64_t> numbers) override;
  absl::StatusOr<std::vector<KeptPrediction>> LoadPredictions(uint64_t model_id) override;

  uint32_t partitions() const override { return partition_count_; }
  absl::StatusOr<CommitOutcome> Commit(std::span<const JournalEntry> entries,
                                       const CommitOptions& options) override;
  absl::StatusOr<CommitOutcome> TakeOver(uint32_t partition, const std::string& address,
                                         uint64_t expected) override;
  absl::StatusOr<bool> ConfirmWriter(uint32_t partition) override;
  absl::StatusOr<uint64_t> LastSequence(uint32_t partition) override;
  absl::StatusOr<std::unique_ptr<JournalTail>> Tail(uint32_t partition, uint64_t after) override;
  absl::Status Sync() override { return table_->Sync(); }
  absl::Status Sweep() override;
  absl::Status Verify() override;
  void Close() override { table_->Close(); }
  absl::Status Announce(absl::string_view message) override { return table_->Announce(message); }
  void Listen(std::function<void(absl::string_view message)> listener) override {
    table_->Listen(std::move(listener));
  }

  // Also of a journal that is read only: the source of a copy must not change. Called again, it is FAILED_PRECONDITION if
  // anyone has written since. Not while something listens (Listen), and by one thread.
  absl::Status ExcludeOthers() override;
  absl::Status BeginImport() override;
  absl::Status FinishImport() override;

  absl::StatusOr<std::unique_ptr<StoredModel>> Load(uint64_t model_id) override;
  absl::StatusOr<CommittedState> LoadCommittedState(uint64_t model_id) override;
  absl::StatusOr<storage::Counters> LoadCounters(uint64_t model_id) override;
  absl::Status Replay(uint64_t model_id, uint64_t after_revision,
                      const ReplayCallback& replay) override;
  absl::StatusOr<std::optional<storage::Snapshot>> LoadSnapshot(uint64_t model_id) override;
  absl::Status SaveSnapshot(uint64_t model_id, const storage::Snapshot& snapshot) override;
  absl::StatusOr<storage::History> LoadHistory(uint64_t model_id) override;
  // Only of a partition that nobody else writes: another writer's records are no leftovers.
  absl::Status DropAfter(uint64_t model_id, uint64_t revision) override;
  std::string Id() override { return id_; }
  JournalStats Stats() override { return {}; }
  absl::StatusOr<Backup> BackUp(const Backups& backups, uint32_t keep) override;

 protected:
  TableJournal(std::unique_ptr<Table> table, const Options& options);
  absl::Status Begin();
  Table& table() { return *table_; }

 private:
  class PartitionTail;
  class Stored;

  // A partition as this opener knows it.
  struct Partition {
    Mutex mutex;
    // Null: not known, since another opener may have changed it.
    std::optional<storage::PartitionHead> head ABSL_GUARDED_BY(mutex);
    // As it stands in the table; absent: there is none yet.
    std::optional<std::string> bytes ABSL_GUARDED_BY(mutex);
    // The epoch of this opener's last TakeOver, or of its opening if it is the only one, or 0; and the hash of the last
    // entry that it wrote since.
    int64_t own_epoch ABSL_GUARDED_BY(mutex) = 0;
    std::string own_hash ABSL_GUARDED_BY(mutex);
  };
  // What a change of names writes.
  struct NamesChange {
    TableChange change;
    storage::NamesEntry entry;
  };
  using MakeNamesChange = std::function<absl::Status(NamesChange& names)>;

  absl::Status CreateModel(storage::ModelHeader& header, const ModelGuard& guard) override;
  absl::Status DeleteModel(absl::string_view name, const ModelGuard& guard) override;
  absl::Status CreateLearned(storage::ModelHeader& header, const storage::Snapshot& snapshot,
                             const CommittedState& committed, const ModelGuard& guard) override;

  // Random.
  static std::string NewId();
  // A row of what is known of the whole journal.
  absl::StatusOr<std::string> ReadMeta(absl::string_view what);
  // FAILED_PRECONDITION: it is read only.
  absl::Status CheckWritable() const;
  // Table::Commit, if it is writable.
  absl::StatusOr<bool> Write(const TableChange& change, bool sync);
  // Reading of rows.
  static absl::StatusOr<storage::PartitionHead> ReadHead(TableReader& reader, uint32_t number);
  // Returns the epoch of a writer who begins where this head is.
  static int64_t NextEpoch(const storage::PartitionHead& head);
  // Of names: the last partition.
  uint32_t names() const { return partition_count_; }

  // (core/journal/table_entries.cc)
  // As TakeOver, also of a journal that is read only.
  absl::StatusOr<CommitOutcome> Seize(uint32_t number, const std::string& address,
                                      uint64_t expected);
  absl::Status KnowHead(uint32_t number, Partition& partition)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(partition.mutex);
  // Returns whether this opener may write to a partition whose head is known. The log may have lost entries of its epoch.
  static bool IsWriter(const Partition& partition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(partition.mutex);
  // Makes a change, and states and moves the partition's head to `next`. False: a condition does not
  // hold, and the head is not known any more. UNKNOWN: whether it was made could not be settled.
  absl::StatusOr<bool> CommitAt(uint32_t number, Partition& partition, TableChange& change,
                                storage::PartitionHead next, bool sync)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(partition.mutex);
  // After an UNKNOWN: whether the head is this one, once no other commit of this opener can be made.
  absl::StatusOr<bool> Settle(uint32_t number, const std::optional<std::string>& before,
                              const std::string& after);
  absl::Status AddEntry(const JournalEntry& entry, uint32_t number, storage::PartitionHead& next,
                        TableChange& change);
  absl::Status HoldEntry(uint32_t number, const google::protobuf::MessageLite& entry,
                         storage::PartitionHead& next, TableChange& change);
  // A partition's head after so many of the table's commits, or more, and after the reads of heads that there were before:
  // of all that ask, one reads all heads.
  absl::StatusOr<storage::PartitionHead> HeadAfter(uint64_t commits, uint64_t reads_before,
                                                   uint32_t number)
      ABSL_LOCKS_EXCLUDED(heads_mutex_);
  // Waits for one that is being made.
  uint64_t HeadReads() ABSL_LOCKS_EXCLUDED(heads_mutex_) {
    MutexLock lock(&heads_mutex_);
    return head_reads_;
  }
  // Drops the oldest entries that are too many.
  absl::Status DropEntries(uint32_t number, storage::PartitionHead& next, TableChange& change);
  // Of the entries, those of models that exist.
  absl::StatusOr<std::vector<const JournalEntry*>> Living(std::span<const JournalEntry> entries);

  // (core/journal/table_names.cc)
  absl::Status ChangeNames(const MakeNamesChange& make) ABSL_LOCKS_EXCLUDED(names_mutex_);
  // Applies what others have changed since names_seen_, up to this head; of another log, what is otherwise there.
  absl::Status CatchUp(const storage::PartitionHead& head)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(names_mutex_);
  // Reads the names as they are now, where their changes are not known.
  absl::Status ReadAllNames() ABSL_EXCLUSIVE_LOCKS_REQUIRED(names_mutex_);
  void ApplyNames(const storage::NamesEntry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(names_mutex_);
  // Without the watcher, which hears of others' changes alone.
  void ApplyOwn(const storage::NamesEntry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(names_mutex_);
  absl::StatusOr<bool> Exists(absl::string_view name);
  absl::StatusOr<storage::ModelHeader> ReadHeader(absl::string_view name);
  absl::Status Ask(const ModelGuard& guard);
  // Returns what Count returns, if it is known.
  std::optional<uint64_t> KnownCount() ABSL_LOCKS_EXCLUDED(headers_mutex_);
  absl::StatusOr<uint64_t> CountLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(names_mutex_);
  absl::StatusOr<uint64_t> NextId(TableChange& change);
  // As Refresh. Of the thread, which calls nothing that a class derived from this could override: it begins before such
  // a one is made, and ends after that is gone.
  absl::Status ReadNames() ABSL_LOCKS_EXCLUDED(names_mutex_);
  void FollowNames() ABSL_LOCKS_EXCLUDED(names_mutex_);
  // Drops what is left of models whose states were begun to be written before then, and not finished.
  absl::Status DropUnfinished(absl::Time begun_before);

  // (core/journal/table_models.cc)
  absl::StatusOr<std::vector<uint64_t>> WritePieces(const std::string& prefix,
                                                    const storage::Snapshot& snapshot,
                                                    const TableChange::Condition& condition);
  static absl::StatusOr<storage::Snapshot> ReadPieces(TableReader& reader,
                                                      const std::string& prefix,
                                                      std::span<const uint64_t> part_bytes);
  static absl::StatusOr<storage::SnapshotHead> ReadSnapshotHead(TableReader& reader,
                                                                uint64_t model_id);
  static absl::StatusOr<std::optional<storage::Snapshot>> ReadSnapshot(TableReader& reader,
                                                                       uint64_t model_id);
  static absl::Status ReadRecords(TableReader& reader, uint64_t model_id, uint64_t after_revision,
                                  const ReplayCallback& replay);
  absl::StatusOr<CommittedState> ReadCommitted(TableReader& reader, uint64_t model_id) const;

  const std::unique_ptr<Table> table_;
  const Options options_;
  uint32_t partition_count_ = 1;
  std::string id_;
  // The epoch of this opening, if it is the only opener. The first commit writes it: an opening without a commit has nothing
  // that could be lost.
  int64_t opening_epoch_ = 0;
  // By number; the last is of the names.
  std::vector<std::unique_ptr<Partition>> partitions_;

  // Held while heads are read, which others wait for.
  Mutex heads_mutex_;
  uint64_t heads_after_ ABSL_GUARDED_BY(heads_mutex_) = 0;
  absl::StatusOr<std::vector<storage::PartitionHead>> heads_ ABSL_GUARDED_BY(heads_mutex_);
  // Changed under heads_mutex_.
  std::atomic<uint64_t> head_reads_ = 0;

  // Held by each change of names. Before Partition::mutex.
  Mutex names_mutex_;
  AliasMap aliases_;
  ModelWatcher watcher_ ABSL_GUARDED_BY(names_mutex_);
  // The last entry of names that aliases_ and watcher_ have.
  uint64_t names_seen_ ABSL_GUARDED_BY(names_mutex_) = 0;
  std::string names_hash_ ABSL_GUARDED_BY(names_mutex_);
  // After names_mutex_.
  Mutex headers_mutex_;
  // The number of models after that entry; absent: not counted. Of the only opener, and changed with names_mutex_ held.
  std::optional<uint64_t> count_ ABSL_GUARDED_BY(headers_mutex_);
  // If there are several openers, this one keeps all headers by name, as it has read them, to answer while the table cannot
  // be read.
  std::map<std::string, storage::ModelHeader, std::less<>> headers_ ABSL_GUARDED_BY(headers_mutex_);
  // The names could not be read when that was last tried.
  std::atomic<bool> is_away_ = false;
  bool stopping_ ABSL_GUARDED_BY(names_mutex_) = false;
  // The end of the names when others were excluded.
  std::optional<std::string> excluded_names_;
  // Follows the names, if others may change them.
  std::thread names_thread_;
};

// Parts of several files.
namespace table_rows {

absl::Status Put(std::string key, const google::protobuf::MessageLite& message,
                 TableChange& change);
// False: there is no such row.
absl::StatusOr<bool> Read(TableReader& reader, const std::string& key,
                          google::protobuf::MessageLite& message, absl::string_view what);
// The hash of an entry with these bytes, after one with the hash `previous`.
std::string EntryHash(absl::string_view previous, absl::string_view bytes);
// An entry's hash and bytes. `hash` is that of the entry before, or absent, and becomes this one's. OUT_OF_RANGE: the
// entry follows another one. DATA_LOSS.
absl::Status ParseEntry(absl::string_view value, google::protobuf::MessageLite& entry,
                        std::optional<std::string>& hash);
// That the model exists.
TableChange::Condition IsAlive(uint64_t model_id);
KeyRange KeptPieces(uint64_t model_id, const storage::KeptSnapshot& kept);

}  // namespace table_rows
}  // namespace perceptrond
