// The aliases of models as they are known here, in memory: they are asked for with each message.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/sync/mutex.h"
#include "perceptron/storage/v1/fleet.pb.h"

namespace perceptrond {

using ::perceptron::v1::Alias;

// Thread contract: safe for any number of threads.
class AliasMap {
 public:
  // Takes no lock.
  bool empty() const { return size() == 0; }
  size_t size() const { return size_.load(std::memory_order_acquire); }
  std::optional<Alias> Find(absl::string_view name) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Of the model that the alias names: its full name.
  std::optional<std::string> ModelOf(absl::string_view name) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The aliases of this model. O(aliases).
  std::vector<Alias> AllOf(absl::string_view model) const ABSL_LOCKS_EXCLUDED(mutex_);
  // ABORTED unless the alias of this name has this etag; empty: unless there is none.
  absl::Status CheckEtag(absl::string_view name, absl::string_view etag) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // At most `limit` aliases in ascending order of their names, from the first after `after` ("":
  // from the first).
  std::vector<Alias> List(absl::string_view after, size_t limit) const ABSL_LOCKS_EXCLUDED(mutex_);

  void Put(const Alias& alias) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(absl::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  std::map<std::string, Alias, std::less<>> aliases_ ABSL_GUARDED_BY(mutex_);
  std::atomic<size_t> size_ = 0;
};

}  // namespace perceptrond
