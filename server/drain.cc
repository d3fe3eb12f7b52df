#include "server/drain.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/time/clock.h"

namespace perceptrond {

void Drain::Add(std::function<void()> listener, uint64_t& id) {
  {
    MutexLock lock(&mutex_);
    id = ++last_id_;
    listeners_.emplace(id, listener);
    if (!draining_) return;
    latest_ = absl::Now();
  }
  listener();
}

void Drain::Remove(uint64_t id) {
  MutexLock lock(&mutex_);
  listeners_.erase(id);
}

bool Drain::AwaitAllRemoved(absl::Duration timeout) {
  MutexLock lock(&mutex_);
  const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return listeners_.empty(); };
  return mutex_.AwaitWithTimeout(absl::Condition(&none), timeout);
}

void Drain::Begin() {
  std::vector<std::function<void()>> listeners;
  {
    MutexLock lock(&mutex_);
    draining_ = true;
    for (auto& [id, listener] : listeners_) listeners.push_back(listener);
  }
  // Outside the lock: a listener may end its stream, which removes it. It owns what it uses.
  for (const std::function<void()>& listener : listeners) listener();
}

void Drain::AwaitQuiet(absl::Duration quiet, absl::Duration most) {
  MutexLock lock(&mutex_);
  latest_ = absl::Now();
  const absl::Time until = latest_ + most;
  for (bool newer = true; newer;) {
    const auto added = [this, seen = latest_]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return latest_ > seen; };
    const absl::Time due = std::min(latest_ + quiet, until);
    newer =
        mutex_.AwaitWithTimeout(absl::Condition(&added), due - absl::Now()) && absl::Now() < until;
  }
}

bool Drain::draining() const {
  MutexLock lock(&mutex_);
  return draining_;
}

}  // namespace perceptrond
