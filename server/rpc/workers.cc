#include "server/rpc/workers.h"

#include <algorithm>
#include <utility>

#include "core/sync/thread_name.h"

namespace perceptrond {
namespace {

size_t QueueOf(WorkSize size) { return static_cast<size_t>(size); }

size_t AllBut(int threads, int reserved) {
  return static_cast<size_t>(std::max(1, threads - reserved));
}

}  // namespace

Workers::Workers(int threads, size_t max_queued, Clock clock)
    : clock_(clock),
      max_queued_(max_queued),
      max_other_(AllBut(threads, 1)),
      max_large_(AllBut(threads, 2)) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

Workers::~Workers() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void Workers::Schedule(WorkSize size, Work work) {
  MutexLock lock(&mutex_);
  Give(size, std::move(work));
}

bool Workers::TrySchedule(WorkSize size, Work& work) {
  MutexLock lock(&mutex_);
  if (IsFull(size)) return false;
  Give(size, std::move(work));
  return true;
}

void Workers::Give(WorkSize size, Work work) {
  if (idle_.empty() || !MayRun(size)) {
    const absl::Time now = clock_();
    if (queues_[QueueOf(size)].empty()) not_empty_since_[QueueOf(size)] = now;
    queues_[QueueOf(size)].push_back({std::move(work), now});
    return;
  }
  ++running_[QueueOf(size)];
  idle_.back()->work = std::move(work);
  idle_.back()->size = size;
  idle_.back()->begun = clock_();
  idle_.pop_back();
}

bool Workers::IsFull(WorkSize size) const {
  const std::deque<Queued>& queue = queues_[QueueOf(size)];
  if (queue.size() >= max_queued_) return true;
  if (queue.size() < kShortQueue * threads_.size()) return false;
  const absl::Time now = clock_();
  const absl::Duration most = MaxWait(size, now);
  return EstimateWait(size) > most || now - queue.front().since > most;
}

absl::Duration Workers::MaxWait(WorkSize size, absl::Time now) const {
  const auto& [burst, overload] = kMaxWaits[QueueOf(size)];
  if (queues_[QueueOf(size)].empty()) return burst;
  return std::max(overload, burst - (now - not_empty_since_[QueueOf(size)]));
}

absl::Duration Workers::EstimateWait(WorkSize size) const {
  const size_t queued = queues_[QueueOf(size)].size();
  return took_[QueueOf(size)] *
         (static_cast<double>(queued) / static_cast<double>(MostThreads(size)));
}

size_t Workers::MostThreads(WorkSize size) const {
  if (size == WorkSize::kManagement) return threads_.size();
  return size == WorkSize::kSmall ? max_other_ : max_large_;
}

bool Workers::MayRun(WorkSize size) const {
  const size_t large = running_[QueueOf(WorkSize::kLarge)];
  const size_t other = large + running_[QueueOf(WorkSize::kSmall)];
  switch (size) {
    case WorkSize::kManagement:
      return true;
    case WorkSize::kSmall:
      return other < max_other_;
    case WorkSize::kLarge:
      return other < max_other_ && large < max_large_;
  }
  return true;
}

bool Workers::Take(Next& next) {
  std::deque<Queued>* oldest = nullptr;
  for (const WorkSize size : {WorkSize::kManagement, WorkSize::kSmall, WorkSize::kLarge}) {
    std::deque<Queued>& queue = queues_[QueueOf(size)];
    if (queue.empty() || !MayRun(size)) continue;
    if (oldest != nullptr && oldest->front().since <= queue.front().since) continue;
    oldest = &queue;
    next.size = size;
    if (size == WorkSize::kManagement) break;
  }
  if (oldest == nullptr) return false;
  next.work = std::move(oldest->front().work);
  next.begun = clock_();
  oldest->pop_front();
  ++running_[QueueOf(next.size)];
  return true;
}

bool Workers::IsLate(WorkSize size, absl::Time since) const {
  const absl::Time now = clock_();
  if (now - since <= kMaxWaits[QueueOf(size)].overload) return false;
  MutexLock lock(&mutex_);
  return queues_[QueueOf(size)].size() > kShortQueue * threads_.size() &&
         now - since > MaxWait(size, now);
}

bool Workers::HasBacklog() const {
  MutexLock lock(&mutex_);
  return std::any_of(queues_.begin(), queues_.end(),
                     [](const std::deque<Queued>& queue) { return !queue.empty(); });
}

size_t Workers::idle() const {
  MutexLock lock(&mutex_);
  return idle_.size();
}

void Workers::Run() {
  NameThisThread("worker");
  for (Next next;;) {
    Await(next);
    if (next.work == nullptr) return;
    next.work();
    // What it holds is released before other threads see this one free.
    next.work = nullptr;
    next.done = true;
  }
}

void Workers::Await(Next& next) {
  MutexLock lock(&mutex_);
  if (std::exchange(next.done, false)) {
    // Falls slowly: what is refused when it is late takes no time.
    constexpr double kLonger = 0.1;
    constexpr double kShorter = 0.01;
    absl::Duration& took = took_[QueueOf(next.size)];
    const absl::Duration change = clock_() - next.begun - took;
    took += change * (change > absl::ZeroDuration() ? kLonger : kShorter);
    --running_[QueueOf(next.size)];
  }
  if (Take(next)) return;
  idle_.push_back(&next);
  const auto woken = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return next.work != nullptr || stopping_;
  };
  mutex_.Await(absl::Condition(&woken));
  // A thread that ends must not receive any more work.
  if (next.work == nullptr) std::erase(idle_, &next);
}

}  // namespace perceptrond
