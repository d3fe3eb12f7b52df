#include "server/drain.h"

#include <utility>
#include <vector>

namespace perceptrond {

uint64_t Drain::Add(std::function<void()> listener) {
  {
    MutexLock lock(&mutex_);
    if (!draining_) {
      listeners_.emplace(++last_id_, std::move(listener));
      return last_id_;
    }
  }
  listener();
  return 0;
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
  // Outside the lock: a listener may end its stream, which removes it. It owns what it uses.
  for (const std::function<void()>& listener : listeners) listener();
}

bool Drain::draining() const {
  MutexLock lock(&mutex_);
  return draining_;
}

}  // namespace perceptrond
