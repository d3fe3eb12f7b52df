// A partition of a fleet's models: the entries of each in one stream, its writers, and
// how a model is read back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/journal/jetstream/stream.h"
#include "core/journal/journal.h"
#include "core/sync/mutex.h"
#include "perceptron/storage/v1/fleet.pb.h"

namespace perceptrond::jetstream {

// A model's entries as they are read back, and what is under them.
struct StoredEntries {
  // Absent: there is no snapshot, and the entries begin with the model.
  std::optional<storage::SnapshotHead> head;
  // After the head's, in order.
  std::vector<std::pair<uint64_t, storage::LogEntry>> entries;
  // Of the head's writer; 0 without a head.
  int64_t head_epoch = 0;
  // Counters and positions after the entry with this sequence number, or of the head before it.
  // O(entries).
  CommittedState StateAt(uint64_t sequence) const;
  // The sequence number of the last entry that snapshots up to this revision cover; 0: there is none.
  uint64_t LastCovered(uint64_t revision) const;
  // As Journal::LoadHistory and Replay.
  storage::History GetHistory() const;
  absl::Status Replay(uint64_t after_revision, const ReplayCallback& replay) const;
  uint64_t last_sequence() const {
    return entries.empty() ? (head.has_value() ? head->sequence() : 0) : entries.back().first;
  }
};

// Thread contract: safe for any number of threads.
class Partition {
 public:
  // A message may wait this long for the answer of a majority of the servers.
  static constexpr absl::Duration kTimeout = absl::Seconds(5);

  explicit Partition(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}

  // As Journal's methods, for this partition.
  absl::StatusOr<CommitOutcome> Commit(std::span<const JournalEntry> entries,
                                       std::optional<uint64_t> expected)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<CommitOutcome> TakeOver(const std::string& address, uint64_t expected)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<uint64_t> LastSequence() const { return stream_->LastSequence(); }
  absl::StatusOr<std::unique_ptr<JournalTail>> Tail(uint64_t after) ABSL_LOCKS_EXCLUDED(mutex_);

  // Everything of a model that was committed before this call. `after_revision`: also entries that
  // the snapshot covers and that are held, from the one after that revision at the latest.
  absl::StatusOr<StoredEntries> Read(uint64_t model_id,
                                     std::optional<uint64_t> after_revision = std::nullopt)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The counters of its last entry, by a read or two. Absent if that does not have them alone: it
  // is in parts, of a writer that was superseded, or there is none.
  absl::StatusOr<std::optional<storage::Counters>> LastCounters(uint64_t model_id)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes a snapshot, whose pieces are there, the model's. Returns the sequence number of its head.
  // UNAVAILABLE if this opener is not the writer.
  absl::StatusOr<uint64_t> SetSnapshot(uint64_t model_id, const storage::SnapshotHead& head)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Deletes the model's entries up to the one with the sequence number `last_entry`, and the heads of
  // snapshots before `head`.
  absl::Status DeleteCovered(uint64_t model_id, uint64_t last_entry, uint64_t head);
  // Whether this opener is the writer, as far as it knows.
  bool is_writer() ABSL_LOCKS_EXCLUDED(mutex_) { return own_epoch().has_value(); }
  // Its epoch then.
  std::optional<int64_t> own_epoch() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return own_last_.has_value() ? std::optional(epoch_) : std::nullopt;
  }
  // Whether it is by the take-overs that there are now; false if they cannot be read.
  bool ConfirmWriter() ABSL_LOCKS_EXCLUDED(mutex_);
  // Deletes everything of the model.
  absl::Status Delete(uint64_t model_id);

  const Stream& stream() const { return *stream_; }

  // Whether the writer of `epoch` was the writer when the message with this sequence number came.
  // Reads the take-overs up to it.
  absl::StatusOr<bool> IsValid(int64_t epoch, uint64_t sequence) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::string EntriesOf(uint64_t model_id) const;
  std::string HeadOf(uint64_t model_id) const;
  std::string Writers() const;
  // Appends an entry of the current writer.
  absl::StatusOr<AppendOutcome> Append(std::span<const NewMessage> messages, uint64_t expected)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The last whole message of a subject; absent if there is none.
  absl::StatusOr<std::optional<StreamMessage>> LastWhole(const std::string& subject) const;
  // The take-overs up to this sequence number are in take_overs_.
  absl::Status ReadTakeOvers(uint64_t up_to) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::unique_ptr<Stream> stream_;
  Mutex mutex_;
  // As writer: the epoch, and the sequence number of the last message appended. Absent: it is not.
  std::optional<uint64_t> own_last_ ABSL_GUARDED_BY(mutex_);
  int64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  // Sequence numbers of take-overs, ascending, and up to where they are known.
  std::vector<uint64_t> take_overs_ ABSL_GUARDED_BY(mutex_);
  uint64_t take_overs_known_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace perceptrond::jetstream
