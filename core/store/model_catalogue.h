// The catalogue of models: their settings and states, in the journal, by name.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
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

// What models may be created.
struct CatalogueLimits {
  // The most bytes of weights of a new model.
  uint64_t max_model_bytes = std::numeric_limits<uint64_t>::max();
  // The most models.
  uint64_t max_models = std::numeric_limits<uint64_t>::max();
  // The most dimensions, slots or names that a new model may have.
  uint64_t max_model_features = std::numeric_limits<uint64_t>::max();
};

// Thread contract: safe for any number of threads. Changes are made one at a time. Each method may
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
  // O(models) the first time, then O(1).
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
  // Deletes a model by `remove`, which takes it out of the journal while no other change is made.
  // Returns its uid. Errors as Store::Delete's, and those of `remove`.
  absl::StatusOr<std::string> Delete(absl::string_view name, absl::string_view etag,
                                     bool validate_only,
                                     const std::function<absl::Status()>& remove)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // RESOURCE_EXHAUSTED (MODEL_LIMIT) if there is no room for another model.
  absl::Status CheckCount() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) ABSL_LOCKS_EXCLUDED(count_mutex_);
  // What Count returns, from the journal if it has not been counted yet.
  absl::StatusOr<uint64_t> CountLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_)
      ABSL_LOCKS_EXCLUDED(count_mutex_);
  void AddToCount(int difference) ABSL_LOCKS_EXCLUDED(count_mutex_);

  Journal& journal_;
  const CatalogueLimits limits_;
  // Held by each change.
  Mutex mutex_;
  // A lock of its own: a deletion may take long, and scrapes of the count do not wait for it.
  Mutex count_mutex_ ABSL_ACQUIRED_AFTER(mutex_);
  // Absent until the first Count.
  std::optional<uint64_t> count_ ABSL_GUARDED_BY(count_mutex_);
};

}  // namespace perceptrond
