// The library that counts locks (lock_counts.h): it replaces methods of absl::Mutex, tries
// the lock first to see whether it is contended, and leaves the rest to Abseil's own.
#include "tests/bench/lock_counts.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <new>
#include <string>

#include "absl/base/options.h"
#include "absl/synchronization/mutex.h"

namespace perceptrond::bench {
namespace {

#define STRING_OF(name) #name
#define NAME_OF(macro) STRING_OF(macro)

// Abseil's own method, by the end of its name in the library.
template <typename Function>
Function Real(const char* method) {
  const std::string space = NAME_OF(ABSL_OPTION_INLINE_NAMESPACE_NAME);
  const std::string name = "_ZN4absl" + std::to_string(space.size()) + space + "5Mutex" + method;
  void* const found = dlsym(RTLD_NEXT, name.c_str());
  if (found == nullptr) std::abort();
  return reinterpret_cast<Function>(found);
}

uint64_t Now() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

LockFile* OpenFile() {
  const char* const path = std::getenv(kLockFileVariable);
  if (path == nullptr) return nullptr;
  const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof(LockFile)) != 0) std::abort();
  void* const memory = mmap(nullptr, sizeof(LockFile), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) std::abort();
  // The file's zeros are a LockFile in which nothing is counted.
  auto* const counts = static_cast<LockFile*>(memory);
  const auto first = [](dl_phdr_info* program, size_t, void* base) {
    *static_cast<uintptr_t*>(base) = program->dlpi_addr;
    return 1;
  };
  dl_iterate_phdr(first, &counts->base);
  return counts;
}

// The calling thread's row; null if there is none.
LockCount* OwnCounts() {
  static LockFile* const file = OpenFile();
  if (file == nullptr) return nullptr;
  thread_local const int thread = file->threads.fetch_add(1);
  return thread < kLockThreads ? file->counts[thread] : nullptr;
}

LockCount* CountAt(const void* call_site, bool exclusive) {
  LockCount* const counts = OwnCounts();
  if (counts == nullptr) return nullptr;
  const auto address = reinterpret_cast<uintptr_t>(call_site);
  for (uintptr_t i = 0; i < kLockCallSites; ++i) {
    LockCount& count = counts[(address / 2 + i) % kLockCallSites];
    if (count.call_site == 0) {
      count.exclusive = exclusive;
      count.call_site = address;
    }
    if (count.call_site == address) return &count;
  }
  return nullptr;
}

// The locks that this thread holds, the newest last.
class HeldLocks {
 public:
  void Push(const absl::Mutex* mutex, LockCount* count) {
    if (size_ < kMost) held_[size_++] = {mutex, count, Now()};
  }
  // Ends the time for which a lock is held. Returns what it was counted at, if it is known.
  LockCount* Pop(const absl::Mutex* mutex) {
    for (int i = size_; i-- > 0;) {
      if (held_[i].mutex != mutex) continue;
      LockCount* const count = held_[i].count;
      const uint64_t nanos = Now() - held_[i].since;
      if (count != nullptr && nanos < kMostHeld) count->held += nanos;
      for (--size_; i < size_; ++i) held_[i] = held_[i + 1];
      return count;
    }
    return nullptr;
  }

 private:
  static constexpr int kMost = 64;
  // In nanoseconds. A thread that holds a lock for longer has lost its processor to another, which
  // happens less where there are more: not counted.
  static constexpr uint64_t kMostHeld = 50'000;
  struct Held {
    const absl::Mutex* mutex;
    LockCount* count;
    uint64_t since;
  };
  Held held_[kMost];
  int size_ = 0;
};

thread_local HeldLocks held;

template <typename Try, typename Wait>
void Acquire(absl::Mutex* mutex, LockCount* count, Try tries, Wait wait) {
  if (!tries()) {
    wait();
    if (count != nullptr) ++count->contended;
  }
  if (count != nullptr) ++count->acquired;
  held.Push(mutex, count);
}

}  // namespace
}  // namespace perceptrond::bench

namespace absl {
ABSL_NAMESPACE_BEGIN

namespace bench = ::perceptrond::bench;

void Mutex::Lock() {
  static const auto real = bench::Real<void (*)(Mutex*)>("4LockEv");
  bench::Acquire(
      this, bench::CountAt(__builtin_return_address(0), true), [&] { return TryLock(); },
      [&] { real(this); });
}

void Mutex::ReaderLock() {
  static const auto real = bench::Real<void (*)(Mutex*)>("10ReaderLockEv");
  bench::Acquire(
      this, bench::CountAt(__builtin_return_address(0), false), [&] { return ReaderTryLock(); },
      [&] { real(this); });
}

void Mutex::Unlock() {
  static const auto real = bench::Real<void (*)(Mutex*)>("6UnlockEv");
  bench::held.Pop(this);
  real(this);
}

void Mutex::ReaderUnlock() {
  static const auto real = bench::Real<void (*)(Mutex*)>("12ReaderUnlockEv");
  bench::held.Pop(this);
  real(this);
}

void Mutex::Await(const Condition& condition) {
  static const auto real =
      bench::Real<void (*)(Mutex*, const Condition&)>("5AwaitERKNS0_9ConditionE");
  bench::LockCount* const count = bench::held.Pop(this);
  real(this, condition);
  bench::held.Push(this, count);
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  static const auto real = bench::Real<bool (*)(Mutex*, const Condition&, Duration)>(
      "16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  bench::LockCount* const count = bench::held.Pop(this);
  const bool holds = real(this, condition, timeout);
  bench::held.Push(this, count);
  return holds;
}

ABSL_NAMESPACE_END
}  // namespace absl
