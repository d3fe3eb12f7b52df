// All the models there are: on disk by their names, in memory while they are used.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/journal/journal.h"
#include "core/model/committer.h"
#include "core/model/model.h"
#include "core/model/open_streams.h"
#include "core/sync/mutex.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond {

class Snapshotter;

// One model as it is seen from outside: its stored settings and what it has become.
struct ModelSummary {
  // Settings and state; report, revision and weights are not set.
  ::perceptron::v1::Model settings;
  ConvergenceReport report;
  uint64_t revision = 0;
  // Absent: not in memory, and so not known.
  std::optional<Model::JournalUse> journal;
  size_t memory_bytes = 0;
  // Absent: not in memory.
  std::optional<RetentionStatistics> retained;
  // False: taken from the journal's counters; its window, norm and what depends on them are not
  // known.
  bool in_memory = false;
};

// Thread contract: safe for any number of threads. A model stays in memory while anybody holds it;
// one that nobody holds may leave at any time, and comes back by Acquire as it was.
//
// Every method may also answer UNAVAILABLE (JOURNAL_UNAVAILABLE) or DATA_LOSS (JOURNAL_CORRUPT).
class Store {
 public:
  struct Options {
    Committer::Options committer;
    Model::Limits limits;
    // The models in memory may take so many bytes; the least recently used leave first. Models in
    // use stay, whatever they take.
    size_t memory_budget = size_t{1} << 30;
    // A model is snapshot when its journal has grown by this, and by the size of its weights and
    // names.
    uint64_t snapshot_bytes = 4 << 20;
    // Told of each model whose updates could not be written, from any thread: for the log.
    std::function<void(const std::string& name, const absl::Status& why)> on_write_failure;
    // Told of each model that is damaged in the journal, when it is first asked for: until it has
    // been loaded again, once.
    std::function<void(const std::string& name, const absl::Status& why)> on_damage;
    // Told of each model that could not be snapshot; its records stay, and it is tried again.
    std::function<void(const std::string& name, const absl::Status& why)> on_snapshot_failure;
  };
  struct Stats {
    uint64_t commits = 0;
    uint64_t commit_failures = 0;
    absl::Duration commit_busy;
    absl::Duration oldest_commit_wait;
    uint64_t loads = 0;
    uint64_t evictions = 0;
    uint64_t snapshots = 0;
    uint64_t snapshot_failures = 0;
    uint64_t models_in_memory = 0;
    uint64_t memory_bytes = 0;
  };

  Store(std::unique_ptr<Journal> journal, const Options& options);
  // Everything submitted is answered first. Nobody may hold a model any more.
  ~Store();

  // Creates a model; `settings` has its name. With validate_only only says what would be created.
  // A composition's components must be there: CheckComponents (core/model/components.h).
  // ALREADY_EXISTS (MODEL_EXISTS), unless request_id is not empty and created the one there is.
  // INVALID_ARGUMENT.
  absl::StatusOr<::perceptron::v1::Model> Create(::perceptron::v1::Model settings,
                                                 const std::string& request_id, bool validate_only);
  // Changes settings by `change`, which may refuse. A non-empty etag must match: ABORTED
  // (ETAG_MISMATCH). NOT_FOUND.
  absl::StatusOr<::perceptron::v1::Model> Change(
      absl::string_view name, absl::string_view etag, bool validate_only,
      const std::function<absl::Status(::perceptron::v1::Model&)>& change);
  // NOT_FOUND, ABORTED, FAILED_PRECONDITION (MODEL_IN_USE) for a component. Whoever holds the model
  // learns that it is closed, and its open streams that they end.
  absl::Status Delete(absl::string_view name, absl::string_view etag, bool validate_only);

  // The model, loaded if need be: concurrent callers wait for one load. NOT_FOUND.
  absl::StatusOr<std::shared_ptr<Model>> Acquire(absl::string_view name)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // NOT_FOUND. Loads the model.
  absl::StatusOr<ModelSummary> Get(absl::string_view name);
  // At most `limit` models behind `after` in the order of their names, their starting weights left
  // empty. Loads none.
  absl::StatusOr<std::vector<ModelSummary>> List(absl::string_view after, size_t limit);

  // What List says of one model. Loads nothing, and is no use of the model. NOT_FOUND.
  absl::StatusOr<ModelSummary> GetSummary(absl::string_view name);
  // The model if it is in memory, else null. No use of the model.
  std::shared_ptr<Model> GetIfLoaded(absl::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);
  // Of the models behind `after`, in the order of their names, those that are `wanted` by their
  // settings, as List gives them: until there are `limit` of them, or `most_read` models were
  // looked at. Loads none. O(models looked at).
  struct Found {
    std::vector<ModelSummary> models;
    // The last one looked at, to go on behind; empty: there is none behind it.
    std::string next;
  };
  absl::StatusOr<Found> Search(absl::string_view after, size_t limit, size_t most_read,
                               const std::function<bool(const ::perceptron::v1::Model&)>& wanted);

  // How many models there are. O(models) the first time, then O(1).
  absl::StatusOr<uint64_t> Count();

  Committer& committer() { return *committer_; }
  OpenStreams& streams() { return streams_; }
  Stats stats() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t memory_budget() const { return options_.memory_budget; }

 private:
  struct Slot {
    // Null while it is being loaded.
    std::shared_ptr<Model> model;
    size_t bytes = 0;
    // In lru_, most recently used first.
    std::list<std::string>::iterator place;
  };

  absl::StatusOr<::perceptron::v1::Model> ChangeHeader(
      absl::string_view name, absl::string_view etag, bool validate_only,
      const std::function<absl::Status(::perceptron::v1::Model&)>& change)
      ABSL_LOCKS_EXCLUDED(headers_mutex_);
  absl::Status DeleteModel(absl::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(headers_mutex_);
  void AddToCount(int difference) ABSL_LOCKS_EXCLUDED(count_mutex_);
  absl::StatusOr<std::shared_ptr<Model>> Load(absl::string_view name);
  // Takes its place back. Returns why.
  absl::Status LoadFailed(const std::string& name, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Lets go of models that nobody holds until the rest fits.
  void Evict() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whoever is loading the model has it, or failed.
  void AwaitLoaded(absl::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Closes and takes out whatever is in memory under the name of a model that was deleted.
  void CloseAndRemove(absl::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<ModelSummary> Summarize(const storage::ModelHeader& header, bool load_components);
  // As List gives it.
  absl::StatusOr<ModelSummary> SummarizeForList(const storage::ModelHeader& header);
  void SaveSamples() ABSL_LOCKS_EXCLUDED(mutex_);
  void OnCommitFailure(Model& model, const absl::Status& why);
  void OnCommit(const std::shared_ptr<Model>& model);

  const Options options_;
  const std::unique_ptr<Journal> journal_;
  OpenStreams streams_;

  // Headers change one at a time.
  Mutex headers_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  // Of all models; not known before it was asked for. Not under headers_mutex_, which a deletion
  // may hold for long: whoever scrapes metrics does not wait for it.
  Mutex count_mutex_ ABSL_ACQUIRED_AFTER(headers_mutex_);
  std::optional<uint64_t> count_ ABSL_GUARDED_BY(count_mutex_);
  mutable Mutex mutex_;
  absl::flat_hash_map<std::string, Slot> slots_ ABSL_GUARDED_BY(mutex_);
  std::list<std::string> lru_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  Stats stats_ ABSL_GUARDED_BY(mutex_);
  // Models whose last write failed: what it may have left behind goes before they are loaded.
  absl::flat_hash_set<uint64_t> doubtful_ ABSL_GUARDED_BY(mutex_);
  // Names of models that on_damage was told of; of more than 1000 it is told no more.
  absl::flat_hash_set<std::string> damaged_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<Committer> committer_;
  std::unique_ptr<Snapshotter> snapshotter_;
};

}  // namespace perceptrond
