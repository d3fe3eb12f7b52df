// Where models outlive the process: settings, the examples that caused updates, counters,
// producers' positions, snapshots. Knows nothing of learning. docs/journal.md describes how a model
// is restored.
//
// A journal may be opened by several servers at once. Its models are spread over partitions, and
// the entries of a partition have one order: each has a sequence number above that of the one
// before. An entry may be written on condition that none came since a sequence number, so that of
// several servers that write at the same moment one does, and the others know that they did not.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/journal/alias_map.h"
#include "perceptron/storage/v1/journal.pb.h"

namespace perceptrond {

class Backups;

namespace storage = ::perceptron::storage::v1;

// The revision of a model before the first update by the writer of an epoch.
struct EpochBegin {
  int64_t epoch = 0;
  uint64_t revision = 0;
  bool operator==(const EpochBegin&) const = default;
};

// One model's part of a commit: a consistent cut. Counters and positions count exactly the same
// examples, and the records hold exactly the updates since the model's previous entry.
struct JournalEntry {
  uint64_t model_id = 0;
  // In order. Empty if the weights did not change: then nothing is added to the log.
  std::vector<storage::UpdateRecord> records;
  storage::Counters counters;
  // The producers that moved since the previous entry.
  std::vector<storage::ProducerPosition> positions;
  // KeptPrediction::number of the predictions whose rows are counted since the previous entry: they
  // are dropped with it. Only of a journal that keeps predictions.
  std::vector<uint64_t> learned_predictions = {};
  // The writer's epoch, with its first records. A copy of a model has all epochs of the original.
  std::vector<EpochBegin> epochs = {};
};

// How a commit is written.
struct CommitOptions {
  // The entries are on disk on return. Without it they survive a failure of the process, but not of
  // the machine.
  bool sync = true;
  // Write only if this is the sequence number of the partition's last entry. Absent: only
  // if no other opener has taken the partition over (TakeOver).
  std::optional<uint64_t> expected = std::nullopt;
};

struct CommitOutcome {
  // The entries that were written, from the first: all, unless it is stale.
  size_t written = 0;
  // Someone else has written to the partition: what is not written yet never will be.
  bool stale = false;
  // The sequence number of the last entry written, if any was.
  uint64_t sequence = 0;
  // Set by TakeOver: the writer's epoch.
  int64_t epoch = 0;
};

// An entry as it stands in the journal.
struct SequencedEntry {
  uint64_t sequence = 0;
  // When it was written, by the journal's clock.
  absl::Time time;
  // The epoch of the writer that wrote it; 0: none has taken the partition over.
  int64_t epoch = 0;
  // Set: a writer took the partition over, and `entry` is empty.
  std::optional<storage::TakeOver> take_over;
  JournalEntry entry;
};

// Reads the entries of a partition in their order, those to come as well.
//
// Thread contract: used by one thread at a time.
class JournalTail {
 public:
  virtual ~JournalTail() = default;
  // The entries after the last one returned, as many as there are, up to some MiB. Waits up to `timeout` for the first;
  // none if there is none by then. OUT_OF_RANGE if some of them are no longer held, or the last one returned is not in
  // the log any more: the models must be loaded again. UNAVAILABLE.
  virtual absl::StatusOr<std::vector<SequencedEntry>> Next(absl::Duration timeout) = 0;
  // Of the partition's writer at the last entry returned, or where the tail began; 0: there was none.
  virtual int64_t epoch() const { return 0; }
  // Entries that were there after the last one read, when that was read.
  virtual uint64_t pending() const { return 0; }
};

// The revision that a record's last row produced.
inline uint64_t LastRevision(const storage::UpdateRecord& record) {
  return record.first_revision() + record.labels_size() - 1;
}

// The committed state of a model, except for its weights.
struct CommittedState {
  storage::Counters counters;
  std::vector<storage::ProducerPosition> positions;
  // The sequence number of the last entry that it includes.
  uint64_t sequence = 0;
  // The partition's writer has it. In a journal with one opener it is that of this opening.
  int64_t epoch = 0;
  // The epochs that updated the model, ascending.
  std::vector<EpochBegin> epochs;
};

// Called for each record with its size in bytes.
using ReplayCallback = std::function<absl::Status(const storage::UpdateRecord&, size_t bytes)>;

// A model as the journal has it at one moment. Errors as Journal's.
//
// Thread contract: used by one thread at a time. The journal must outlive it.
class StoredModel {
 public:
  virtual ~StoredModel() = default;
  virtual const CommittedState& committed() const = 0;
  // Absent if there is none. To be called once.
  virtual absl::StatusOr<std::optional<storage::Snapshot>> TakeSnapshot() = 0;
  // Calls `replay` for each record that ends after `after_revision`, in order. Stops at the first
  // error and returns it.
  virtual absl::Status Replay(uint64_t after_revision, const ReplayCallback& replay) = 0;
};

// What an operator should know of a journal.
struct JournalStats {
  // Keys that were on disk once and were missing when the journal was opened.
  uint64_t lost_writes = 0;
  // The machine failed while updates were acknowledged before they were on disk: some may be
  // missing that lost_writes does not count.
  bool may_lack_updates = false;
  // Nothing can be written: why, and what to do. Empty: writes work.
  std::string read_only;
};

struct Backup {
  // Ascends; numbers are not used again.
  uint32_t number = 0;
  absl::Time time;
  // The size of its files, which other backups may share.
  uint64_t bytes = 0;
  // The id of the journal, and the sequence number of the last write that the backup surely has.
  std::string journal_id;
  uint64_t sequence = 0;
  // Files of it are missing or have another size, or its metadata is damaged: only `number` is
  // known.
  bool damaged = false;
};

// How often a change of a model or an alias is tried again that another opener's change came before.
inline constexpr int kMostConflicts = 10;

// Whether the two are equal, however their maps are ordered.
bool IsSame(const storage::ModelHeader& a, const storage::ModelHeader& b);
// The ABORTED of Replace and Rename, the FAILED_PRECONDITION of Delete, and the UNAVAILABLE of who is not the writer.
absl::Status ChangedByAnother(absl::string_view name);
absl::Status NamedBy(absl::string_view alias, absl::string_view name);
absl::Status WrittenByAnother();

// The models that a change is made to, while nothing else changes them.
struct ModelsNow {
  // Null: there is none of that name. Valid until the next call.
  std::function<const storage::ModelHeader*(absl::string_view name)> find;
  // O(models) the first time, then O(1).
  std::function<absl::StatusOr<uint64_t>()> count;
};

// Whether a change may be made, asked with it. Must not call the journal. Empty: it may.
using ModelGuard = std::function<absl::Status(const ModelsNow& models)>;

// Asks a guard of the models that `find` and `count` read. Their errors, but for NOT_FOUND, come before the guard's.
absl::Status AskGuard(
    const ModelGuard& guard,
    const std::function<absl::StatusOr<storage::ModelHeader>(absl::string_view name)>& find,
    std::function<absl::StatusOr<uint64_t>()> count);

// The models of a journal: their headers by name. Any opener may change them.
//
// Errors and thread contract as Journal's.
class ModelHeaders {
 public:
  virtual ~ModelHeaders() = default;

  // Adds a model under its name and sets header.id. Durable on return. ALREADY_EXISTS; the guard's.
  absl::Status Create(storage::ModelHeader& header, const ModelGuard& guard = {}) {
    return CreateModel(header, guard);
  }
  // NOT_FOUND.
  virtual absl::StatusOr<storage::ModelHeader> Find(absl::string_view name) = 0;
  // Overwrites the header of the model with that name and id if it still is `before`, and deletes the snapshots that only
  // `before` keeps. Durable on return. NOT_FOUND; ABORTED: another opener has changed it.
  virtual absl::Status Replace(const storage::ModelHeader& header,
                               const storage::ModelHeader& before) = 0;
  // Removes the model and everything about it. Durable on return. NOT_FOUND; FAILED_PRECONDITION: an
  // alias names it; the guard's.
  absl::Status Delete(absl::string_view name, const ModelGuard& guard = {}) {
    return DeleteModel(name, guard);
  }
  // Replaces a header by one with another name, which the aliases of the model name from then on. Durable on return.
  // NOT_FOUND; ALREADY_EXISTS; ABORTED as Replace.
  virtual absl::Status Rename(const storage::ModelHeader& header,
                              const storage::ModelHeader& before) = 0;
  // At most `limit` models in ascending order of their names, from the first after `after` ("":
  // from the first).
  virtual absl::StatusOr<std::vector<storage::ModelHeader>> List(absl::string_view after,
                                                                 size_t limit) = 0;
  // The number of models, as this opener has read the names. O(models) the first time, then O(1).
  virtual absl::StatusOr<uint64_t> Count() = 0;
  // From now on `watcher` is called for each change of a model by another opener, soon after it was made, in order, on any
  // thread, with the header as it is now, or was when the model was deleted. null: no watcher from now on, and no call of
  // one is running on return. It must not call the journal.
  using ModelWatcher = std::function<void(const storage::ModelHeader& header, bool deleted)>;
  virtual void WatchModels(ModelWatcher watcher) = 0;
  // From now on lists and counts have what other openers changed before.
  virtual absl::Status Refresh() = 0;

 protected:
  virtual absl::Status CreateModel(storage::ModelHeader& header, const ModelGuard& guard) = 0;
  virtual absl::Status DeleteModel(absl::string_view name, const ModelGuard& guard) = 0;
};

// The aliases of models. Any opener may change them.
//
// Errors and thread contract as Journal's.
class ModelAliases {
 public:
  virtual ~ModelAliases() = default;

  // Those that are known here: a change by another opener soon after it was made.
  virtual const AliasMap& aliases() const = 0;
  // Writes an alias if the one of its name has this etag now; empty: if there is none. Durable on
  // return. ABORTED; NOT_FOUND: there is no model that it names.
  virtual absl::Status PutAlias(const Alias& alias, absl::string_view etag) = 0;
  // Removes an alias that has this etag now. Durable on return. ABORTED.
  virtual absl::Status DeleteAlias(absl::string_view name, absl::string_view etag) = 0;
};

// The snapshots that users keep: the pieces of each, by the model's id, KeptSnapshot.number and .epoch. The header says
// which there are.
//
// Errors and thread contract as Journal's.
class KeptSnapshots {
 public:
  virtual ~KeptSnapshots() = default;

  // Saves one with the number kept.number() and sets its epoch and part_bytes. Durable on return. Replaces what this
  // opener has saved under that number, and leaves what another one has. UNAVAILABLE: this one is not the writer.
  virtual absl::Status SaveKept(uint64_t model_id, const storage::Snapshot& snapshot,
                                storage::KeptSnapshot& kept) = 0;
  virtual absl::StatusOr<storage::Snapshot> LoadKept(uint64_t model_id,
                                                     const storage::KeptSnapshot& kept) = 0;
};

// A prediction that waits for its label.
struct KeptPrediction {
  // Ascends with time. Unique within its model.
  uint64_t number = 0;
  // What makes its id hard to guess.
  uint64_t nonce = 0;
  // The features, as a perceptron.v1.Example.
  std::string example;
};

// Predictions that wait for their labels, of the models that have them kept (StoredPredictions.durable). What is written
// survives the end of the process, and that of the machine once a later write was synced.
//
// Errors and thread contract as Journal's.
class KeptPredictions {
 public:
  virtual ~KeptPredictions() = default;

  // True if the journal keeps predictions; if not, there are none to be saved.
  virtual bool keeps_predictions() const = 0;
  virtual absl::Status SavePredictions(uint64_t model_id,
                                       std::span<const KeptPrediction> predictions) = 0;
  // Of predictions that expired. Those that were learned are dropped by a commit, so that an id is
  // known after a crash if, and only if, its row is not learned (JournalEntry::learned_predictions).
  virtual absl::Status DropPredictions(uint64_t model_id, std::span<const uint64_t> numbers) = 0;
  // By ascending number.
  virtual absl::StatusOr<std::vector<KeptPrediction>> LoadPredictions(uint64_t model_id) = 0;
};

// The entries of a journal, by partition, and who writes them.
//
// Errors and thread contract as Journal's.
class PartitionLog {
 public:
  virtual ~PartitionLog() = default;

  // The partitions, numbered from 0.
  virtual uint32_t partitions() const = 0;
  // The partition of a model.
  uint32_t PartitionOf(uint64_t model_id) const {
    return static_cast<uint32_t>(model_id % partitions());
  }
  // Writes the entries, at least one, of models of one partition, in their order. UNKNOWN: whether some were written is
  // not known, and they may still be, until the partition is taken over: the model in memory is of no use then, and what
  // it is can be loaded after a TakeOver.
  virtual absl::StatusOr<CommitOutcome> Commit(std::span<const JournalEntry> entries,
                                               const CommitOptions& options) = 0;
  // Makes this opener the partition's writer if `expected` is its last sequence number. The previous writer's later
  // appends are refused. Of several servers that try at once one succeeds. An epoch is the time of the take-over in
  // microseconds since 1970, or one above the epoch before if that is more: a log that went back to an older copy gives
  // none again. UNKNOWN as Commit's. FAILED_PRECONDITION for a journal that has one opener, whose epoch is the opening's.
  virtual absl::StatusOr<CommitOutcome> TakeOver(uint32_t partition, const std::string& address,
                                                 uint64_t expected) = 0;
  // Returns whether this opener still is the partition's writer, by a commit: a read succeeds also on a primary that
  // another one has replaced.
  virtual absl::StatusOr<bool> ConfirmWriter(uint32_t partition) = 0;
  // The sequence number of the partition's last entry, or one below the first if it never had one.
  virtual absl::StatusOr<uint64_t> LastSequence(uint32_t partition) = 0;
  // The entries after this sequence number. OUT_OF_RANGE if the log ends before it.
  virtual absl::StatusOr<std::unique_ptr<JournalTail>> Tail(uint32_t partition, uint64_t after) = 0;
  // Writes to disk what earlier commits wrote without sync.
  virtual absl::Status Sync() = 0;
  // Reads what no restoration of a model reads, and checks it: DATA_LOSS. O(journal).
  virtual absl::Status Verify() = 0;
  // Nothing waits for the storage from now on: what does gets an error. For the end of a journal whose storage does not
  // answer.
  virtual void Close() = 0;
  // Deletes what no model has in the partitions that this opener writes: failed deletions and unfinished copies leave it.
  virtual absl::Status Sweep() = 0;
  // Passes a small message to the other openers that listen at this moment. It may be lost.
  virtual absl::Status Announce(absl::string_view message) = 0;
  // From now on `listener` gets the announcements of others, on any thread, one at a time. null: no
  // listener from now on, and no call of one is running on return. It must not call the journal.
  virtual void Listen(std::function<void(absl::string_view message)> listener) = 0;
};

// Whose copy a journal becomes that is opened for an import.
struct ImportOptions {
  // The Journal::Id of the original.
  std::string id;
};

// A journal becomes the copy of another.
//
// Errors and thread contract as Journal's.
class Import {
 public:
  virtual ~Import() = default;

  // Nobody else writes to the journal from now on. FAILED_PRECONDITION: others have it open.
  virtual absl::Status ExcludeOthers() = 0;
  // To be called first, of a journal opened with ImportOptions. Until FinishImport no server can open it without them, also
  // after a crash. FAILED_PRECONDITION: it has models that are not of such a beginning, or others have it open.
  virtual absl::Status BeginImport() = 0;
  // The journal is whole. Durable on return.
  virtual absl::Status FinishImport() = 0;
};

// Errors of every method, besides those it names:
//   UNAVAILABLE: the storage cannot be read or written. Nothing of the call took effect; after a
//     failed write it may still appear after a restart.
//   DATA_LOSS: what was read fails its checks.
//   RESOURCE_EXHAUSTED: what was to be written is too large for a record. Nothing took effect.
//
// Thread contract: safe for any number of threads. Who writes the entries of a model keeps them in
// order.
class Journal : public ModelHeaders,
                public ModelAliases,
                public KeptSnapshots,
                public KeptPredictions,
                public PartitionLog,
                public Import {
 public:
  // Adds a model as Create does, which has learned: with this state at the revision of its counters. After a crash it is
  // whole, or not there. UNAVAILABLE if this opener writes no partition.
  absl::Status CreateWith(storage::ModelHeader& header, const storage::Snapshot& snapshot,
                          const CommittedState& committed, const ModelGuard& guard = {}) {
    return CreateLearned(header, snapshot, committed, guard);
  }
  // The model as it is now, without what is committed from now on.
  virtual absl::StatusOr<std::unique_ptr<StoredModel>> Load(uint64_t model_id) = 0;
  // The parts of it. Zero counters and no positions for a model without a commit.
  virtual absl::StatusOr<CommittedState> LoadCommittedState(uint64_t model_id) = 0;
  // The counters alone, by a read or two where entries are small.
  virtual absl::StatusOr<storage::Counters> LoadCounters(uint64_t model_id) = 0;
  // As StoredModel::Replay, also of records that the snapshot covers and the journal holds: those
  // after History::begin.
  virtual absl::Status Replay(uint64_t model_id, uint64_t after_revision,
                              const ReplayCallback& replay) = 0;

  // Absent if there is none.
  virtual absl::StatusOr<std::optional<storage::Snapshot>> LoadSnapshot(uint64_t model_id) = 0;
  // Replaces the model's snapshot, and drops the records that end at or before its revision, which
  // must have been committed, or with snapshot.history() at or before where that begins. Atomic: after a crash either the old or the new snapshot is whole,
  // also if both are of one revision.
  virtual absl::Status SaveSnapshot(uint64_t model_id, const storage::Snapshot& snapshot) = 0;
  // The history that the current snapshot was saved with; one that begins at its revision if there is
  // none, and at 0 without a snapshot.
  virtual absl::StatusOr<storage::History> LoadHistory(uint64_t model_id) = 0;
  // Drops records that end after `revision`, which a failed commit may have left.
  virtual absl::Status DropAfter(uint64_t model_id, uint64_t revision) = 0;

  // Names the journal, and its copies.
  virtual std::string Id() = 0;
  virtual JournalStats Stats() = 0;
  // Does what Backups::Create does. FAILED_PRECONDITION: the journal is not in a directory.
  virtual absl::StatusOr<Backup> BackUp(const Backups& backups, uint32_t keep) = 0;

 protected:
  virtual absl::Status CreateLearned(storage::ModelHeader& header,
                                     const storage::Snapshot& snapshot,
                                     const CommittedState& committed, const ModelGuard& guard) = 0;
};

}  // namespace perceptrond
