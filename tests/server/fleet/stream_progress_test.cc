#include "server/fleet/stream_progress.h"

#include <gtest/gtest.h>

#include <chrono>

#include "perceptron/v1/learning_service.pb.h"

namespace perceptrond {
namespace {

::perceptron::v1::LearnResult Answer(uint64_t examples, uint64_t updates, int64_t revision,
                                     int64_t acknowledged) {
  ::perceptron::v1::LearnResult result;
  result.set_examples(examples);
  result.set_updates(updates);
  result.set_revision(revision);
  result.set_acknowledged_offset(acknowledged);
  return result;
}

class StreamProgressTest : public ::testing::Test {
 protected:
  // As after the first message, which has no rows, of a producer at 100.
  static StreamProgress Opened(bool relaxed) {
    StreamProgress progress(relaxed);
    progress.OnForwardedUnread(1);
    progress.OnOpened(100);
    progress.OnAnswered(Answer(0, 0, 7, 99), 0);
    return progress;
  }
};

TEST_F(StreamProgressTest, AStreamWaitsUntilItIsOpened) {
  StreamProgress progress(false);
  EXPECT_FALSE(progress.ShouldWait(0)) << "for nothing";
  progress.OnForwardedUnread(1);
  EXPECT_TRUE(progress.ShouldWait(0));
  progress.OnOpened(100);
  progress.OnAnswered(Answer(0, 0, 7, 99), 0);
  EXPECT_TRUE(progress.ShouldWait(6));
  EXPECT_FALSE(progress.IsOpen(6));
  EXPECT_TRUE(progress.IsOpen(7));
  EXPECT_FALSE(progress.ShouldWait(7));
  EXPECT_EQ(progress.position(), 100);
  EXPECT_TRUE(progress.Continues(std::nullopt));
  EXPECT_TRUE(progress.Continues(100));
  EXPECT_FALSE(progress.Continues(99));
}

TEST_F(StreamProgressTest, ACopyIsBehindFromWhenItIsFirstSeenThereUntilItHasWhatTheAnswersName) {
  using std::chrono::seconds;
  const StreamProgress::Clock::time_point begin{seconds(100)};
  StreamProgress progress = Opened(false);
  EXPECT_EQ(progress.TimeBehind(7, begin), seconds(0));
  EXPECT_EQ(progress.TimeBehind(6, begin + seconds(1)), seconds(0));
  EXPECT_EQ(progress.TimeBehind(6, begin + seconds(3)), seconds(2));
  // Also while more is forwarded and answered.
  progress.OnForwarded(10);
  progress.OnAnswered(Answer(10, 1, 8, 109), 0);
  EXPECT_EQ(progress.TimeBehind(7, begin + seconds(4)), seconds(3));
  EXPECT_EQ(progress.TimeBehind(8, begin + seconds(5)), seconds(0));
  EXPECT_EQ(progress.TimeBehind(7, begin + seconds(6)), seconds(0));
  StreamProgress relaxed = Opened(true);
  relaxed.TimeBehind(6, begin);
  EXPECT_EQ(relaxed.TimeBehind(6, begin + seconds(1)), seconds(0)) << "its rows need no update";
}

TEST_F(StreamProgressTest, AClosedStreamWaitsUnlessManyOfItsMessagesHadUpdates) {
  StreamProgress progress = Opened(false);
  progress.OnForwarded(10);
  EXPECT_TRUE(progress.ShouldWait(7));
  progress.OnAnswered(Answer(10, 1, 8, 109), 0);
  EXPECT_TRUE(progress.ShouldWait(7)) << "the copy lacks the update";
  EXPECT_FALSE(progress.ShouldWait(8));
  // One message in ten.
  int64_t offset = 109;
  for (int message = 0; message < 100; ++message) {
    if (message % 10 > 0) {
      progress.OnEvaluated(10, true);
      offset += 10;
      continue;
    }
    progress.OnForwarded(10);
    EXPECT_TRUE(progress.ShouldWait(8));
    progress.OnAnswered(Answer(10, 1, 8, offset += 10), 0);
  }
  for (int message = 0; message < 5; ++message) {
    progress.OnForwarded(10);
    progress.OnAnswered(Answer(10, 1, 9, offset += 10), 0);
  }
  EXPECT_FALSE(progress.ShouldWait(8)) << "more updates will come";
  for (int message = 0; message < 50; ++message) {
    progress.OnForwarded(10);
    progress.OnAnswered(Answer(10, 0, 9, offset += 10), 0);
  }
  EXPECT_TRUE(progress.ShouldWait(8)) << "few have come";
}

TEST_F(StreamProgressTest, InRelaxedOrderAStreamIsOpenWhileItForwards) {
  StreamProgress progress = Opened(true);
  progress.OnForwarded(10);
  EXPECT_TRUE(progress.IsOpen(0));
  EXPECT_EQ(progress.position(), 110);
  progress.OnEvaluated(5, true);
  progress.OnAnswered(Answer(10, 1, 8, 109), 0);
  EXPECT_EQ(progress.position(), 115) << "the writer does not know of the five";
}

TEST_F(StreamProgressTest, MostIsForwardedOnceMoreThanHalfOfThousandsOfRowsWere) {
  StreamProgress progress(false);
  progress.OnForwarded(2000);
  EXPECT_FALSE(progress.mostly_forwarded());
  progress.OnForwarded(100);
  EXPECT_TRUE(progress.mostly_forwarded());
  progress.OnEvaluated(2500, true);
  EXPECT_FALSE(progress.mostly_forwarded());
  // Rows of long ago count no more.
  for (int i = 0; i < 100; ++i) progress.OnEvaluated(1000, true);
  for (int i = 0; i < 5; ++i) progress.OnForwardedUnread(1000);
  EXPECT_TRUE(progress.mostly_forwarded());
}

}  // namespace
}  // namespace perceptrond
