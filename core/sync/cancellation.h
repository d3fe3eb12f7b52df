// How work that takes long is cancelled: by its caller, at a deadline, or with everything else when
// the server stops.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace perceptrond {

enum class StopReason : uint8_t { kNone, kCancelled, kDeadline, kDraining };

// Whether some work should go on. Thread contract: safe for any number of threads.
class CancellationToken {
 public:
  using Clock = std::chrono::steady_clock;

  CancellationToken() = default;
  // `parent`: what stops it stops this, too; must outlive it.
  explicit CancellationToken(const CancellationToken* parent,
                             Clock::time_point deadline = Clock::time_point::max())
      : parent_(parent), deadline_(deadline) {}
  virtual ~CancellationToken() = default;
  CancellationToken(const CancellationToken&) = delete;
  CancellationToken& operator=(const CancellationToken&) = delete;

  // The first reason stays.
  void Cancel(StopReason reason = StopReason::kCancelled) {
    StopReason none = StopReason::kNone;
    reason_.compare_exchange_strong(none, reason, std::memory_order_relaxed);
  }
  // Why the work should stop; kNone: it should go on. Once it should stop, it stays so. Reads the
  // clock if there is a deadline.
  virtual StopReason reason() const {
    if (const StopReason own = reason_.load(std::memory_order_relaxed); own != StopReason::kNone)
      return own;
    if (parent_ != nullptr) {
      if (const StopReason all = parent_->reason(); all != StopReason::kNone) return all;
    }
    return deadline_ != Clock::time_point::max() && Clock::now() >= deadline_
               ? StopReason::kDeadline
               : StopReason::kNone;
  }
  Clock::time_point deadline() const { return deadline_; }
  // To be called before another thread may ask.
  void set_deadline(Clock::time_point deadline) { deadline_ = deadline; }

 private:
  const CancellationToken* const parent_ = nullptr;
  Clock::time_point deadline_ = Clock::time_point::max();
  std::atomic<StopReason> reason_ = StopReason::kNone;
};

namespace cancellation_internal {

// Some milliseconds, of the slowest work that is counted.
inline constexpr size_t kInterval = size_t{1} << 20;

struct ThreadWork {
  // Null: the work is never cancelled.
  const CancellationToken* token = nullptr;
  // The token is asked after this many multiply-adds.
  size_t interval = kInterval;
  // Multiply-adds since it was asked.
  size_t unasked = 0;
  // What the token answered last.
  StopReason stopped = StopReason::kNone;
};
inline constinit thread_local ThreadWork work;

[[gnu::noinline]] inline bool Ask() {
  work.unasked = 0;
  if (work.token != nullptr && work.stopped == StopReason::kNone)
    work.stopped = work.token->reason();
  return work.stopped == StopReason::kNone;
}

}  // namespace cancellation_internal

// Has the calling thread work for `token` while the scope exists, and for what it worked for before
// from then on. Null: what runs in the scope is never cut short, as a change that must be whole.
//
//   const CancellationScope scope(&token);
//   for (const Row& row : rows) {
//     if (!KeepGoing(row.size)) return StoppedError();
//     ...
//   }
//
// The loops find the token through the thread, and not through their arguments, so that a feature
// map or a kernel can be cut short within one row without every learner's methods passing it on.
// What a loop returns after KeepGoing returned false means nothing, though it is sound in memory:
// whoever would use it asks Stopped first (docs/adr/0040-cancellation.md).
class CancellationScope {
 public:
  // The token must outlive the scope. It is asked at once and after each `interval` multiply-adds;
  // tests ask more often.
  explicit CancellationScope(const CancellationToken* token,
                             size_t interval = cancellation_internal::kInterval)
      : before_(cancellation_internal::work) {
    cancellation_internal::work = {token, interval};
    cancellation_internal::Ask();
  }
  ~CancellationScope() { cancellation_internal::work = before_; }
  CancellationScope(const CancellationScope&) = delete;
  CancellationScope& operator=(const CancellationScope&) = delete;

 private:
  const cancellation_internal::ThreadWork before_;
};

// Counts `work` multiply-adds, or as much time. Returns false once the thread's work should stop;
// the token is asked every few milliseconds of work. An addition and a comparison otherwise.
inline bool KeepGoing(size_t work) {
  cancellation_internal::ThreadWork& own = cancellation_internal::work;
  own.unasked += work;
  if (own.unasked < own.interval) return own.stopped == StopReason::kNone;
  return cancellation_internal::Ask();
}
// Asks the token at once: where a check costs little beside what follows.
inline bool KeepGoing() { return cancellation_internal::Ask(); }
// Why KeepGoing last returned false in this scope; kNone: it did not.
inline StopReason StoppedBy() { return cancellation_internal::work.stopped; }
// Whether KeepGoing has returned false in this scope.
inline bool Stopped() { return StoppedBy() != StopReason::kNone; }
// The token that the calling thread works for; null: none.
inline const CancellationToken* CurrentToken() { return cancellation_internal::work.token; }

}  // namespace perceptrond
