#include "server/rpc/workers.h"

#include <utility>

namespace perceptrond {

Workers::Workers(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

Workers::~Workers() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void Workers::Do(Work work) {
  MutexLock lock(&mutex_);
  if (idle_.empty()) return waiting_.push_back(std::move(work));
  *idle_.back() = std::move(work);
  idle_.pop_back();
}

bool Workers::Wanted() const {
  MutexLock lock(&mutex_);
  return !waiting_.empty();
}

size_t Workers::idle() const {
  MutexLock lock(&mutex_);
  return idle_.size();
}

void Workers::Run() {
  while (Work work = Next()) work();
}

Workers::Work Workers::Next() {
  Work work;
  MutexLock lock(&mutex_);
  if (waiting_.empty()) {
    idle_.push_back(&work);
    const auto woken = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return work != nullptr || stopping_;
    };
    mutex_.Await(absl::Condition(&woken));
    // Whoever ends takes no more.
    if (work == nullptr) std::erase(idle_, &work);
  } else {
    work = std::move(waiting_.front());
    waiting_.pop_front();
  }
  return work;
}

}  // namespace perceptrond
