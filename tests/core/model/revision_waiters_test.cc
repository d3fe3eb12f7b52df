#include "core/model/revision_waiters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace perceptrond {
namespace {

using ::testing::ElementsAre;

TEST(RevisionWaitersTest, EachIsCalledOnceWhenItsRevisionIsReached) {
  RevisionWaiters waiters;
  std::vector<int> called;
  waiters.Await(3, [&] { called.push_back(3); });
  waiters.Await(5, [&] { called.push_back(5); });
  waiters.Reach(2);
  EXPECT_TRUE(called.empty());
  waiters.Reach(4);
  EXPECT_THAT(called, ElementsAre(3));
  waiters.Reach(9);
  waiters.Reach(10);
  EXPECT_THAT(called, ElementsAre(3, 5));
  EXPECT_EQ(waiters.reached(), 10U);
}

TEST(RevisionWaitersTest, ARevisionThatIsReachedIsNotWaitedFor) {
  RevisionWaiters waiters;
  int called = 0;
  waiters.Await(0, [&] { ++called; });
  waiters.Reach(4);
  waiters.Await(4, [&] { ++called; });
  EXPECT_EQ(called, 2);
  // A copy never goes back.
  waiters.Reach(3);
  EXPECT_EQ(waiters.reached(), 4U);
}

TEST(RevisionWaitersTest, NobodyWaitsAfterRelease) {
  RevisionWaiters waiters;
  int called = 0;
  waiters.Await(100, [&] { ++called; });
  waiters.Release();
  waiters.Await(200, [&] { ++called; });
  EXPECT_EQ(called, 2);
  EXPECT_EQ(waiters.reached(), RevisionWaiters::kEnded);
}

TEST(RevisionWaitersTest, OneThatWasRemovedIsNotCalled) {
  RevisionWaiters waiters;
  int called = 0;
  const uint64_t first = waiters.Await(5, [&] { called += 1; });
  waiters.Await(5, [&] { called += 10; });
  waiters.Remove(5, first);
  waiters.Remove(5, first);
  waiters.Reach(5);
  EXPECT_EQ(called, 10);
}

TEST(RevisionWaitersTest, NoneIsForgottenWhenOthersReachAtTheSameTime) {
  RevisionWaiters waiters;
  std::atomic<int> called = 0;
  constexpr int kWaiters = 2000;
  std::thread reaches([&] {
    for (uint64_t revision = 1; revision <= kWaiters; ++revision) waiters.Reach(revision);
  });
  for (uint64_t revision = 1; revision <= kWaiters; ++revision)
    waiters.Await(revision, [&] { ++called; });
  reaches.join();
  EXPECT_EQ(called, kWaiters);
}

}  // namespace
}  // namespace perceptrond
