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

void Workers::Schedule(Work work) {
  MutexLock lock(&mutex_);
  if (idle_.empty()) return backlog_.push_back(std::move(work));
  *idle_.back() = std::move(work);
  idle_.pop_back();
}

bool Workers::HasBacklog() const {
  MutexLock lock(&mutex_);
  return !backlog_.empty();
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
  if (backlog_.empty()) {
    idle_.push_back(&work);
    const auto woken = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return work != nullptr || stopping_;
    };
    mutex_.Await(absl::Condition(&woken));
    // A thread that ends must not receive any more work.
    if (work == nullptr) std::erase(idle_, &work);
  } else {
    work = std::move(backlog_.front());
    backlog_.pop_front();
  }
  return work;
}

}  // namespace perceptrond
