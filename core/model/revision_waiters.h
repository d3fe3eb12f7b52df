// Who waits for a copy of a model to take over an update that another server of the fleet has made.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "core/sync/mutex.h"

namespace perceptrond {

// Thread contract: safe for any number of threads.
class RevisionWaiters {
 public:
  // Must not block. What it holds exists until it was called.
  using Callback = std::function<void()>;

  // Calls `callback` once the copy has reached the revision, or Release is called: now, if it has.
  // Returns a number for Remove.
  uint64_t Await(uint64_t revision, Callback callback) ABSL_LOCKS_EXCLUDED(mutex_);
  // Does not call it any more, unless it is being called. No effect if it was.
  void Remove(uint64_t revision, uint64_t number) ABSL_LOCKS_EXCLUDED(mutex_);
  // The copy is at this revision.
  void Reach(uint64_t revision) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends every wait, now and later: the copy takes over no more updates.
  void Release() ABSL_LOCKS_EXCLUDED(mutex_) { Reach(kEnded); }
  // The revision of the last Reach; kEnded after Release. Takes no lock.
  uint64_t reached() const { return reached_.load(std::memory_order_acquire); }

  static constexpr uint64_t kEnded = std::numeric_limits<uint64_t>::max();

 private:
  // Changed under mutex_.
  std::atomic<uint64_t> reached_ = 0;
  Mutex mutex_;
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  // By revision and number.
  std::map<std::pair<uint64_t, uint64_t>, Callback> callbacks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond
