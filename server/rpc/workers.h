// Threads for work that takes long or blocks, and would keep a polling thread from its queue.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/sync/mutex.h"

namespace perceptrond {

// How long work may take, which decides how many threads it may hold at once.
enum class WorkSize : uint8_t {
  // Short, and the server cannot be managed without it: may take every thread.
  kManagement,
  // Some milliseconds: leaves one thread to kManagement.
  kSmall,
  // Up to seconds: leaves one more to kSmall.
  kLarge,
};

// Work of each size runs in the order of its calls. Management comes first; of the other two what
// waits longest, if it may have one more thread. So neither starves, and small work waits for large
// work only while large work of the same age holds its share of the threads.
//
// Thread contract: safe for any number of threads.
class Workers {
 public:
  using Work = absl::AnyInvocable<void()>;
  using Clock = absl::Time (*)();

  // `max_queued`: the most work that TrySchedule lets wait for a thread, of each size.
  explicit Workers(int threads, size_t max_queued = 1024, Clock clock = absl::Now);
  // Waits until all scheduled work is done.
  ~Workers();

  // Runs `work` on one of the threads. Of several idle threads the one that was busy last gets it,
  // since its processor's caches are warm.
  void Schedule(WorkSize size, Work work) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same, unless too much waits: `work` stays as it is, and false is returned. Sheds early: also
  // when the work that is next has waited for longer than MaxWait, or this one would, so that what
  // is accepted keeps its latency.
  bool TrySchedule(WorkSize size, Work& work) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether work that is about to run, and has waited since then, should be refused instead: for
  // longer than MaxWait, while others wait. It came before the queue had not been empty for long.
  bool IsLate(WorkSize size, absl::Time since) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether work waits for a thread.
  bool HasBacklog() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t size() const { return threads_.size(); }
  // The number of threads that have no work.
  size_t idle() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr size_t kSizes = 3;
  // By size, how long work may wait: in a burst, and once its queue has not been empty for as long
  // as that, which is overload (CoDel, RFC 8289, tells the two apart by the same sign).
  struct MaxWaits {
    absl::Duration burst;
    absl::Duration overload;
  };
  static constexpr std::array<MaxWaits, kSizes> kMaxWaits = {{
      {absl::InfiniteDuration(), absl::InfiniteDuration()},
      {absl::Milliseconds(100), absl::Milliseconds(10)},
      {absl::Seconds(5), absl::Seconds(1)},
  }};
  // A queue no longer than this for each thread is none: on a busy machine a thread itself may wait
  // for a processor.
  static constexpr size_t kShortQueue = 2;

  struct Queued {
    Work work;
    absl::Time since;
  };
  // What a thread does next.
  struct Next {
    Work work;
    WorkSize size = WorkSize::kManagement;
    absl::Time begun;
    // Work of this size was done, and is not uncounted yet.
    bool done = false;
  };

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends a thread's last work and waits for its next; null if the thread must end.
  void Await(Next& next) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes the work that is next; false if none may run.
  bool Take(Next& next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayRun(WorkSize size) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsFull(WorkSize size) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Falls from the one to the other of kMaxWaits while the queue is not empty.
  absl::Duration MaxWait(WorkSize size, absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // How long work that comes now would wait, if it takes as long as that before it.
  absl::Duration EstimateWait(WorkSize size) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t MostThreads(WorkSize size) const;
  void Give(WorkSize size, Work work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock clock_;
  const size_t max_queued_;
  // The most threads with work that is not kManagement, and with kLarge.
  const size_t max_other_;
  const size_t max_large_;
  mutable Mutex mutex_;
  std::array<std::deque<Queued>, kSizes> queues_ ABSL_GUARDED_BY(mutex_);
  // By size: when the queue was last empty, if it is not.
  std::array<absl::Time, kSizes> not_empty_since_ ABSL_GUARDED_BY(mutex_) = {};
  // By size: threads with such work.
  std::array<size_t, kSizes> running_ ABSL_GUARDED_BY(mutex_) = {};
  // By size: what such work took lately, on average.
  std::array<absl::Duration, kSizes> took_ ABSL_GUARDED_BY(mutex_) = {};
  // Where each idle thread receives its next work; the thread that was busy last is at the end.
  std::vector<Next*> idle_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // The last member, since the threads use all the others.
  std::vector<std::thread> threads_;
};

}  // namespace perceptrond
