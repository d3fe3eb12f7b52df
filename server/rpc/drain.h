// The end of serving: which calls are notified, and which are waited for.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "core/sync/mutex.h"

namespace perceptrond {

// The end of serving: in-flight calls are waited for, and streams are notified so that they finish
// what they have accepted and end. Thread contract: safe for any number of threads.
class Drain {
 public:
  // Registers a call that outlives its handler. Calls `listener` once when draining begins, or at
  // once if it has begun. The listener may still run while Remove returns: it must own what it
  // uses. Sets `id`, which is for Remove, before the listener can run.
  void Add(std::function<void()> listener, uint64_t& id) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Begins draining: notifies all registered calls.
  void Begin() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until all registered calls are removed, for at most `timeout`; returns whether they are.
  bool AwaitAllRemoved(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until no call was registered for `quiet_period`, for at most `timeout`.
  void AwaitQuiet(absl::Duration quiet_period, absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);
  bool draining() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Registers a call without a listener for as long as this object exists.
  class InFlightCall {
   public:
    explicit InFlightCall(Drain& drain) : drain_(drain) {
      drain_.Add([] {}, id_);
    }
    ~InFlightCall() { drain_.Remove(id_); }
    InFlightCall(const InFlightCall&) = delete;
    InFlightCall& operator=(const InFlightCall&) = delete;

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
