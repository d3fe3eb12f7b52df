// Threads for what would keep whoever polls from its queue: what takes long, or waits.
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
  // Waits until all that was given is done.
  ~Workers();

  // In the order given, as threads come free: the one that was busy last is the first, since its
  // processor's caches are warm.
  void Do(Work work) ABSL_LOCKS_EXCLUDED(mutex_);
  // Somebody's work waits for a thread.
  bool Wanted() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t size() const { return threads_.size(); }
  // So many threads have nothing to do.
  size_t idle() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // The next work for a thread; null: it is to end.
  Work Next() ABSL_LOCKS_EXCLUDED(mutex_);

  mutable Mutex mutex_;
  std::deque<Work> waiting_ ABSL_GUARDED_BY(mutex_);
  // Where idle threads look for theirs.
  std::vector<Work*> idle_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // The last member: they use all the others.
  std::vector<std::thread> threads_;
};

}  // namespace perceptrond
