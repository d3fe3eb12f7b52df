// Where models outlive the process: settings, the examples that caused updates, counters,
// producers' positions, snapshots. Knows nothing of learning. docs/journal.md says how a model is
// rebuilt from it.
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
#include "perceptron/storage/v1/journal.pb.h"

namespace perceptrond {

namespace storage = ::perceptron::storage::v1;

// One model's part of a commit: a consistent cut. The counters and positions count exactly the
// examples up to it, and the records hold exactly the updates since the cut before.
struct JournalEntry {
  uint64_t model_id = 0;
  // In order; none if nothing changed the weights: then nothing is added to the log.
  std::vector<storage::UpdateRecord> records;
  storage::Counters counters;
  // Of the producers that moved since the cut before.
  std::vector<storage::ProducerPosition> positions;
};

// The revision that a record's last row produced.
inline uint64_t LastRevision(const storage::UpdateRecord& record) {
  return record.first_revision() + record.labels_size() - 1;
}

// The latest committed cut of a model, but for its weights.
struct CommittedState {
  storage::Counters counters;
  std::vector<storage::ProducerPosition> positions;
};

// Errors of every method, besides those it names: UNAVAILABLE if the storage cannot be read or
// written (nothing of the call took effect, or, after a failed write, it may yet appear after a
// restart); DATA_LOSS if what is read fails its checks; RESOURCE_EXHAUSTED if what is to be written
// is too large for a record (nothing took effect).
//
// Thread contract: safe for any number of threads; but Commit is called by one thread, so that cuts
// arrive in their order.
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
  // At most `limit` models in ascending order of their names, beginning behind `after` ("" for the
  // first).
  virtual absl::StatusOr<std::vector<storage::ModelHeader>> List(absl::string_view after,
                                                                 size_t limit) = 0;
  // How many models there are. O(models).
  virtual absl::StatusOr<uint64_t> Count() = 0;

  // Writes all entries or none. With `sync` they are on disk on return; without, they survive the
  // process but not the machine's failure.
  virtual absl::Status Commit(std::span<const JournalEntry> entries, bool sync) = 0;
  // Puts on disk whatever earlier commits wrote without sync.
  virtual absl::Status Sync() = 0;

  // Zero counters and no positions for a model that never committed.
  virtual absl::StatusOr<CommittedState> LoadCommittedState(uint64_t model_id) = 0;
  // The counters alone: one read.
  virtual absl::StatusOr<storage::Counters> LoadCounters(uint64_t model_id) = 0;
  // Calls `replay` with each record that ends behind `after_revision`, in order, and with its size
  // in bytes. Stops at the first error and returns it.
  virtual absl::Status Replay(
      uint64_t model_id, uint64_t after_revision,
      const std::function<absl::Status(const storage::UpdateRecord&, size_t bytes)>& replay) = 0;

  virtual absl::StatusOr<std::optional<storage::Snapshot>> LoadSnapshot(uint64_t model_id) = 0;
  // Replaces the model's snapshot and drops the records it makes superfluous: all that end at or
  // before its revision, which must have been committed. Atomic: after a crash either the old or
  // the new snapshot is whole, also if both are of one revision.
  virtual absl::Status SaveSnapshot(uint64_t model_id, const storage::Snapshot& snapshot) = 0;
  // Drops records that end behind `revision`: leftovers of a commit that failed.
  virtual absl::Status DropAfter(uint64_t model_id, uint64_t revision) = 0;
};

}  // namespace perceptrond
