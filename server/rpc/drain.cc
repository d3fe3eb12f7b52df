#include "server/rpc/drain.h"

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
  }
  listener();
}

void Drain::Remove(uint64_t id) {
  MutexLock lock(&mutex_);
  listeners_.erase(id);
}

void Drain::Begin() {
  std::vector<std::function<void()>> listeners;
  {
    MutexLock lock(&mutex_);
    draining_ = true;
    for (auto& [id, listener] : listeners_) listeners.push_back(listener);
  }
  // Not under the lock: a listener may end its stream, which removes it.
  for (const std::function<void()>& listener : listeners) listener();
}

bool Drain::AwaitAllRemoved(absl::Duration timeout) {
  MutexLock lock(&mutex_);
  const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return listeners_.empty(); };
  return mutex_.AwaitWithTimeout(absl::Condition(&none), timeout);
}

void Drain::AwaitQuiet(absl::Duration quiet_period, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  MutexLock lock(&mutex_);
  for (bool another = true; another;) {
    const auto added = [this, last_seen = last_id_]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return last_id_ > last_seen; };
    const absl::Duration left = deadline - absl::Now();
    another = left > absl::ZeroDuration() &&
              mutex_.AwaitWithTimeout(absl::Condition(&added), std::min(quiet_period, left));
  }
}

bool Drain::draining() const {
  MutexLock lock(&mutex_);
  return draining_;
}

}  // namespace perceptrond
