#include "core/model/revision_waiters.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace perceptrond {

void RevisionWaiters::Await(uint64_t revision, Callback callback) {
  {
    MutexLock lock(&mutex_);
    if (reached() < revision) {
      callbacks_.emplace(revision, std::move(callback));
      return;
    }
  }
  callback();
}

void RevisionWaiters::Reach(uint64_t revision) {
  std::vector<Callback> due;
  {
    MutexLock lock(&mutex_);
    reached_.store(std::max(reached(), revision), std::memory_order_release);
    const auto end = callbacks_.upper_bound(revision);
    for (auto it = callbacks_.begin(); it != end; ++it) due.push_back(std::move(it->second));
    callbacks_.erase(callbacks_.begin(), end);
  }
  for (const Callback& callback : due) callback();
}

}  // namespace perceptrond
