// Analyses take turns: a short one is done soon beside a long one, which goes on.
#include "server/sessions/analysis_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"

namespace perceptrond::analysis_queue_test {
namespace {

using Clock = AnalysisQueue::Clock;

// Runs until its end is set, and counts its steps, each of a millisecond of the queue's clock.
class FakeJob final : public AnalysisQueue::Job {
 public:
  FakeJob(AnalysisQueue& queue, std::string model, bool small = true, int steps = 1 << 30)
      : queue_(queue), model_(std::move(model)), small_(small), steps_(steps) {}

  void OnQueued(size_t jobs_ahead) override { ahead = jobs_ahead; }
  void Run() override {
    begun.Notify();
    while (!end && !cancelled() && steps < steps_) {
      EXPECT_FALSE(computing.exchange(true)) << "another computes";
      ++milliseconds;
      ++steps;
      computing = false;
      queue_.AwaitTurn(*this);
    }
    ended.Notify();
  }
  bool cancelled() const override { return cancel; }
  const std::string& model() const override { return model_; }
  bool small() const override { return small_; }

  void AwaitSteps(int more) {
    for (const int until = steps + more; steps < until;) std::this_thread::yield();
  }

  static Clock::time_point now() {
    return Clock::time_point(std::chrono::milliseconds(milliseconds));
  }

  inline static std::atomic<int64_t> milliseconds = 0;
  inline static std::atomic<bool> computing = false;
  absl::Notification begun;
  absl::Notification ended;
  std::atomic<size_t> ahead = 0;
  std::atomic<int> steps = 0;
  std::atomic<bool> end = false;
  std::atomic<bool> cancel = false;

 private:
  AnalysisQueue& queue_;
  const std::string model_;
  const bool small_;
  const int steps_;
};

class AnalysisQueueTest : public ::testing::Test {
 protected:
  std::shared_ptr<FakeJob> Submit(const std::string& model, bool small = true,
                                  int steps = 1 << 30) {
    auto job = std::make_shared<FakeJob>(queue_, model, small, steps);
    EXPECT_TRUE(queue_.Submit(job));
    all_.push_back(job);
    return job;
  }
  ~AnalysisQueueTest() override {
    for (const std::shared_ptr<FakeJob>& job : all_) job->end = true;
  }

  std::vector<std::shared_ptr<FakeJob>> all_;
  AnalysisQueue queue_{{.max_jobs = 6, .now = FakeJob::now}};
};

TEST_F(AnalysisQueueTest, AShortOneIsDoneBesideALongOneThatGoesOn) {
  const auto one = Submit("models/long", false);
  one->begun.WaitForNotification();
  const auto two = Submit("models/short", true, 50);
  two->ended.WaitForNotification();
  EXPECT_EQ(two->steps, 50);
  one->AwaitSteps(1);
  EXPECT_EQ(two->ahead, 0U);
}

TEST_F(AnalysisQueueTest, LongOnesTakeTurnsAndNeverComputeTogether) {
  const auto one = Submit("models/one", false);
  const auto two = Submit("models/two", false);
  for (int i = 0; i < 3; ++i) {
    one->AwaitSteps(1);
    two->AwaitSteps(1);
  }
}

TEST_F(AnalysisQueueTest, AModelHasOneUnderWay) {
  const auto one = Submit("models/m");
  one->begun.WaitForNotification();
  const auto two = Submit("models/m");
  EXPECT_EQ(two->ahead, 1U);
  const auto other = Submit("models/other", true, 1);
  other->ended.WaitForNotification();
  EXPECT_FALSE(two->begun.HasBeenNotified());
  one->end = true;
  two->begun.WaitForNotification();
}

TEST_F(AnalysisQueueTest, TheLastUnderWayIsASmallOne) {
  for (int i = 0; i < 3; ++i) {
    const auto large = Submit("models/" + std::to_string(i), false);
    large->begun.WaitForNotification();
  }
  const auto large = Submit("models/large", false);
  EXPECT_EQ(large->ahead, 1U);
  const auto small = Submit("models/small", true, 1);
  small->ended.WaitForNotification();
  EXPECT_FALSE(large->begun.HasBeenNotified());
  all_[1]->end = true;
  large->begun.WaitForNotification();
}

TEST_F(AnalysisQueueTest, OneMoreThanTheMostIsRefusedUntilAnotherIsCancelled) {
  for (int i = 0; i < 6; ++i) Submit("models/m");
  const auto seventh = std::make_shared<FakeJob>(queue_, "models/other");
  EXPECT_FALSE(queue_.Submit(seventh));
  all_[3]->cancel = true;
  EXPECT_TRUE(queue_.Submit(seventh));
  all_.push_back(seventh);
  seventh->begun.WaitForNotification();
}

TEST_F(AnalysisQueueTest, ACancelledOneDoesNotWaitForItsTurn) {
  const auto one = Submit("models/one");
  one->begun.WaitForNotification();
  const auto two = Submit("models/two");
  two->AwaitSteps(1);
  two->cancel = true;
  two->ended.WaitForNotification();
}

}  // namespace
}  // namespace perceptrond::analysis_queue_test
