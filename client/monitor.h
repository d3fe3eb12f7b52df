// Monitor: a mutex with its condition variable, annotated for clang's thread-safety analysis, and
// visible to ThreadSanitizer (which does not see the locks of a system Abseil).
//
// Threads: any. Call NotifyAll() after each change that a Wait() may be waiting for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"

namespace perceptrond::client {

class ABSL_LOCKABLE Monitor {
 public:
  using Clock = std::chrono::steady_clock;

  Monitor() = default;
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

  // Both may wake up spuriously: call them in a loop that checks the condition.
  void Wait() ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    std::unique_lock<std::mutex> lock(mutex_, std::adopt_lock);
    changed_.wait(lock);
    lock.release();
  }
  void WaitUntil(Clock::time_point deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    std::unique_lock<std::mutex> lock(mutex_, std::adopt_lock);
    changed_.wait_until(lock, deadline);
    lock.release();
  }
  void NotifyAll() { changed_.notify_all(); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

class ABSL_SCOPED_LOCKABLE MonitorLock {
 public:
  explicit MonitorLock(Monitor* monitor) ABSL_EXCLUSIVE_LOCK_FUNCTION(monitor) : monitor_(monitor) {
    monitor_->Lock();
  }
  ~MonitorLock() ABSL_UNLOCK_FUNCTION() { monitor_->Unlock(); }
  MonitorLock(const MonitorLock&) = delete;
  MonitorLock& operator=(const MonitorLock&) = delete;

 private:
  Monitor* const monitor_;
};

}  // namespace perceptrond::client
