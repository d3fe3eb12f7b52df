#include "core/sync/wait_timer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "core/sync/mutex.h"

namespace perceptrond {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

nanoseconds Waited(Wait wait) { return wait_times[static_cast<size_t>(wait)]; }

// Until the clock shows that this much has passed.
void Spend(milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

// Holds the lock on another thread for this time, and locks it here meanwhile.
template <typename Lock>
nanoseconds WaitBehindAnother(Lock lock, milliseconds time) {
  Mutex mutex;
  std::atomic<bool> held = false;
  std::atomic<bool> locking = false;
  std::thread other([&] {
    MutexLock holding(&mutex);
    held = true;
    while (!locking) std::this_thread::yield();
    Spend(time);
  });
  while (!held) std::this_thread::yield();
  const nanoseconds before = Waited(Wait::kLock);
  locking = true;
  lock(mutex);
  const nanoseconds waited = Waited(Wait::kLock) - before;
  other.join();
  return waited;
}

// Until this thread came to wait: a busy machine may keep it from the lock for as long as the other one holds it.
template <typename Lock>
void WaitUntilMeasured(Lock lock) {
  for (milliseconds time(2); WaitBehindAnother(lock, time) <= nanoseconds(0);) time *= 2;
}

TEST(WaitTimerTest, ALockThatAnotherThreadHoldsIsWaitedFor) {
  WaitUntilMeasured([](Mutex& mutex) { MutexLock lock(&mutex); });
  WaitUntilMeasured([](Mutex& mutex) { ReaderMutexLock lock(&mutex); });
}

TEST(WaitTimerTest, AFreeLockIsNoWait) {
  const WaitTimes before = wait_times;
  Mutex mutex;
  for (int i = 0; i < 1000; ++i) MutexLock lock(&mutex);
  for (int i = 0; i < 1000; ++i) ReaderMutexLock lock(&mutex);
  EXPECT_EQ(wait_times, before);
}

TEST(WaitTimerTest, AWaitWithinAWaitCountsOnceForTheOuterOne) {
  const WaitTimes before = wait_times;
  const auto start = std::chrono::steady_clock::now();
  {
    const WaitTimer load(Wait::kLoad);
    Spend(milliseconds(2));
    const WaitTimer lock(Wait::kLock);
    Spend(milliseconds(2));
  }
  const nanoseconds passed = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(Waited(Wait::kLock), before[static_cast<size_t>(Wait::kLock)]);
  const nanoseconds load = Waited(Wait::kLoad) - before[static_cast<size_t>(Wait::kLoad)];
  EXPECT_GE(load, milliseconds(4));
  EXPECT_LE(load, passed);
}

}  // namespace
}  // namespace perceptrond
