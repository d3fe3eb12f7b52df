// All models of a server: in the journal by name, and in memory while they are used; and how a
// stream holds on to its model from message to message.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/journal/journal.h"
#include "core/memory/memory_budget.h"
#include "core/model/model.h"
#include "core/model/views.h"
#include "core/store/committers.h"
#include "core/store/last_copies.h"
#include "core/store/model_cache.h"
#include "core/store/model_catalogue.h"
#include "core/store/model_expiry.h"
#include "core/store/open_streams.h"
#include "core/store/waiting_predictions.h"
#include "core/sync/mutex.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond {

class Fleet;
class Snapshotter;
struct FleetOptions;

// Thread contract: safe for any number of threads. A model stays in memory while it is held.
// Others may be evicted at any time; Acquire restores it as it was.
//
// Each method may also return UNAVAILABLE (JOURNAL_UNAVAILABLE) or DATA_LOSS (JOURNAL_CORRUPT).
class Store {
 public:
  // Called with a model's name and an error, from any thread.
  using ErrorCallback = std::function<void(const std::string& name, const absl::Status& why)>;

  struct Options {
    Committer::Options committer;
    ModelLimits limits;
    // Bytes that models in memory and data in flight may take. The least recently used models are
    // evicted first; models in use stay, whatever they take.
    size_t memory_budget = size_t{1} << 30;
    // The part of it that is for data in flight alone.
    size_t in_flight_share = 0;
    // The most that data in flight may take.
    size_t max_in_flight = std::numeric_limits<size_t>::max();
    // The most bytes that the models in use may take together: a model that would take more is
    // neither created nor loaded.
    size_t max_model_bytes = std::numeric_limits<size_t>::max();
    // The most models, and the most features that a new one may have.
    uint64_t max_models = std::numeric_limits<uint64_t>::max();
    uint64_t max_model_features = std::numeric_limits<uint64_t>::max();
    // A snapshot is taken when a model's journal has grown by this, and by twice the size of its
    // state.
    uint64_t snapshot_bytes = 4 << 20;
    // The most bytes of update records before its latest snapshot that a model with kept snapshots
    // keeps, to be rolled back to the revisions between them; the oldest are dropped first.
    uint64_t max_history_bytes = uint64_t{256} << 20;
    // Measure how long models are not used; replaceable in tests.
    ModelExpiry::Clocks expiry_clocks;
    // Of a journal that several servers open; null for one of this server alone.
    std::shared_ptr<const FleetOptions> fleet;
    // Where CreateBackup makes backups. Empty: nowhere.
    std::string backup_directory;
    // For the log; each may be null.
    // A model's updates could not be written.
    ErrorCallback on_write_failure;
    // A model in the journal is damaged. Called once until the model has been loaded again.
    ErrorCallback on_damage;
    // A model that takes texts was loaded and was created with this version of ICU, not this server's.
    std::function<void(const std::string& model, const std::string& icu_version)> on_other_icu;
    // A snapshot could not be taken. Its records stay, and it is tried again.
    ErrorCallback on_snapshot_failure;
    // A model was deleted that was not used for its Model.expire_after.
    std::function<void(const std::string& model)> on_expired;
    // It is that of PartitionRole::Hooks.
    std::function<void(uint32_t partition, const absl::Status& why)> on_reload;
    // Another server of the fleet has this one's address: whether this one does not learn for it, and where
    // clients reach the other.
    std::function<void(bool yields, const std::string& client_address)> on_namesake;
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
    // Models deleted because they were not used.
    uint64_t expired = 0;
    uint64_t models_in_memory = 0;
    uint64_t memory_bytes = 0;
  };

  // Which server of the fleet writes what; null without a fleet.
  Fleet* fleet() { return fleet_.get(); }

  Store(std::unique_ptr<Journal> journal, const Options& options);
  // Answers every submitted commit first. No model may be held any more.
  ~Store();

  // Creates a model named settings.name(). With validate_only only returns what would be created. A
  // composition's components must exist: CheckComponents (core/model/composition.h).
  // ALREADY_EXISTS (MODEL_EXISTS), unless the same non-empty request_id created the one that
  // exists, and PERMISSION_DENIED if that is another principal's; INVALID_ARGUMENT;
  // RESOURCE_EXHAUSTED (MODEL_TOO_LARGE, MODEL_LIMIT).
  absl::StatusOr<::perceptron::v1::Model> Create(::perceptron::v1::Model settings,
                                                 const std::string& request_id, bool validate_only);
  // Changes settings by `change`, which may refuse, and returns them. Changes nothing if the latest
  // change had the same request_id, and PERMISSION_DENIED if that is another principal's. NOT_FOUND;
  // ABORTED (ETAG_MISMATCH) if the etag is not empty and not the model's; the error of `change`.
  absl::StatusOr<::perceptron::v1::Model> Change(
      absl::string_view name, const ChangeOptions& options,
      const std::function<absl::Status(::perceptron::v1::Model&)>& change);
  // Deletes a model, closes it, and ends its open streams. NOT_FOUND; ABORTED (ETAG_MISMATCH);
  // FAILED_PRECONDITION (MODEL_IN_USE) for a component.
  absl::Status Delete(absl::string_view name, absl::string_view etag, bool validate_only);

  // The model, loaded if necessary: concurrent callers wait for one load, each until its own work
  // is stopped. NOT_FOUND; RESOURCE_EXHAUSTED (MODEL_TOO_LARGE, OUT_OF_MEMORY); StoppedError
  // (core/error/stopped.h). Loads a model again whose update was cut short by a failed allocation
  // (Ledger::torn).
  absl::StatusOr<std::shared_ptr<Model>> Acquire(absl::string_view name);
  // The model if it is in memory, else null. Does not count as a use.
  std::shared_ptr<Model> GetIfLoaded(absl::string_view name) const { return cache_.Find(name); }

  // The summary of a model, which it loads. NOT_FOUND.
  absl::StatusOr<ModelSummary> Get(absl::string_view name);
  // The same with ListedSettings, and without expire_time: of a model in memory it reads no journal, so that it costs as
  // much however long the label names are.
  absl::StatusOr<ModelSummary> GetReport(absl::string_view name);
  // The summary of a model as lists give it. Loads nothing, and does not count as a use. NOT_FOUND.
  absl::StatusOr<ModelSummary> GetSummary(absl::string_view name);
  // Models in the order of their names.
  struct Found {
    size_t size() const { return models.size() + unreachable.size(); }
    std::vector<ModelSummary> models;
    // The names of models that cannot be read: their journal is damaged, or that of a fleet is out of reach. They have
    // no summary.
    std::vector<std::string> unreachable;
    // The last model read, after which to continue; empty: there are no more.
    std::string next;
  };
  // The models after `after` whose settings are `wanted`: until there are `limit` of them, or
  // `most_read` models were read. Loads none. StoppedError. O(models read).
  absl::StatusOr<Found> Search(absl::string_view after, size_t limit, size_t most_read,
                               const std::function<bool(const ::perceptron::v1::Model&)>& wanted);
  // At most `limit` models after `after`. Loads none.
  absl::StatusOr<Found> List(absl::string_view after, size_t limit) {
    return Search(after, limit, limit, [](const ::perceptron::v1::Model&) { return true; });
  }
  // Names and settings of models, and aliases.
  ModelCatalogue& catalogue() { return catalogue_; }

  // UNAVAILABLE if another server writes the model by now, so that this one may lack its updates. In a fleet it waits for a
  // commit.
  absl::Status ConfirmWriter(const Model& model);
  // See Journal.
  JournalStats journal_stats() const { return journal_->Stats(); }
  // Backs up all models and deletes all backups but the newest `keep`, unless that is 0.
  // StoppedError, which leaves no backup; FAILED_PRECONDITION (BACKUPS_OFF, BACKUP_OF_ANOTHER);
  // UNAVAILABLE (BACKUP_UNAVAILABLE); DATA_LOSS (BACKUP_CORRUPT). The same for the list, oldest first.
  absl::StatusOr<Backup> CreateBackup(uint32_t keep) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::vector<Backup>> ListBackups();

  Committers& committer() { return *committer_; }
  OpenStreams& streams() { return streams_; }
  WaitingPredictions& predictions() { return predictions_; }
  Stats stats() const;
  MemoryBudget& memory() { return memory_; }

 private:
  friend class ModelHandle;
  friend class ModelHistory;

  // As Acquire, to predict only. While a model of a fleet cannot be loaded because the journal is out of reach, the copy
  // that left memory last, if `min_revision` is 0.
  absl::StatusOr<std::shared_ptr<const Model>> AcquireToPredict(absl::string_view name,
                                                                uint64_t min_revision);
  // The copy that predicts while the model cannot be loaded; null if there is none.
  std::shared_ptr<const Model> LastCopyOf(absl::string_view name) const;
  // That copy, or the model if it is loaded; else null.
  std::shared_ptr<const Model> InMemory(absl::string_view name) const;
  // As Acquire, also while a copy predicts.
  absl::StatusOr<std::shared_ptr<Model>> AcquireNow(absl::string_view name);
  absl::Status DeleteLoaded(absl::string_view name, const ModelGuard& guard,
                            const std::function<bool()>& is_in_use = nullptr);
  // Delete, by `remove`.
  absl::Status DeleteBy(absl::string_view name, absl::string_view etag, bool validate_only,
                        const std::function<absl::Status(const ModelGuard&)>& remove);
  // Deletes a model that nobody uses. Also ABORTED if it was used meanwhile.
  absl::Status DeleteExpired(const storage::ModelHeader& header, const std::atomic<bool>& used);
  std::unique_ptr<ModelExpiry> MakeExpiry();
  absl::StatusOr<std::shared_ptr<Model>> Load(absl::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::shared_ptr<Model>> LoadFromJournal(absl::string_view name)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Restores a model whose header was found, and has it follow its writer.
  absl::StatusOr<std::shared_ptr<Model>> Restore(const storage::ModelHeader& header);
  void JoinFleet();
  // Takes models out of memory; with `commit` what they have learned is committed first.
  void Drop(const std::vector<std::shared_ptr<Model>>& models, bool commit,
            const absl::Status& why);
  void OnModelChanged(const storage::ModelHeader& header, bool deleted);
  // Adds which server's state it is.
  void AddWriter(ModelSummary& summary);
  absl::StatusOr<ModelSummary> ListedSummary(const storage::ModelHeader& header);
  // Takes a closed model out of memory; that of a fleet goes on predicting until it is loaded again. `why`: its journal
  // is known to be out of reach, for this reason.
  void RemoveFromMemory(Model& model, const absl::Status& why);
  // Drops what a failed write of the model may have left in the journal.
  absl::Status DropLeftovers(uint64_t model_id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes the samples that are nowhere but in memory.
  void SaveSamples();
  void OnCommitFailure(Model& model, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnCommit(const std::shared_ptr<Model>& model);

  MemoryBudget memory_;
  // With the budget in its limits.
  const Options options_;
  const std::unique_ptr<Journal> journal_;
  OpenStreams streams_;
  WaitingPredictions predictions_;
  ModelCatalogue catalogue_;
  const std::unique_ptr<ModelExpiry> expiry_;
  ModelCache cache_;

  Mutex mutex_;
  // One at a time.
  bool backs_up_ ABSL_GUARDED_BY(mutex_) = false;
  // Models whose last write failed. Its remains are dropped before they are loaded.
  absl::flat_hash_set<uint64_t> failed_ ABSL_GUARDED_BY(mutex_);
  // Names that on_damage was called for.
  absl::flat_hash_set<std::string> damaged_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<Committers> committer_;
  std::unique_ptr<Snapshotter> snapshotter_;
  // Null without a fleet.
  std::unique_ptr<LastCopies> last_copies_;
  std::unique_ptr<Fleet> fleet_;
};

// Finds a model by name. While it stays in memory and open, finding it again takes no lock. Does
// not keep the model in memory between calls, so that idle streams hold no memory; each call counts
// as a use.
//
// Thread contract: not thread-safe.
class ModelHandle {
 public:
  // The store must outlive it.
  explicit ModelHandle(Store& store) : store_(store) {}

  // As Store::Acquire. Returns the model of the last call if it is of that name, in memory and
  // open.
  absl::StatusOr<std::shared_ptr<Model>> Acquire(const std::string& name) {
    if (std::shared_ptr<Model> model = GetIfLoaded(); model != nullptr && name == name_) {
      model->core().used.store(true, std::memory_order_relaxed);
      return model;
    }
    absl::StatusOr<std::shared_ptr<Model>> model = store_.Acquire(name);
    if (model.ok()) {
      name_ = name;
      model_ = *model;
    }
    return model;
  }
  // As Acquire, to predict only. While a model of a fleet cannot be loaded because the journal is out of reach, the copy
  // that left memory last, if `min_revision` is 0.
  absl::StatusOr<std::shared_ptr<const Model>> AcquireToPredict(const std::string& name,
                                                                uint64_t min_revision) {
    if (GetIfLoaded() != nullptr && name == name_) return Acquire(name);
    absl::StatusOr<std::shared_ptr<const Model>> model =
        store_.AcquireToPredict(name, min_revision);
    // One that is loaded is remembered.
    if (model.ok() && (*model)->closed().ok()) (void)Acquire(name);
    return model;
  }
  // What predicts without loading anything: the copy, or the model; null without either.
  static std::shared_ptr<const Model> FindInMemory(const Store& store, absl::string_view name) {
    return store.InMemory(name);
  }
  // The model of the last Acquire if it is still in memory and open, else null. Does not count as a
  // use.
  std::shared_ptr<Model> GetIfLoaded() const {
    std::shared_ptr<Model> model = model_.lock();
    return model != nullptr && model->closed().ok() ? model : nullptr;
  }

 private:
  Store& store_;
  std::string name_;
  std::weak_ptr<Model> model_;
};

}  // namespace perceptrond
