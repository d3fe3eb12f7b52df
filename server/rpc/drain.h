// The end of service: calls under way are finished, streams learn of it, finish what they have
// taken, and go.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "core/sync/mutex.h"

namespace perceptrond {

// Thread contract: safe for any number of threads.
class Drain {
 public:
  // To be called by every call that outlives its handler. Calls `listener` once when draining
  // begins, at once if it has. A call may be under way while Remove returns: the listener must own
  // what it uses.
  // `id`, by which to Remove it, is set before that.
  void Add(std::function<void()> listener, uint64_t& id) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits, for at most so long, until everybody who was added is removed; says whether they are.
  bool AwaitAllRemoved(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);
  void Begin() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until nobody was added for `quiet` from now on, for at most `most`.
  void AwaitQuiet(absl::Duration quiet, absl::Duration most) ABSL_LOCKS_EXCLUDED(mutex_);
  bool draining() const ABSL_LOCKS_EXCLUDED(mutex_);

  // A call that is answered before its handler returns: counted as long as this is there.
  class Visit {
   public:
    explicit Visit(Drain& drain) : drain_(drain) {
      drain_.Add([] {}, id_);
    }
    ~Visit() { drain_.Remove(id_); }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

   private:
    Drain& drain_;
    uint64_t id_ = 0;
  };

 private:
  mutable Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<uint64_t, std::function<void()>> listeners_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond
