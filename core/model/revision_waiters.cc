#include "core/model/revision_waiters.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace perceptrond {

uint64_t RevisionWaiters::Await(uint64_t revision, Callback callback) {
  uint64_t number = 0;
  {
    MutexLock lock(&mutex_);
    number = ++last_number_;
    if (reached() < revision) {
      callbacks_.emplace(std::pair(revision, number), std::move(callback));
      return number;
    }
  }
  callback();
  return number;
}

void RevisionWaiters::Remove(uint64_t revision, uint64_t number) {
  // Destroyed without the lock: it may be the last to hold something.
  decltype(callbacks_)::node_type removed;
  MutexLock lock(&mutex_);
  removed = callbacks_.extract({revision, number});
}

void RevisionWaiters::Reach(uint64_t revision) {
  std::vector<Callback> due;
  {
    MutexLock lock(&mutex_);
    reached_.store(std::max(reached(), revision), std::memory_order_release);
    const auto end = callbacks_.upper_bound({revision, kEnded});
    for (auto it = callbacks_.begin(); it != end; ++it) due.push_back(std::move(it->second));
    callbacks_.erase(callbacks_.begin(), end);
  }
  for (const Callback& callback : due) callback();
}

}  // namespace perceptrond
