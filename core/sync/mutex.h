// The one mutex of the program: absl::Mutex with its thread annotations, visible to
// ThreadSanitizer, and counted. Debian's Abseil is not instrumented, so that ThreadSanitizer would
// see no lock; this wrapper reports each operation through the sanitizer's public interface. In
// every other build it adds one increment of a thread's own counter, and measures waits.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "core/sync/wait_timer.h"

#if defined(__SANITIZE_THREAD__)
#define PERCEPTROND_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PERCEPTROND_TSAN 1
#endif
#endif

#ifdef PERCEPTROND_TSAN
#include <sanitizer/tsan_interface.h>
#define PERCEPTROND_TSAN_CALL(call) call
#else
#define PERCEPTROND_TSAN_CALL(call) static_cast<void>(0)
#endif

namespace perceptrond {

// How often this thread has acquired a Mutex, shared or not. Read by tests that bound it.
inline constinit thread_local uint64_t locks_acquired = 0;

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() { PERCEPTROND_TSAN_CALL(__tsan_mutex_create(this, __tsan_mutex_not_static)); }
  ~Mutex() { PERCEPTROND_TSAN_CALL(__tsan_mutex_destroy(this, 0)); }
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    ++locks_acquired;
    PERCEPTROND_TSAN_CALL(__tsan_mutex_pre_lock(this, 0));
    if (!mutex_.TryLock()) {
      const WaitTimer timer(Wait::kLock);
      mutex_.Lock();
    }
    PERCEPTROND_TSAN_CALL(__tsan_mutex_post_lock(this, 0, 0));
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    PERCEPTROND_TSAN_CALL(__tsan_mutex_pre_unlock(this, 0));
    mutex_.Unlock();
    PERCEPTROND_TSAN_CALL(__tsan_mutex_post_unlock(this, 0));
  }
  // Tells clang's analysis that this thread holds it: for functions whose contract says so, where
  // the analysis cannot follow.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}
  void ReaderLock() ABSL_SHARED_LOCK_FUNCTION() {
    ++locks_acquired;
    PERCEPTROND_TSAN_CALL(__tsan_mutex_pre_lock(this, __tsan_mutex_read_lock));
    if (!mutex_.ReaderTryLock()) {
      const WaitTimer timer(Wait::kLock);
      mutex_.ReaderLock();
    }
    PERCEPTROND_TSAN_CALL(__tsan_mutex_post_lock(this, __tsan_mutex_read_lock, 0));
  }
  void ReaderUnlock() ABSL_UNLOCK_FUNCTION() {
    PERCEPTROND_TSAN_CALL(__tsan_mutex_pre_unlock(this, __tsan_mutex_read_lock));
    mutex_.ReaderUnlock();
    PERCEPTROND_TSAN_CALL(__tsan_mutex_post_unlock(this, __tsan_mutex_read_lock));
  }
  // Waits until the condition holds. The mutex must be held exclusively.
  void Await(const absl::Condition& condition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    BeforeWait();
    mutex_.Await(condition);
    AfterWait();
  }
  // Waits at most `timeout`. Returns whether the condition holds.
  bool AwaitWithTimeout(const absl::Condition& condition, absl::Duration timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    BeforeWait();
    const bool holds = mutex_.AwaitWithTimeout(condition, timeout);
    AfterWait();
    return holds;
  }

 private:
  // Abseil evaluates the condition under the lock, but within its own call: the sanitizer ignores
  // what happens before post_unlock.
  void BeforeWait() { PERCEPTROND_TSAN_CALL(__tsan_mutex_pre_unlock(this, 0)); }
  void AfterWait() {
    PERCEPTROND_TSAN_CALL(__tsan_mutex_post_unlock(this, 0));
    PERCEPTROND_TSAN_CALL(__tsan_mutex_pre_lock(this, 0));
    PERCEPTROND_TSAN_CALL(__tsan_mutex_post_lock(this, 0, 0));
  }

  absl::Mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

class ABSL_SCOPED_LOCKABLE ReaderMutexLock {
 public:
  explicit ReaderMutexLock(Mutex* mutex) ABSL_SHARED_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->ReaderLock();
  }
  ~ReaderMutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->ReaderUnlock(); }
  ReaderMutexLock(const ReaderMutexLock&) = delete;
  ReaderMutexLock& operator=(const ReaderMutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

// A value that can be reached only while its lock is held.
// Example:
//   Guarded<Table> table;
//   Guarded<Table>::Reader reader(table);  // shared: other readers run at the same time
//   reader->Find("x");
//   Guarded<Table>::Writer writer(table);  // exclusive
//   writer->Add("y");
//
// Thread contract: safe for any number of threads. A guard belongs to the thread that made it.
template <typename T>
class Guarded {
 public:
  template <typename... Args>
  explicit Guarded(Args&&... args) : value_{std::forward<Args>(args)...} {}
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  // Holds the lock shared for as long as it lives.
  class Reader {
   public:
    explicit Reader(const Guarded& guarded) ABSL_NO_THREAD_SAFETY_ANALYSIS : guarded_(&guarded) {
      guarded_->mutex_.ReaderLock();
    }
    ~Reader() { Release(); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    // Ends it early: the value must not be used any more.
    void Release() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      if (guarded_ != nullptr) std::exchange(guarded_, nullptr)->mutex_.ReaderUnlock();
    }

    const T& operator*() const { return guarded_->value_; }
    const T* operator->() const { return &guarded_->value_; }

   private:
    const Guarded* guarded_;
  };

  // Holds the lock exclusively for as long as it lives.
  class Writer {
   public:
    explicit Writer(Guarded& guarded) ABSL_NO_THREAD_SAFETY_ANALYSIS : guarded_(&guarded) {
      guarded_->mutex_.Lock();
    }
    ~Writer() { Release(); }
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    // Ends it early: the value must not be used any more.
    void Release() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      if (guarded_ != nullptr) std::exchange(guarded_, nullptr)->mutex_.Unlock();
    }

    T& operator*() const { return guarded_->value_; }
    T* operator->() const { return &guarded_->value_; }

   private:
    Guarded* guarded_;
  };

 private:
  mutable Mutex mutex_;
  T value_;
};

}  // namespace perceptrond
