// Threads for work that takes long or blocks, and would keep a polling thread from its queue.
#pragma once

#include <cstddef>
#include <deque>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "core/sync/mutex.h"

namespace perceptrond {

// Thread contract: safe for any number of threads.
class Workers {
 public:
  using Work = absl::AnyInvocable<void()>;

  explicit Workers(int threads);
  // Waits until all scheduled work is done.
  ~Workers();

  // Runs `work` on one of the threads, in the order of the calls. Of several idle threads the one
  // that was busy last gets it, since its processor's caches are warm.
  void Schedule(Work work) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether work waits for a thread.
  bool HasBacklog() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t size() const { return threads_.size(); }
  // The number of threads that have no work.
  size_t idle() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for the next work of a thread; null if the thread must end.
  Work Next() ABSL_LOCKS_EXCLUDED(mutex_);

  mutable Mutex mutex_;
  std::deque<Work> backlog_ ABSL_GUARDED_BY(mutex_);
  // Where each idle thread receives its next work; the thread that was busy last is at the end.
  std::vector<Work*> idle_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // The last member, since the threads use all the others.
  std::vector<std::thread> threads_;
};

}  // namespace perceptrond
