// What the locks of a process cost: the form of the file in which the library lock_counts, loaded
// into the process by LD_PRELOAD, counts each acquisition of an absl::Mutex, gRPC's among them.
// Programs that it is not loaded into pay nothing.
#pragma once

#include <atomic>
#include <cstdint>

namespace perceptrond::bench {

// The environment variable with the path of the file, which the library makes.
inline constexpr char kLockFileVariable[] = "PERCEPTROND_BENCH_LOCKS";

// The acquisitions by one thread at one call site.
struct LockCount {
  // The address after the call; 0: not used.
  uintptr_t call_site = 0;
  bool exclusive = false;
  uint64_t acquired = 0;
  // The lock was held when it was asked for.
  uint64_t contended = 0;
  // Nanoseconds, without the time in Await, and without what took longer than a lock is held while
  // its thread runs.
  uint64_t held = 0;
};

inline constexpr int kLockThreads = 256;
inline constexpr int kLockCallSites = 512;

// One thread writes each row; another process may read at any time. What does not fit is not
// counted.
struct LockFile {
  // Where the program was loaded.
  uintptr_t base = 0;
  // Threads that have taken a lock.
  std::atomic<int> threads{0};
  LockCount counts[kLockThreads][kLockCallSites];
};

}  // namespace perceptrond::bench
