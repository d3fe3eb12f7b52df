#include "server/drain.h"

#include <utility>
#include <vector>

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

bool Drain::draining() const {
  MutexLock lock(&mutex_);
  return draining_;
}

}  // namespace perceptrond
