#include "client/predict_stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "client/error.h"
#include "tests/client/fake_server.h"

namespace perceptrond::client {
namespace {

struct Collected {
  std::vector<uint64_t> tags;
  std::vector<float> scores;
};

PredictOptions Collecting(Collected* collected) {
  PredictOptions options;
  options.rows_per_message = 3;
  options.window_messages = 4;
  options.retry.initial_backoff = options.retry.max_backoff = absl::Microseconds(100);
  options.retry.now = StandingClock;
  options.on_answer = [collected](const PredictAnswer& answer) {
    collected->tags.insert(collected->tags.end(), answer.tags.begin(), answer.tags.end());
    collected->scores.insert(collected->scores.end(), answer.response.scores().begin(),
                             answer.response.scores().end());
  };
  return options;
}

TEST(PredictStream, AnswersEveryRowInOrderWhateverBreaksAndWhateverTableThereIs) {
  for (const uint32_t most : {0u, 8u, 1u << 16}) {
    for (const int break_after : {-1, 2}) {
      for (const bool refuses : {false, true}) {
        for (const bool named : {false, true}) {
          FakeServer server;
          server.most_table_names = most;
          server.refuses_name_tables = refuses;
          server.predict_break_after = break_after;
          Collected collected;
          PredictOptions options = Collecting(&collected);
          options.compact = named && most == 8;
          PredictStream stream(server.Connect(), "m", std::move(options));
          const std::vector<uint32_t> ids = UpTo(50);
          for (const uint32_t id : ids)
            ASSERT_TRUE(stream.Push(named ? NamedExample(id) : Example(id), id).ok());
          ASSERT_TRUE(stream.Finish().ok());
          EXPECT_EQ(collected.tags, std::vector<uint64_t>(ids.begin(), ids.end()));
          EXPECT_EQ(collected.scores, std::vector<float>(ids.begin(), ids.end()));
        }
      }
    }
  }
}

TEST(PredictStream, SendsNoMessageThatIsLargerThanTheServerSays) {
  for (const uint32_t most_names : {0u, 1u << 16}) {
    FakeServer server;
    server.most_message_bytes = 64 << 10;
    server.most_table_names = most_names;
    Collected collected;
    PredictOptions options = Collecting(&collected);
    options.rows_per_message = 1000;
    PredictStream stream(server.Connect(), "m", std::move(options));
    for (uint32_t id = 0; id < 40; ++id) {
      ASSERT_TRUE(stream.Push(LargeExample(id, id % 10 == 9 ? 60'000 : 4'000), id).ok());
      const absl::Status refused = stream.Push(LargeExample(id, 70'000));
      EXPECT_EQ(ErrorReason(refused), "ROW_TOO_LARGE");
    }
    EXPECT_EQ(stream.Finish(), absl::OkStatus());
    EXPECT_EQ(collected.tags.size(), 40U);
  }
}

TEST(PredictStream, SaysThatItGaveUpAndEnds) {
  FakeServer server;
  server.predict_break_after = 0;
  Collected collected;
  std::atomic<int> ends = 0;
  PredictOptions options = Collecting(&collected);
  options.retry.give_up_after = absl::Milliseconds(10);
  options.retry.now = HurryingClock();
  options.on_end = [&] { ++ends; };
  {
    PredictStream stream(server.Connect(), "m", std::move(options));
    const absl::Status status = stream.Push(Example(1));
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
  EXPECT_TRUE(absl::IsCancelled(stream.Push(Example(1))));
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
