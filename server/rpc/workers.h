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

// Calls and turns of streams have queues of their own and take turns for a thread, so that neither waits
// for all of the other. Within a queue work runs in its order; of two sizes that what waits longest, if
// it may have one more thread; management comes first.
//
// Thread contract: safe for any number of threads.
class Workers {
 public:
  using Work = absl::AnyInvocable<void()>;
  using Clock = absl::Time (*)();

  struct Limits {
    // The most calls that wait for a thread, of each size.
    size_t max_queued = 1024;
    // How long a small call may wait under overload: when calls have not stopped waiting for ten times as
    // long. In a burst, which is shorter, it may wait for ten times as long; a large call for a hundred
    // times as long as a small one. (CoDel, RFC 8289, tells overload from a burst by the same sign.)
    absl::Duration max_wait = absl::Milliseconds(10);
  };

  explicit Workers(int threads) : Workers(threads, Limits()) {}
  Workers(int threads, const Limits& limits, Clock clock = absl::Now);
  // Waits until all scheduled work is done.
  ~Workers();

  // Runs the turn of a stream on one of the threads. Of several idle threads the one that was busy last
  // gets it, since its processor's caches are warm. Streams hold their senders back, so that no more turns
  // wait than there are streams.
  void Schedule(WorkSize size, Work work) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same for a call, unless too much waits: `work` stays as it is, and false is returned. Sheds early:
  // also when the call that is next has waited for longer than it may, or this one would, so that what is
  // accepted keeps its latency.
  bool TrySchedule(WorkSize size, Work& work) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether a call that is about to run, and has waited since then, should be refused instead: for longer
  // than it may, while others wait. It came before a burst had proven to be overload.
  bool IsLate(WorkSize size, absl::Time since) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether work waits for a thread.
  bool HasBacklog() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t size() const { return threads_.size(); }
  // The number of threads that have no work.
  size_t idle() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr size_t kSizes = 3;
  enum class Source : uint8_t { kCalls, kStreams };
  static constexpr size_t kSources = 2;
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
    Source source = Source::kCalls;
    absl::Time begun;
    // Work of this size was done, and is not uncounted yet.
    bool done = false;
  };

  std::deque<Queued>& QueueOf(Source source, WorkSize size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const std::deque<Queued>& CallsOf(WorkSize size) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends a thread's last work and waits for its next; null if the thread must end.
  void Await(Next& next) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes the work that is next; false if none may run.
  bool Take(Next& next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayRun(WorkSize size) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsFull(WorkSize size) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // How long a call may wait: less and less while the queue is not empty.
  absl::Duration MaxWait(WorkSize size, absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // How long a call that comes now would wait, if what is before it takes as long as such work did.
  absl::Duration EstimateWait(WorkSize size) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t MostThreads(WorkSize size) const;
  void Give(Source source, WorkSize size, Work work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock clock_;
  const Limits limits_;
  // The most threads with work that is not kManagement, and with kLarge.
  const size_t max_other_;
  const size_t max_large_;
  mutable Mutex mutex_;
  // By source and size.
  std::array<std::array<std::deque<Queued>, kSizes>, kSources> queues_ ABSL_GUARDED_BY(mutex_);
  // Which of the two sources gets the next thread if both have work.
  Source next_ ABSL_GUARDED_BY(mutex_) = Source::kCalls;
  // By size: when the queue of calls was last empty, if it is not.
  std::array<absl::Time, kSizes> not_empty_since_ ABSL_GUARDED_BY(mutex_) = {};
  // By size: threads with such work.
  std::array<size_t, kSizes> running_ ABSL_GUARDED_BY(mutex_) = {};
  // By source and size: what such work took lately, on average.
  std::array<std::array<absl::Duration, kSizes>, kSources> took_ ABSL_GUARDED_BY(mutex_) = {};
  // Where each idle thread receives its next work; the thread that was busy last is at the end.
  std::vector<Next*> idle_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // The last member, since the threads use all the others.
  std::vector<std::thread> threads_;
};

}  // namespace perceptrond
