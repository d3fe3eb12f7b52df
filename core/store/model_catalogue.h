// The catalogue of models: their settings and states, in the journal, by name.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/journal/journal.h"
#include "core/sync/mutex.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond {

// How a change of a model's settings is requested: see perceptron.v1.UpdateModelRequest.
struct ChangeOptions {
  // Empty: whatever the model's etag.
  absl::string_view etag = {};
  // Names the request among all changes of the model, whatever their kind. Empty: it has no id, and
  // is carried out each time.
  absl::string_view request_id = {};
  bool validate_only = false;
};

// The same for an alias: see perceptron.v1.UpdateAliasRequest.
struct AliasChangeOptions {
  absl::string_view etag = {};
  bool allow_missing = false;
  bool validate_only = false;
};

// What models may be created.
struct CatalogueLimits {
  // The most bytes of weights of a new model.
  uint64_t max_model_bytes = std::numeric_limits<uint64_t>::max();
  // The most models.
  uint64_t max_models = std::numeric_limits<uint64_t>::max();
  // The most dimensions, slots or names that a new model may have.
  uint64_t max_model_features = std::numeric_limits<uint64_t>::max();
};

// Thread contract: safe for any number of threads. Changes are made one at a time; one that another server's change
// of the same header comes before is made again, on what that has made of it. Each method may
// also return UNAVAILABLE (JOURNAL_UNAVAILABLE) or DATA_LOSS (JOURNAL_CORRUPT). What is returned as
// changed is durable.
class ModelCatalogue {
 public:
  // The journal must outlive it.
  ModelCatalogue(Journal& journal, const CatalogueLimits& limits)
      : journal_(journal), limits_(limits) {}

  // NOT_FOUND (MODEL_NOT_FOUND).
  absl::StatusOr<storage::ModelHeader> Find(absl::string_view name);
  // At most `limit` models after `after`, in the order of their names.
  absl::StatusOr<std::vector<storage::ModelHeader>> List(absl::string_view after, size_t limit);
  // Of all servers of a fleet. O(models) the first time, then O(1).
  absl::StatusOr<uint64_t> Count();

  // See Store::Create.
  absl::StatusOr<::perceptron::v1::Model> Create(::perceptron::v1::Model settings,
                                                 const std::string& request_id, bool validate_only)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // See Store::Change.
  absl::StatusOr<::perceptron::v1::Model> Change(
      absl::string_view name, const ChangeOptions& options,
      const std::function<absl::Status(::perceptron::v1::Model&)>& change)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Deletes a model by `remove`, which takes it out of the journal, with this guard, while no other
  // change is made. Returns its uid. Errors as Store::Delete's, and those of `remove`.
  absl::StatusOr<std::string> Delete(absl::string_view name, absl::string_view etag,
                                     bool validate_only,
                                     const std::function<absl::Status(const ModelGuard&)>& remove)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Gives a model another name by `rename`, which takes it out of memory and gives the journal this
  // header instead of the one before while no other change is made here. Returns its settings. NOT_FOUND; ALREADY_EXISTS
  // (MODEL_EXISTS); ABORTED (ETAG_MISMATCH); FAILED_PRECONDITION (MODEL_IN_USE); the error of `rename`.
  absl::StatusOr<::perceptron::v1::Model> Rename(
      absl::string_view name, absl::string_view new_name, absl::string_view etag,
      const std::function<absl::Status(const storage::ModelHeader& renamed,
                                       const storage::ModelHeader& before)>& rename)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds a model with the settings of another, the copy of a state. Returns its settings.
  // ALREADY_EXISTS (MODEL_EXISTS), unless the same non-empty request_id made the one that exists;
  // PERMISSION_DENIED as Store::Create, and for components that the current caller may not read;
  // RESOURCE_EXHAUSTED (MODEL_LIMIT). Other changes are made while the state is written; another copy
  // under this name waits.
  absl::StatusOr<::perceptron::v1::Model> CreateCopy(storage::ModelHeader source,
                                                     absl::string_view new_name,
                                                     const std::string& request_id,
                                                     const storage::Snapshot& snapshot,
                                                     const CommittedState& committed)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Changes what a header says of kept snapshots, by `change`, which may refuse, and is called again with what another
  // server has made of the header meanwhile. NOT_FOUND; the error of `change`.
  absl::Status ChangeKept(absl::string_view name,
                          const std::function<absl::Status(storage::ModelHeader&)>& change)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Notes when the model with that name and id was used last (ModelHeader.last_use_time). NOT_FOUND.
  absl::Status SaveUse(absl::string_view name, uint64_t model_id, absl::Time last_use)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // (core/store/aliases.cc)
  const AliasMap& aliases() const { return journal_.aliases(); }
  // Changes an alias by `change`, which may refuse, and returns it. NOT_FOUND (ALIAS_NOT_FOUND,
  // MODEL_NOT_FOUND: the model that it names then); ABORTED (ETAG_MISMATCH); RESOURCE_EXHAUSTED
  // (ALIAS_LIMIT); INVALID_ARGUMENT; the error of `change`.
  absl::StatusOr<Alias> ChangeAlias(absl::string_view name, const AliasChangeOptions& options,
                                    const std::function<absl::Status(Alias&)>& change)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // NOT_FOUND (ALIAS_NOT_FOUND); ABORTED (ETAG_MISMATCH).
  absl::Status DeleteAlias(absl::string_view name, absl::string_view etag)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Replaces the model's header by what `change` makes of it, unless that returns false. NOT_FOUND; the error of
  // `change`.
  absl::Status ChangeHeader(
      absl::string_view name,
      const std::function<absl::StatusOr<bool>(storage::ModelHeader&)>& change)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // ALREADY_EXISTS (MODEL_EXISTS) if there is a model of that name.
  absl::Status CheckFree(absl::string_view name);
  // FAILED_PRECONDITION (MODEL_IN_USE) if an alias names the model.
  absl::Status CheckNoAlias(absl::string_view name) const;
  // RESOURCE_EXHAUSTED (MODEL_LIMIT) if there is no room for another model.
  absl::Status CheckCount(const ModelsNow& models) const;
  // Waits until no state of the model is being written.
  void AwaitWritten(absl::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes the header of a copy, and adds its name to being_written_. The settings of the one that the same request made:
  // then the name is not added. Errors as CreateCopy's.
  absl::StatusOr<std::optional<::perceptron::v1::Model>> BeginCopy(storage::ModelHeader source,
                                                                   absl::string_view new_name,
                                                                   const std::string& request_id,
                                                                   storage::ModelHeader& header)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether a model with this header may be added to these: RESOURCE_EXHAUSTED (MODEL_LIMIT);
  // NOT_FOUND (COMPONENT_NOT_FOUND).
  absl::Status CheckNew(const ModelsNow& models, const storage::ModelHeader& header) const;

  Journal& journal_;
  const CatalogueLimits limits_;
  // Held by each change, but not while a state is written: a copy's, a kept snapshot's, a rollback's.
  Mutex mutex_;
  // The names of models of which one is being written. Other changes of these models wait.
  absl::flat_hash_set<std::string> being_written_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond
