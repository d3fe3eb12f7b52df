// The end of service: streams learn of it, finish what they have taken, and go.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/container/flat_hash_map.h"
#include "core/sync/mutex.h"

namespace perceptrond {

// Thread contract: safe for any number of threads.
class Drain {
 public:
  // Calls `listener` once when draining begins, at once if it has. A call may be under way while
  // Remove returns: the listener must own what it uses.
  uint64_t Add(std::function<void()> listener) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  void Begin() ABSL_LOCKS_EXCLUDED(mutex_);
  bool draining() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<uint64_t, std::function<void()>> listeners_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond
