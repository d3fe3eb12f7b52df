// A journal in memory: for models that need not outlive the process, and for tests.
#pragma once

#include <map>
#include <memory>

#include "core/journal/journal.h"
#include "core/sync/mutex.h"

namespace perceptrond {

class MemoryJournal final : public Journal {
 public:
  absl::Status Create(storage::ModelHeader& header) override;
  absl::StatusOr<storage::ModelHeader> Find(absl::string_view name) override;
  absl::Status Replace(const storage::ModelHeader& header) override;
  absl::Status Delete(absl::string_view name) override;
  absl::StatusOr<std::vector<storage::ModelHeader>> List(absl::string_view after,
                                                         size_t limit) override;
  absl::StatusOr<uint64_t> Count() override;
  absl::Status Commit(std::span<const JournalEntry> entries, bool sync) override;
  absl::Status Sync() override { return absl::OkStatus(); }
  absl::StatusOr<CommittedState> LoadCommittedState(uint64_t model_id) override;
  absl::StatusOr<storage::Counters> LoadCounters(uint64_t model_id) override;
  absl::Status Replay(uint64_t model_id, uint64_t after_revision,
                      const std::function<absl::Status(const storage::UpdateRecord&, size_t bytes)>&
                          replay) override;
  absl::StatusOr<std::optional<storage::Snapshot>> LoadSnapshot(uint64_t model_id) override;
  absl::Status SaveSnapshot(uint64_t model_id, const storage::Snapshot& snapshot) override;
  absl::Status DropAfter(uint64_t model_id, uint64_t revision) override;
  // The journal ends with the process, and its models' uids with it.
  std::string HistoryId() override { return "memory"; }

 private:
  struct ModelData {
    storage::Counters counters;
    std::map<std::string, storage::ProducerPosition> positions;
    // By the revision that each ends at.
    std::map<uint64_t, std::shared_ptr<const storage::UpdateRecord>> records;
    std::optional<storage::Snapshot> snapshot;
  };

  Mutex mutex_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, storage::ModelHeader, std::less<>> headers_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, ModelData> models_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond
