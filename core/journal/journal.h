// Where models outlive the process: settings, the examples that caused updates, counters,
// producers' positions, snapshots. Knows nothing of learning. docs/journal.md describes how a model
// is restored.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/journal/backups.h"
#include "perceptron/storage/v1/journal.pb.h"

namespace perceptrond {

namespace storage = ::perceptron::storage::v1;

// One model's part of a commit: a consistent cut. Counters and positions count exactly the same
// examples, and the records hold exactly the updates since the model's previous entry.
struct JournalEntry {
  uint64_t model_id = 0;
  // In order. Empty if the weights did not change: then nothing is added to the log.
  std::vector<storage::UpdateRecord> records;
  storage::Counters counters;
  // The producers that moved since the previous entry.
  std::vector<storage::ProducerPosition> positions;
};

// The revision that a record's last row produced.
inline uint64_t LastRevision(const storage::UpdateRecord& record) {
  return record.first_revision() + record.labels_size() - 1;
}

// The committed state of a model, except for its weights.
struct CommittedState {
  storage::Counters counters;
  std::vector<storage::ProducerPosition> positions;
};

// What an operator should know of a journal.
struct JournalStats {
  // Keys that were on disk once and were missing when the journal was opened.
  uint64_t lost_writes = 0;
  // The machine failed while updates were acknowledged before they were on disk: some may be missing
  // that lost_writes does not count.
  bool may_lack_updates = false;
  // Nothing can be written: why, and what to do. Empty: writes work.
  std::string read_only;
};

// Errors of every method, besides those it names:
//   UNAVAILABLE: the storage cannot be read or written. Nothing of the call took effect; after a
//     failed write it may still appear after a restart.
//   DATA_LOSS: what was read fails its checks.
//   RESOURCE_EXHAUSTED: what was to be written is too large for a record. Nothing took effect.
//
// Thread contract: safe for any number of threads, except that Commit is called by one thread, so
// that entries arrive in order.
class Journal {
 public:
  virtual ~Journal() = default;

  // Adds a model under header.model().name() and sets header.id. Durable on return. ALREADY_EXISTS.
  virtual absl::Status Create(storage::ModelHeader& header) = 0;
  // NOT_FOUND.
  virtual absl::StatusOr<storage::ModelHeader> Find(absl::string_view name) = 0;
  // Overwrites the header of the model with that name and id. Durable on return. NOT_FOUND.
  virtual absl::Status Replace(const storage::ModelHeader& header) = 0;
  // Removes the model and everything about it. Durable on return. NOT_FOUND.
  virtual absl::Status Delete(absl::string_view name) = 0;
  // At most `limit` models in ascending order of their names, from the first after `after` ("":
  // from the first).
  virtual absl::StatusOr<std::vector<storage::ModelHeader>> List(absl::string_view after,
                                                                 size_t limit) = 0;
  // The number of models. O(models).
  virtual absl::StatusOr<uint64_t> Count() = 0;

  // Writes all entries or none. With `sync` they are on disk on return. Without it they survive a
  // failure of the process, but not of the machine.
  virtual absl::Status Commit(std::span<const JournalEntry> entries, bool sync) = 0;
  // Writes to disk what earlier commits wrote without sync.
  virtual absl::Status Sync() = 0;

  // Zero counters and no positions for a model without a commit.
  virtual absl::StatusOr<CommittedState> LoadCommittedState(uint64_t model_id) = 0;
  // The counters alone: one read.
  virtual absl::StatusOr<storage::Counters> LoadCounters(uint64_t model_id) = 0;
  // Calls `replay` for each record that ends after `after_revision`, in order, with its size in
  // bytes. Stops at the first error and returns it.
  virtual absl::Status Replay(
      uint64_t model_id, uint64_t after_revision,
      const std::function<absl::Status(const storage::UpdateRecord&, size_t bytes)>& replay) = 0;

  // Absent if there is none.
  virtual absl::StatusOr<std::optional<storage::Snapshot>> LoadSnapshot(uint64_t model_id) = 0;
  // Replaces the model's snapshot, and drops the records that end at or before its revision, which
  // must have been committed. Atomic: after a crash either the old or the new snapshot is whole,
  // also if both are of one revision.
  virtual absl::Status SaveSnapshot(uint64_t model_id, const storage::Snapshot& snapshot) = 0;
  // Drops records that end after `revision`, which a failed commit may have left.
  virtual absl::Status DropAfter(uint64_t model_id, uint64_t revision) = 0;

  // Names the journal's past. A journal that lost updates which were acknowledged, as one restored
  // from a backup, has another history: what an earlier one acknowledged may not be in it.
  virtual std::string HistoryId() = 0;
  virtual JournalStats Stats() { return {}; }
  // As Backups::Create. FAILED_PRECONDITION for a journal that is not on disk.
  virtual absl::StatusOr<Backup> BackUp(const Backups& backups, uint32_t keep);
};

}  // namespace perceptrond
