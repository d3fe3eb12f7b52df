// A journal in memory: for models that need not outlive the process, and for tests.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/journal/journal.h"
#include "core/journal/recent_entries.h"
#include "core/sync/mutex.h"

namespace perceptrond {

class MemoryJournal final : public Journal {
 public:
  struct Options {
    uint32_t partitions = 1;
    // Bytes of the latest entries that each partition holds for tails.
    size_t tail_bytes = 0;
  };
  MemoryJournal() : MemoryJournal(Options()) {}
  explicit MemoryJournal(const Options& options)
      : MemoryJournal(std::make_shared<Shared>(options)) {}
  // Another opener of the same journal, as another server of a fleet is.
  std::unique_ptr<MemoryJournal> OpenAgain() const {
    return std::unique_ptr<MemoryJournal>(new MemoryJournal(shared_));
  }

  ~MemoryJournal() override;

  absl::StatusOr<storage::ModelHeader> Find(absl::string_view name) override;
  absl::Status Replace(const storage::ModelHeader& header,
                       const storage::ModelHeader& before) override;
  absl::Status Rename(const storage::ModelHeader& header,
                      const storage::ModelHeader& before) override;
  const AliasMap& aliases() const override { return shared_->aliases; }
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
  uint32_t partitions() const override { return shared_->partition_count; }
  absl::StatusOr<CommitOutcome> Commit(std::span<const JournalEntry> entries,
                                       const CommitOptions& options) override;
  absl::StatusOr<CommitOutcome> TakeOver(uint32_t partition, const std::string& address,
                                         uint64_t expected) override;
  absl::StatusOr<uint64_t> LastSequence(uint32_t partition) override;
  absl::StatusOr<std::unique_ptr<JournalTail>> Tail(uint32_t partition, uint64_t after) override;
  absl::Status Sync() override { return absl::OkStatus(); }
  absl::StatusOr<std::unique_ptr<StoredModel>> Load(uint64_t model_id) override;
  absl::StatusOr<CommittedState> LoadCommittedState(uint64_t model_id) override;
  absl::StatusOr<storage::Counters> LoadCounters(uint64_t model_id) override;
  absl::Status Replay(uint64_t model_id, uint64_t after_revision,
                      const ReplayCallback& replay) override;
  absl::StatusOr<std::optional<storage::Snapshot>> LoadSnapshot(uint64_t model_id) override;
  absl::Status SaveSnapshot(uint64_t model_id, const storage::Snapshot& snapshot) override;
  absl::StatusOr<storage::History> LoadHistory(uint64_t model_id) override;
  absl::Status DropAfter(uint64_t model_id, uint64_t revision) override;
  absl::Status Announce(absl::string_view message) override;
  void Listen(std::function<void(absl::string_view message)> listener) override;
  void WatchModels(ModelWatcher watcher) override;
  // The journal ends with the process, and its models' uids with it.
  std::string HistoryId() override { return "memory"; }
  std::string Id() override { return "memory"; }

 private:
  struct ModelData {
    storage::Counters counters;
    std::map<std::string, storage::ProducerPosition> positions;
    // By the revision that each ends at.
    std::map<uint64_t, std::shared_ptr<const storage::UpdateRecord>> records;
    std::shared_ptr<const storage::Snapshot> snapshot;
    // By KeptSnapshot.number and .epoch.
    std::map<std::pair<uint64_t, int64_t>, std::shared_ptr<const storage::Snapshot>> kept;
  };
  class Stored;
  struct Partition {
    uint64_t last_sequence = 0;
    // Of the last TakeOver; 0: there was none.
    int64_t epoch = 0;
    std::shared_ptr<RecentEntries> recent;
  };
  // What all openers have.
  struct Shared {
    explicit Shared(const Options& options);
    // OK without a guard.
    absl::Status Ask(const ModelGuard& guard) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

    const uint32_t partition_count;
    Mutex mutex;
    uint64_t last_id ABSL_GUARDED_BY(mutex) = 0;
    std::map<std::string, storage::ModelHeader, std::less<>> headers ABSL_GUARDED_BY(mutex);
    std::map<uint64_t, ModelData> models ABSL_GUARDED_BY(mutex);
    // Changed under mutex.
    AliasMap aliases;
    std::vector<Partition> partitions ABSL_GUARDED_BY(mutex);
    // Held while one of them is called.
    Mutex listeners_mutex;
    std::map<const MemoryJournal*, std::function<void(absl::string_view)>> listeners
        ABSL_GUARDED_BY(listeners_mutex);
    std::map<const MemoryJournal*, ModelWatcher> watchers ABSL_GUARDED_BY(listeners_mutex);
  };

  explicit MemoryJournal(std::shared_ptr<Shared> shared)
      : shared_(std::move(shared)),
        own_writes_(shared_->partition_count),
        own_epochs_(shared_->partition_count) {}

  absl::Status CreateModel(storage::ModelHeader& header, const ModelGuard& guard) override;
  absl::Status DeleteModel(absl::string_view name, const ModelGuard& guard) override;
  absl::Status CreateLearned(storage::ModelHeader& header, const storage::Snapshot& snapshot,
                             const CommittedState& committed, const ModelGuard& guard) override;
  void TellWatchers(const storage::ModelHeader& header, bool deleted);

  const std::shared_ptr<Shared> shared_;
  // By partition: the sequence number of this opener's last entry; 0: it has none.
  std::vector<uint64_t> own_writes_ ABSL_GUARDED_BY(shared_->mutex);
  // By partition: of this opener's last TakeOver; 0: there was none.
  std::vector<int64_t> own_epochs_ ABSL_GUARDED_BY(shared_->mutex);
};

}  // namespace perceptrond
