#include "client/predict_stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <numeric>
#include <thread>
#include <utility>

#include "tests/client/fake_server.h"

namespace perceptrond::client {
namespace {

Row UnlabeledRow(uint32_t id) {
  Row row;
  row.indices = {id};
  return row;
}

struct Collected {
  std::vector<uint64_t> tags;
  std::vector<float> scores;
};

PredictOptions Collecting(Collected* collected) {
  PredictOptions options;
  options.rows_per_message = 3;
  options.window_messages = 4;
  options.retry.initial_backoff = absl::Microseconds(100);
  options.retry.give_up_after = absl::Seconds(30);
  options.on_answer = [collected](const PredictAnswer& answer) {
    collected->tags.insert(collected->tags.end(), answer.tags.begin(), answer.tags.end());
    collected->scores.insert(collected->scores.end(), answer.response.scores().begin(),
                             answer.response.scores().end());
  };
  return options;
}

TEST(PredictStream, AnswersEveryRowInOrder) {
  FakeServer server;
  Collected collected;
  PredictStream stream(server.Connect(), "m", Collecting(&collected));
  for (uint32_t id = 0; id < 50; ++id) ASSERT_TRUE(stream.Push(UnlabeledRow(id), id).ok());
  ASSERT_TRUE(stream.Finish().ok());
  std::vector<uint64_t> expected(50);
  std::iota(expected.begin(), expected.end(), 0u);
  EXPECT_EQ(collected.tags, expected);
  EXPECT_EQ(collected.scores, std::vector<float>(expected.begin(), expected.end()));
}

TEST(PredictStream, AsksAgainWhereTheConnectionBroke) {
  FakeServer server;
  server.predict_break_after = 2;
  Collected collected;
  PredictStream stream(server.Connect(), "m", Collecting(&collected));
  for (uint32_t id = 0; id < 50; ++id) ASSERT_TRUE(stream.Push(UnlabeledRow(id), id).ok());
  ASSERT_TRUE(stream.Finish().ok());
  std::vector<uint64_t> expected(50);
  std::iota(expected.begin(), expected.end(), 0u);
  EXPECT_EQ(collected.tags, expected);
}

TEST(PredictStream, SaysThatItGaveUpAndEnds) {
  FakeServer server;
  server.predict_break_after = 0;
  Collected collected;
  std::atomic<int> ends = 0;
  PredictOptions options = Collecting(&collected);
  options.retry.give_up_after = absl::Milliseconds(10);
  options.on_end = [&] { ++ends; };
  {
    PredictStream stream(server.Connect(), "m", std::move(options));
    ASSERT_TRUE(stream.Push(UnlabeledRow(1)).ok());
    const absl::Status status = stream.Finish();
    EXPECT_TRUE(absl::IsUnavailable(status));
    EXPECT_EQ(GaveUpAfter(status), absl::Milliseconds(10));
  }
  EXPECT_TRUE(collected.tags.empty());
  EXPECT_EQ(ends, 1);
}

TEST(PredictStream, IsBrokenOffByItsOwner) {
  FakeServer server;
  server.predict_break_after = 0;
  Collected collected;
  PredictOptions options = Collecting(&collected);
  std::promise<void> broken;
  options.on_reconnect = [&, once = false](const absl::Status&) mutable {
    if (!std::exchange(once, true)) broken.set_value();
  };
  PredictStream stream(server.Connect(), "m", std::move(options));
  std::thread owner([&] {
    broken.get_future().wait();
    stream.Cancel();
  });
  ASSERT_TRUE(stream.Push(UnlabeledRow(1)).ok());
  EXPECT_TRUE(absl::IsCancelled(stream.Finish()));
  owner.join();
}

TEST(PredictStream, FinishesWithoutAnyRow) {
  FakeServer server;
  Collected collected;
  PredictStream stream(server.Connect(), "m", Collecting(&collected));
  EXPECT_TRUE(stream.Finish().ok());
}

}  // namespace
}  // namespace perceptrond::client
