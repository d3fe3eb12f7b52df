// Work that is given to threads is done, all of it, in order, and by the thread with warm caches.
#include "server/rpc/backend.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

namespace perceptrond::workers_test {
namespace {

constexpr absl::Duration kLong = absl::Seconds(30);

// Keeps one thread busy until it is let go. The thread tells who it is.
struct Busy {
  absl::Notification begun;
  absl::Notification go;
  pid_t id = 0;

  void Give(Workers& workers) {
    workers.Schedule([this] {
      id = gettid();
      begun.Notify();
      EXPECT_TRUE(go.WaitForNotificationWithTimeout(kLong));
    });
    EXPECT_TRUE(begun.WaitForNotificationWithTimeout(kLong));
  }
};

TEST(Workers, AllThatWasGivenIsDoneBeforeTheyAreDestroyed) {
  constexpr int kGiven = 1000;
  std::atomic<int> done = 0;
  Busy busy;
  {
    Workers workers(3);
    busy.Give(workers);
    for (int i = 0; i < kGiven; ++i) workers.Schedule([&] { ++done; });
    busy.go.Notify();
  }
  EXPECT_EQ(done, kGiven);
}

TEST(Workers, ThreadsThatWereNeverGivenAnythingEnd) { const Workers workers(8); }

TEST(Workers, WorkThatFindsNoThreadFreeWaitsAndIsDoneInOrder) {
  constexpr int kThreads = 3;
  constexpr int kGiven = 200;
  std::vector<int> order;
  Busy busy[kThreads];
  {
    Workers workers(kThreads);
    for (Busy& one : busy) one.Give(workers);
    EXPECT_FALSE(workers.HasBacklog());
    for (int i = 0; i < kGiven; ++i) {
      workers.Schedule([&order, i] { order.push_back(i); });
      EXPECT_TRUE(workers.HasBacklog());
    }
    EXPECT_TRUE(order.empty());
    // One thread does it all; the others stay.
    absl::Notification last;
    workers.Schedule([&last] { last.Notify(); });
    busy[1].go.Notify();
    ASSERT_TRUE(last.WaitForNotificationWithTimeout(kLong));
    EXPECT_FALSE(workers.HasBacklog());
    busy[0].go.Notify();
    busy[2].go.Notify();
  }
  ASSERT_EQ(order.size(), kGiven);
  for (int i = 0; i < kGiven; ++i) EXPECT_EQ(order[i], i);
}

TEST(Workers, WorkMayGiveWork) {
  constexpr int kDeep = 500;
  std::atomic<int> done = 0;
  absl::Notification last;
  std::function<void(int)> give;
  Workers workers(2);
  give = [&](int left) {
    workers.Schedule([&, left] {
      ++done;
      left == 0 ? last.Notify() : give(left - 1);
    });
  };
  give(kDeep);
  ASSERT_TRUE(last.WaitForNotificationWithTimeout(kLong));
  EXPECT_EQ(done, kDeep + 1);
}

// Tells when its thread ends.
struct AtThreadEnd {
  absl::Notification* ended = nullptr;
  ~AtThreadEnd() {
    if (ended != nullptr) ended->Notify();
  }
};
thread_local AtThreadEnd at_thread_end;

TEST(Workers, WorkThatIsGivenWhileTheyAreDestroyedIsDoneAlsoWhenOtherThreadsHaveLeft) {
  absl::Notification other_left;
  std::atomic<bool> done = false;
  {
    Workers workers(2);
    absl::Notification begun;
    workers.Schedule([&] {
      begun.Notify();
      EXPECT_TRUE(other_left.WaitForNotificationWithTimeout(kLong));
      workers.Schedule([&] { done = true; });
    });
    ASSERT_TRUE(begun.WaitForNotificationWithTimeout(kLong));
    absl::Notification marked;
    workers.Schedule([&] {
      at_thread_end.ended = &other_left;
      marked.Notify();
    });
    ASSERT_TRUE(marked.WaitForNotificationWithTimeout(kLong));
  }
  EXPECT_TRUE(done);
}

void AwaitIdle(const Workers& workers, size_t threads) {
  for (const absl::Time until = absl::Now() + kLong; workers.idle() < threads;) {
    ASSERT_LT(absl::Now(), until);
    std::this_thread::yield();
  }
}

TEST(Workers, OfIdleThreadsTheOneThatWasBusyLastGetsTheNextWork) {
  constexpr int kThreads = 4;
  Busy busy[kThreads];
  Busy again[kThreads];
  Workers workers(kThreads);
  for (Busy& one : busy) one.Give(workers);
  const int order[kThreads] = {2, 0, 3, 1};
  for (size_t idle = 0; idle < kThreads; ++idle) {
    busy[order[idle]].go.Notify();
    AwaitIdle(workers, idle + 1);
  }
  for (Busy& one : again) one.Give(workers);
  for (int i = 0; i < kThreads; ++i) EXPECT_EQ(again[i].id, busy[order[kThreads - 1 - i]].id);
  for (Busy& one : again) one.go.Notify();
}

TEST(Workers, WhatManyThreadsGiveAtOnceIsDoneOnce) {
  constexpr int kGivers = 8;
  constexpr int kEach = 2000;
  std::vector<std::atomic<int>> done(kGivers * kEach);
  {
    Workers workers(3);
    std::vector<std::thread> givers;
    for (int giver = 0; giver < kGivers; ++giver) {
      givers.emplace_back([&, giver] {
        for (int i = 0; i < kEach; ++i)
          workers.Schedule([&one = done[giver * kEach + i]] { ++one; });
      });
    }
    for (std::thread& giver : givers) giver.join();
  }
  for (const std::atomic<int>& one : done) EXPECT_EQ(one, 1);
}

}  // namespace
}  // namespace perceptrond::workers_test
