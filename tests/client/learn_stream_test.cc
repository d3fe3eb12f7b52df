#include "client/learn_stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include "client/error.h"
#include "tests/client/fake_server.h"

namespace perceptrond::client {
namespace {

using Fate = FakeServer::Fate;

LearnOptions TestOptions() {
  LearnOptions options;
  options.producer_id = "p";
  options.rows_per_message = 4;
  options.window_messages = 5;
  options.retry.initial_backoff = absl::Microseconds(100);
  options.retry.max_backoff = absl::Milliseconds(1);
  options.retry.now = StandingClock;
  return options;
}

std::unique_ptr<LearnStream> MustOpen(FakeServer* server, LearnOptions options) {
  auto stream = LearnStream::Open(server->Connect(), "m", std::move(options));
  EXPECT_TRUE(stream.ok()) << stream.status();
  return stream.ok() ? *std::move(stream) : nullptr;
}

TEST(LearnStream, HasTheReportOfTheLatestAnswerIfItAskedForOne) {
  for (const bool asked : {false, true}) {
    FakeServer server;
    server.answers_together = 3;
    int messages = 0;
    server.fate = [&](const v1::LearnStreamRequest&) {
      return ++messages % 5 == 0 ? Fate::kDropAfter : Fate::kAnswer;
    };
    LearnOptions options = TestOptions();
    options.include_report = asked;
    auto stream = MustOpen(&server, std::move(options));
    EXPECT_FALSE(stream->report().has_value());
    uint32_t id = 0;
    for (int pass = 1; pass <= 6; ++pass) {
      for (int row = 0; row < 17; ++row, ++id) ASSERT_TRUE(stream->Push(Example(id), id).ok());
      ASSERT_TRUE(stream->MarkPass().ok());
      ASSERT_EQ(stream->report().has_value(), asked);
      if (!asked) continue;
      EXPECT_EQ(stream->report()->examples(), server.producer("p").account.size());
    }
    ASSERT_TRUE(stream->Finish().ok());
  }
}

TEST(LearnStream, SendsNoMessageThatIsLargerThanTheServerSays) {
  for (const uint32_t most_names : {0u, 1u << 16}) {
    FakeServer server;
    server.most_message_bytes = 64 << 10;
    server.most_table_names = most_names;
    LearnOptions options = TestOptions();
    options.rows_per_message = 1000;
    auto stream = MustOpen(&server, std::move(options));
    for (uint32_t id = 0; id < 40; ++id) {
      ASSERT_TRUE(stream->Push(LargeExample(id, id % 10 == 9 ? 60'000 : 4'000), id).ok());
      const absl::Status refused = stream->Push(LargeExample(id, 70'000));
      EXPECT_EQ(ErrorReason(refused), "ROW_TOO_LARGE");
    }
    const auto totals = stream->Finish();
    ASSERT_TRUE(totals.ok()) << totals.status();
    EXPECT_EQ(totals->examples, 40U);
  }
}

// The contract: however the connection breaks, the server's account ends up as every example once, in order; and the
// producer hears of every row exactly once, too.
class LearnStreamUnderFaults : public testing::TestWithParam<uint32_t> {};

TEST_P(LearnStreamUnderFaults, AccountsForEveryExampleExactlyOnceInOrder) {
  std::mt19937 random(GetParam());
  std::mt19937 fates(GetParam() + 1000);  // drawn by the server's threads
  const bool named = GetParam() % 3 == 1;
  FakeServer server;
  server.crash_on_drop = GetParam() % 2 == 0;
  server.answer_opening = GetParam() % 3 == 0;
  server.answers_together = 1 + static_cast<int>(GetParam() % 4);
  server.most_table_names = 4U << 4 * (GetParam() % 5);
  int faults = 0;
  server.fate = [&](const v1::LearnStreamRequest&) {
    const uint32_t drawn = fates() % 12;
    if (drawn >= 3 || faults == 40) return Fate::kAnswer;
    ++faults;
    return drawn == 0 ? Fate::kDropBefore : drawn == 1 ? Fate::kDropHalfway : Fate::kDropAfter;
  };
  std::vector<uint32_t> reported;
  LearnOptions options = TestOptions();
  options.window_messages = static_cast<size_t>(server.answers_together) + random() % 8;
  options.name_table_size = GetParam() % 7 == 0 ? 64 : 1 << 16;
  options.compact = named && GetParam() % 5 == 0;
  options.on_result = [&](const LearnAnswer& answer) {
    reported.insert(reported.end(), answer.tags.begin(), answer.tags.end());
  };
  auto stream = MustOpen(&server, std::move(options));
  uint32_t id = 0;
  for (int pass = 1; pass <= 3; ++pass) {
    const uint32_t rows = random() % 150;
    for (uint32_t i = 0; i < rows; ++i, ++id) {
      ASSERT_TRUE(stream->Push(named ? NamedExample(id) : Example(id), id).ok());
      if (random() % 20 == 0) {
        ASSERT_TRUE(stream->Flush().ok());
      }
    }
    const auto summary = stream->MarkPass();
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_EQ(summary->number(), pass);
    EXPECT_EQ(summary->examples(), id) << "the mark's answer was lost for good";
  }
  const auto totals = stream->Finish();
  ASSERT_TRUE(totals.ok()) << totals.status();
  EXPECT_EQ(server.producer("p").account, UpTo(id));
  EXPECT_EQ(server.producer("p").passes, 3);
  EXPECT_EQ(reported, UpTo(id));
  EXPECT_EQ(totals->acknowledged_offset, static_cast<int64_t>(id) - 1);
  EXPECT_EQ(totals->reconnects, faults);
}

INSTANTIATE_TEST_SUITE_P(Seeds, LearnStreamUnderFaults, testing::Range(0u, 32u));

TEST(LearnStream, AMessageHasNoMoreNewNamesThanAQuarterOfTheTable) {
  FakeServer server;
  server.most_table_names = 64;
  server.on_result = [&](const v1::LearnStreamRequest& request, v1::LearnResult*) {
    EXPECT_TRUE(request.columns().has_stream_names());
    EXPECT_LE(request.columns().stream_names().lengths_size(), 16);
  };
  LearnOptions options = TestOptions();
  options.rows_per_message = 100;
  options.name_table_size = 64;
  options.compact = true;  // which uses the table although most names leave it
  auto stream = MustOpen(&server, std::move(options));
  for (uint32_t id = 0; id < 300; ++id) ASSERT_TRUE(stream->Push(NamedExample(id)).ok());
  ASSERT_TRUE(stream->Finish().ok());
  EXPECT_EQ(server.producer("p").account, UpTo(300));
}

TEST(LearnStream, SaysHowLongItTriedBeforeItGaveUp) {
  FakeServer server;
  server.refusal = grpc::Status(grpc::StatusCode::UNAVAILABLE, "away");
  LearnOptions options = TestOptions();
  options.retry.give_up_after = absl::Milliseconds(10);
  options.retry.now = HurryingClock();
  EXPECT_EQ(GaveUpAfter(LearnStream::Open(server.Connect(), "m", options).status()),
            absl::Milliseconds(10));
  // It was not to be tried again.
  options.retry.give_up_after = absl::ZeroDuration();
  EXPECT_FALSE(GaveUpAfter(LearnStream::Open(server.Connect(), "m", options).status()).has_value());
}

TEST(LearnStream, CountsNoTimeInWhichNothingWasDueAsTimeWithoutAnAnswer) {
  FakeServer server;
  int dropped = 0;
  server.fate = [&](const v1::LearnStreamRequest&) {
    return dropped++ == 0 ? Fate::kDropBefore : Fate::kAnswer;
  };
  LearnOptions options = TestOptions();
  const auto hours = std::make_shared<std::atomic<int>>(0);
  options.retry.now = [hours] {
    return std::chrono::steady_clock::time_point(std::chrono::hours(hours->load()));
  };
  auto stream = MustOpen(&server, options);
  ++*hours;
  EXPECT_EQ(server.openings(), 1);
  ASSERT_TRUE(stream->Push(Example(0)).ok());
  const auto totals = stream->Finish();
  ASSERT_TRUE(totals.ok()) << totals.status();
  EXPECT_EQ(totals->reconnects, 1);
}

TEST(LearnStream, NamesItselfAtRandomWhereNobodyNamedIt) {
  FakeServer server;
  LearnOptions options = TestOptions();
  options.producer_id.clear();
  const auto one = MustOpen(&server, options);
  const auto other = MustOpen(&server, options);
  EXPECT_EQ(one->producer_id().size(), 32u);
  EXPECT_NE(one->producer_id(), other->producer_id());
}

TEST(LearnStream, NeverSendsUnnumberedRowsTwice) {
  FakeServer server;
  server.fate = [](const v1::LearnStreamRequest&) { return Fate::kDropAfter; };
  LearnOptions options = TestOptions();
  options.producer_id.clear();
  options.numbered = false;
  auto stream = MustOpen(&server, std::move(options));
  for (uint32_t id = 0; id < 3; ++id) ASSERT_TRUE(stream->Push(Example(id)).ok());
  EXPECT_TRUE(absl::IsUnavailable(stream->Finish().status()));
  EXPECT_EQ(server.producer("").account, UpTo(3));
  EXPECT_EQ(server.openings(), 1);
}

TEST(LearnStream, KeepsTheStreamWhenARowIsMalformed) {
  FakeServer server;
  auto stream = MustOpen(&server, TestOptions());
  Row twice = Example(0);
  twice.indices = {4, 4};
  EXPECT_TRUE(absl::IsInvalidArgument(stream->Push(twice)));
  EXPECT_TRUE(stream->status().ok());
  ASSERT_TRUE(stream->Push(Example(0)).ok());
  ASSERT_TRUE(stream->Finish().ok());
  EXPECT_EQ(server.producer("p").account, UpTo(1));
}

TEST(LearnStream, CancelReleasesABlockedPush) {
  FakeServer server;
  server.answers_together = 1000;
  LearnOptions options = TestOptions();
  options.window_messages = 1;
  options.rows_per_message = 1000;
  auto stream = MustOpen(&server, std::move(options));
  // The first message stays unanswered, so the second has to wait.
  ASSERT_TRUE(stream->Push(Example(0)).ok());
  ASSERT_TRUE(stream->Push(Example(1)).ok());
  ASSERT_TRUE(stream->Flush().ok());
  std::thread canceller([&] { stream->Cancel(); });
  ASSERT_TRUE(stream->Push(Example(2)).ok());
  const absl::Status status = stream->Flush();
  canceller.join();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

TEST(LearnStream, RefusesOptionsOutOfRange) {
  FakeServer server;
  LearnOptions options = TestOptions();
  options.rows_per_message = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(
      LearnStream::Open(server.Connect(), "m", std::move(options)).status()));
}

}  // namespace
}  // namespace perceptrond::client
