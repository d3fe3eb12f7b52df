// Work that is given to threads is done, all of it, and in order.
#include "server/rpc/workers.h"

#include <deque>

#include "tests/server/rpc/rpc_server.h"

namespace perceptrond::workers_test {
namespace {

using ::perceptrond::testing::HeldWork;

TEST(Workers, WorkThatFindsNoThreadFreeWaitsAndIsDoneInOrder) {
  constexpr int kThreads = 3;
  constexpr int kGiven = 200;
  std::vector<int> order;
  std::deque<HeldWork> busy;
  {
    Workers workers(kThreads);
    for (int i = 0; i < kThreads; ++i)
      busy.emplace_back(workers, WorkSize::kManagement).begun.WaitForNotification();
    EXPECT_FALSE(workers.HasBacklog());
    for (int i = 0; i < kGiven; ++i) {
      workers.Schedule(WorkSize::kManagement, [&order, i] { order.push_back(i); });
      EXPECT_TRUE(workers.HasBacklog());
    }
    EXPECT_TRUE(order.empty());
    // One thread does it all; the others stay.
    absl::Notification last;
    workers.Schedule(WorkSize::kManagement, [&last] { last.Notify(); });
    busy[1].go.Notify();
    last.WaitForNotification();
    EXPECT_FALSE(workers.HasBacklog());
    busy[0].go.Notify();
    busy[2].go.Notify();
  }
  ASSERT_EQ(order.size(), kGiven);
  for (int i = 0; i < kGiven; ++i) EXPECT_EQ(order[i], i);
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
    workers.Schedule(WorkSize::kManagement, [&] {
      begun.Notify();
      other_left.WaitForNotification();
      workers.Schedule(WorkSize::kManagement, [&] { done = true; });
    });
    begun.WaitForNotification();
    absl::Notification marked;
    workers.Schedule(WorkSize::kManagement, [&] {
      at_thread_end.ended = &other_left;
      marked.Notify();
    });
    marked.WaitForNotification();
  }
  EXPECT_TRUE(done);
}

TEST(Workers, WhatManyThreadsGiveAtOnceIsDoneOnce) {
  constexpr int kGivers = 8;
  constexpr int kEach = 500;
  std::vector<std::atomic<int>> done(kGivers * kEach);
  {
    Workers workers(3);
    std::vector<std::thread> givers;
    for (int giver = 0; giver < kGivers; ++giver) {
      givers.emplace_back([&, giver] {
        for (int i = 0; i < kEach; ++i)
          workers.Schedule(WorkSize::kManagement, [&one = done[giver * kEach + i]] { ++one; });
      });
    }
    for (std::thread& giver : givers) giver.join();
  }
  for (const std::atomic<int>& one : done) EXPECT_EQ(one, 1);
}

TEST(WorkSizes, LargeWorkLeavesTwoThreadsAndSmallWorkOne) {
  std::deque<HeldWork> held;
  {
    Workers workers(4);
    for (int i = 0; i < 3; ++i) held.emplace_back(workers, WorkSize::kLarge);
    held[1].begun.WaitForNotification();
    EXPECT_TRUE(workers.HasBacklog());
    for (int i = 0; i < 2; ++i) held.emplace_back(workers, WorkSize::kSmall);
    held[3].begun.WaitForNotification();
    while (workers.idle() != 1) std::this_thread::yield();
    held.emplace_back(workers, WorkSize::kManagement);
    held[5].begun.WaitForNotification();
    EXPECT_FALSE(held[2].begun.HasBeenNotified());
    EXPECT_FALSE(held[4].begun.HasBeenNotified());
    // The thread of large work is given to the older of the two that wait: large again.
    held[0].go.Notify();
    held[2].begun.WaitForNotification();
    EXPECT_FALSE(held[4].begun.HasBeenNotified());
    held[3].go.Notify();
    held[4].begun.WaitForNotification();
    for (const int i : {1, 2, 4, 5}) held[i].go.Notify();
  }
}

TEST(WorkSizes, ManagementComesFirstAndAFewThreadsServeAll) {
  std::vector<int> order;
  std::deque<HeldWork> held;
  {
    Workers workers(1);
    HeldWork& first = held.emplace_back(workers, WorkSize::kLarge);
    first.begun.WaitForNotification();
    workers.Schedule(WorkSize::kLarge, [&] { order.push_back(1); });
    workers.Schedule(WorkSize::kSmall, [&] { order.push_back(2); });
    workers.Schedule(WorkSize::kManagement, [&] { order.push_back(3); });
    absl::Notification last;
    workers.Schedule(WorkSize::kSmall, [&] { last.Notify(); });
    first.go.Notify();
    last.WaitForNotification();
  }
  EXPECT_EQ(order, (std::vector<int>{3, 1, 2}));
}

TEST(WorkSizes, WorkBeyondTheQueueIsRefusedAndKept) {
  std::deque<HeldWork> held;
  Workers workers(1, {.max_queued = 2});
  HeldWork& first = held.emplace_back(workers, WorkSize::kSmall);
  first.begun.WaitForNotification();
  std::atomic<int> done = 0;
  for (int i = 0; i < 3; ++i) {
    Workers::Work work = [&] { ++done; };
    EXPECT_EQ(workers.TrySchedule(WorkSize::kSmall, work), i < 2);
    EXPECT_EQ(work != nullptr, i == 2);
  }
  // Other sizes have queues of their own, and what must be done is never refused.
  Workers::Work management = [&] { ++done; };
  EXPECT_TRUE(workers.TrySchedule(WorkSize::kManagement, management));
  workers.Schedule(WorkSize::kSmall, [&] { ++done; });
  first.go.Notify();
  while (workers.HasBacklog() || workers.idle() == 0) std::this_thread::yield();
  EXPECT_EQ(done, 4);
}

// One thread, which is busy, and a clock that the test moves on.
class QueueTest : public ::testing::Test {
 protected:
  QueueTest() : workers_(1, Workers::Limits{.max_queued = 1000}, &now) { Occupy(); }
  ~QueueTest() override { held_.back().go.Notify(); }

  static absl::Time now() { return absl::FromUnixNanos(nanoseconds_); }
  static void Advance(absl::Duration time) { nanoseconds_ += absl::ToInt64Nanoseconds(time); }
  void Occupy() {
    HeldWork& held = held_.emplace_back(workers_, WorkSize::kSmall);
    held.begun.WaitForNotification();
  }
  // Until the queue is empty, and the thread busy again.
  void EmptyQueue() {
    held_.back().go.Notify();
    while (workers_.HasBacklog() || workers_.idle() == 0) std::this_thread::yield();
    Occupy();
  }
  // Adds work that does nothing, as long as it is accepted, up to `most`; returns how much was.
  int Fill(int most) {
    int accepted = 0;
    for (Workers::Work work; accepted < most; ++accepted) {
      work = [] {};
      if (!workers_.TrySchedule(WorkSize::kSmall, work)) break;
    }
    return accepted;
  }

  // Longer than work may wait in a burst, and under overload.
  static constexpr absl::Duration kBurst = absl::Milliseconds(101);
  static constexpr absl::Duration kOverload = absl::Milliseconds(11);
  inline static std::atomic<int64_t> nanoseconds_ = 0;
  std::deque<HeldWork> held_;
  Workers workers_;
};

TEST_F(QueueTest, AShortQueueIsAcceptedHoweverLongItWaits) {
  EXPECT_EQ(Fill(1), 1);
  Advance(kBurst);
  EXPECT_EQ(Fill(100), 1);
}

TEST_F(QueueTest, SmallWorkIsRefusedOnceWhatIsNextHasWaitedLong) {
  EXPECT_EQ(Fill(100), 100);
  Advance(kBurst);
  EXPECT_EQ(Fill(1), 0);
  Workers::Work management = [] {};
  EXPECT_TRUE(workers_.TrySchedule(WorkSize::kManagement, management));
}

TEST_F(QueueTest, SmallWorkOfABurstIsLateOnceItHasWaitedLongWhileOthersWait) {
  EXPECT_EQ(Fill(2), 2);
  EXPECT_FALSE(workers_.IsLate(WorkSize::kSmall, now() - kBurst));
  EXPECT_EQ(Fill(1), 1);
  EXPECT_TRUE(workers_.IsLate(WorkSize::kSmall, now() - kBurst));
  EXPECT_FALSE(workers_.IsLate(WorkSize::kSmall, now() - kOverload));
  EXPECT_FALSE(workers_.IsLate(WorkSize::kLarge, now() - kBurst));
  EXPECT_FALSE(workers_.IsLate(WorkSize::kManagement, absl::InfinitePast()));
}

TEST_F(QueueTest, WorkMayWaitLessTheLongerTheQueueHasNotBeenEmpty) {
  EXPECT_EQ(Fill(3), 3);
  Advance(kBurst / 2);
  EXPECT_FALSE(workers_.IsLate(WorkSize::kSmall, now() - kBurst / 3));
  EXPECT_TRUE(workers_.IsLate(WorkSize::kSmall, now() - 2 * kBurst / 3));
  Advance(kBurst / 2);
  EXPECT_TRUE(workers_.IsLate(WorkSize::kSmall, now() - kOverload));
}

TEST_F(QueueTest, AQueueThatWasEmptyInBetweenIsABurst) {
  EXPECT_EQ(Fill(3), 3);
  Advance(kBurst);
  EXPECT_EQ(Fill(1), 0);
  EmptyQueue();
  EXPECT_EQ(Fill(3), 3);
  EXPECT_FALSE(workers_.IsLate(WorkSize::kSmall, now() - kOverload));
}

// Streams are not refused: they hold their senders back.
TEST_F(QueueTest, TurnsOfStreamsCountForNoCall) {
  for (int i = 0; i < 100; ++i) workers_.Schedule(WorkSize::kSmall, [] {});
  Advance(kBurst);
  EXPECT_EQ(Fill(100), 100);
}

TEST_F(QueueTest, CallsAndStreamsTakeTurnsWhateverWasFirst) {
  std::string order;
  Workers::Work call;
  for (int i = 0; i < 3; ++i) workers_.Schedule(WorkSize::kSmall, [&] { order += 's'; });
  for (int i = 0; i < 3; ++i) {
    call = [&] { order += 'c'; };
    EXPECT_TRUE(workers_.TrySchedule(WorkSize::kSmall, call));
  }
  EmptyQueue();
  EXPECT_THAT(order, ::testing::AnyOf("cscscs", "scscsc"));
}

// Each piece of work takes a second.
TEST_F(QueueTest, SmallWorkIsRefusedAtOnceIfThatBeforeItTakesLong) {
  for (int i = 0; i < 3; ++i) {
    Advance(absl::Seconds(1));
    EmptyQueue();
  }
  EXPECT_EQ(Fill(100), 2);
}

}  // namespace
}  // namespace perceptrond::workers_test
