// What the status page sorts and filters all models by.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/store/store.h"
#include "core/sync/mutex.h"

namespace perceptrond {

// Prefixes of the full names of the models that the reader may see, in order; absent: all. Others do
// not exist for it.
using ReadablePrefixes = std::optional<std::vector<std::string>>;
// Whether one of the prefixes begins the full name.
bool IsReadable(absl::string_view name, const ReadablePrefixes& readable);

// One model as of the last reading. A figure that is not known is absent.
struct ModelRow {
  // "models/spam".
  std::string name;
  std::string description;
  // "learning", "drifting" and so on (StateName); "no examples", "not in memory" or "unreadable"
  // where the state of convergence is not known, or there is nothing to tell of it.
  std::string state;
  bool in_memory = false;
  bool frozen = false;
  std::optional<uint64_t> examples;
  std::optional<uint64_t> updates;
  std::optional<double> error;
  std::optional<double> window_error;
  // Examples learned per second, over the last seconds that the index was asked for.
  std::optional<double> rate;
};

// Which models to list, and in which order. Conditions hold together.
struct ModelFilter {
  // A part of the name or the description, in upper or lower case (ASCII); empty for all models.
  std::string search;
  // A row's state, "frozen", or "not in memory" for all that are not; empty for all.
  std::string state;
  // The least error over the last 1000 examples; 0 also lists models that have none.
  double min_error = 0;
  // Only models that learned examples in the last seconds.
  bool active = false;
  // "name" (also if empty), "state", "examples", "updates", "error", "window_error" or "rate", and
  // then optionally " desc". States are in the order in which they call for attention: drifting
  // first. Models without the figure come last; those with equal figures in the order of their names.
  std::string order_by;
  ReadablePrefixes readable;
};

// The models of a store with the figures that lists are ordered by. Reads them all when it is asked
// and what it has is old: a second, twenty times as long as reading took, or ten times if models were
// created or deleted since. So it costs nothing without requests, and at most a tenth of a processor
// otherwise. Reading takes what Store::Search does, of a fleet only for models in memory: others
// would have to be read from the database, one by one.
//
// Thread contract: safe for any number of threads, which wait for one another's reading.
class ModelIndex {
 public:
  // The most models that are listed, the first by name.
  static constexpr size_t kMaxModels = 100'000;

  struct Found {
    // In order, at most as many as asked for.
    std::vector<ModelRow> rows;
    // How many models there are in all that match.
    size_t matches = 0;
  };

  // The store must outlive this object. `now` is the clock.
  explicit ModelIndex(Store& store, std::function<absl::Time()> now = absl::Now)
      : store_(store), now_(std::move(now)) {}

  // At most `limit` of the models that match, without the first `skip`. INVALID_ARGUMENT for an
  // unknown state or order; errors of Store::Search. O(models).
  absl::StatusOr<Found> Find(const ModelFilter& filter, size_t skip, size_t limit);

 private:
  using Rows = std::vector<ModelRow>;
  // How much a model had learned at the last sample, and how fast it learned up to then.
  struct Activity {
    uint64_t examples = 0;
    std::optional<double> rate;
  };

  absl::StatusOr<std::shared_ptr<const Rows>> Current() ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsOld(absl::Time now, uint64_t models) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Read(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Fills in the rows' rates. ids[i] is the id of rows[i].
  void Sample(absl::Time now, const std::vector<uint64_t>& ids, Rows& rows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Store& store_;
  const std::function<absl::Time()> now_;
  Mutex mutex_;
  // Null before the first reading.
  std::shared_ptr<const Rows> rows_ ABSL_GUARDED_BY(mutex_);
  absl::Time read_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Duration read_took_ ABSL_GUARDED_BY(mutex_);
  uint64_t models_ ABSL_GUARDED_BY(mutex_) = 0;
  // By the models' ids.
  absl::flat_hash_map<uint64_t, Activity> activity_ ABSL_GUARDED_BY(mutex_);
  absl::Time sampled_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace perceptrond
