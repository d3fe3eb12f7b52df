#include "server/rpc/workers.h"

#include <algorithm>
#include <utility>

#include "core/sync/thread_name.h"

namespace perceptrond {
namespace {

// A call may wait for this many times as long as Limits::max_wait.
constexpr int kInABurst = 10;
constexpr int kIfLarge = 100;

size_t IndexOf(WorkSize size) { return static_cast<size_t>(size); }

size_t AllBut(int threads, int reserved) {
  return static_cast<size_t>(std::max(1, threads - reserved));
}

}  // namespace

Workers::Workers(int threads, const Limits& limits, Clock clock)
    : clock_(clock),
      limits_(limits),
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

std::deque<Workers::Queued>& Workers::QueueOf(Source source, WorkSize size) {
  return queues_[static_cast<size_t>(source)][IndexOf(size)];
}

const std::deque<Workers::Queued>& Workers::CallsOf(WorkSize size) const {
  return queues_[static_cast<size_t>(Source::kCalls)][IndexOf(size)];
}

void Workers::Schedule(WorkSize size, Work work) {
  MutexLock lock(&mutex_);
  Give(Source::kStreams, size, std::move(work));
}

bool Workers::TrySchedule(WorkSize size, Work& work) {
  MutexLock lock(&mutex_);
  if (IsFull(size)) return false;
  Give(Source::kCalls, size, std::move(work));
  return true;
}

void Workers::Give(Source source, WorkSize size, Work work) {
  if (idle_.empty() || !MayRun(size)) {
    const absl::Time now = clock_();
    std::deque<Queued>& queue = QueueOf(source, size);
    if (source == Source::kCalls && queue.empty()) not_empty_since_[IndexOf(size)] = now;
    queue.push_back({std::move(work), now});
    return;
  }
  ++running_[IndexOf(size)];
  Next& idle = *idle_.back();
  idle.work = std::move(work);
  idle.size = size;
  idle.source = source;
  idle.begun = clock_();
  idle_.pop_back();
}

bool Workers::IsFull(WorkSize size) const {
  const std::deque<Queued>& queue = CallsOf(size);
  if (queue.size() >= limits_.max_queued) return true;
  if (queue.size() < kShortQueue * threads_.size()) return false;
  const absl::Time now = clock_();
  const absl::Duration most = MaxWait(size, now);
  return EstimateWait(size) > most || now - queue.front().since > most;
}

absl::Duration Workers::MaxWait(WorkSize size, absl::Time now) const {
  if (size == WorkSize::kManagement) return absl::InfiniteDuration();
  const absl::Duration overload = limits_.max_wait * (size == WorkSize::kLarge ? kIfLarge : 1);
  const absl::Duration burst = overload * kInABurst;
  if (CallsOf(size).empty()) return burst;
  return std::max(overload, burst - (now - not_empty_since_[IndexOf(size)]));
}

absl::Duration Workers::EstimateWait(WorkSize size) const {
  const auto& [calls, turns] = took_;
  absl::Duration each = calls[IndexOf(size)];
  // Before each call a stream may have a turn.
  const auto& streams = queues_[static_cast<size_t>(Source::kStreams)];
  if (!streams[IndexOf(size)].empty()) each += turns[IndexOf(size)];
  return each *
         (static_cast<double>(CallsOf(size).size()) / static_cast<double>(MostThreads(size)));
}

size_t Workers::MostThreads(WorkSize size) const {
  if (size == WorkSize::kManagement) return threads_.size();
  return size == WorkSize::kSmall ? max_other_ : max_large_;
}

bool Workers::MayRun(WorkSize size) const {
  const size_t large = running_[IndexOf(WorkSize::kLarge)];
  const size_t other = large + running_[IndexOf(WorkSize::kSmall)];
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
  const Source other = next_ == Source::kCalls ? Source::kStreams : Source::kCalls;
  std::deque<Queued>* oldest = nullptr;
  const auto look = [&](Source source, WorkSize size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::deque<Queued>& queue = QueueOf(source, size);
    if (queue.empty() || !MayRun(size)) return;
    if (oldest != nullptr && oldest->front().since <= queue.front().since) return;
    oldest = &queue;
    next.size = size;
    next.source = source;
  };
  for (const Source source : {next_, other}) {
    if (oldest == nullptr) look(source, WorkSize::kManagement);
  }
  for (const Source source : {next_, other}) {
    if (oldest != nullptr) break;
    look(source, WorkSize::kSmall);
    look(source, WorkSize::kLarge);
  }
  if (oldest == nullptr) return false;
  if (next.size != WorkSize::kManagement)
    next_ = next.source == Source::kCalls ? Source::kStreams : Source::kCalls;
  next.work = std::move(oldest->front().work);
  next.begun = clock_();
  oldest->pop_front();
  ++running_[IndexOf(next.size)];
  return true;
}

bool Workers::IsLate(WorkSize size, absl::Time since) const {
  const absl::Time now = clock_();
  if (size == WorkSize::kManagement || now - since <= limits_.max_wait) return false;
  MutexLock lock(&mutex_);
  return CallsOf(size).size() > kShortQueue * threads_.size() && now - since > MaxWait(size, now);
}

bool Workers::HasBacklog() const {
  MutexLock lock(&mutex_);
  return std::any_of(queues_.begin(), queues_.end(), [](const auto& queues) {
    return std::any_of(queues.begin(), queues.end(),
                       [](const std::deque<Queued>& queue) { return !queue.empty(); });
  });
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
    absl::Duration& took = took_[static_cast<size_t>(next.source)][IndexOf(next.size)];
    const absl::Duration change = clock_() - next.begun - took;
    took += change * (change > absl::ZeroDuration() ? kLonger : kShorter);
    --running_[IndexOf(next.size)];
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
