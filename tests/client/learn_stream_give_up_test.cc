// When a stream gives up that connects again and again.
#include <gtest/gtest.h>

#include "client/error.h"
#include "client/learn_stream.h"
#include "client/retry.h"
#include "tests/client/fake_server.h"

namespace perceptrond::client {
namespace {

TEST(LearnStreamGiveUp, OpeningAConnectionIsNoProgressIfWhatIsSentIsRefusedEachTime) {
  FakeServer server;
  server.on_result = [](const v1::LearnStreamRequest&, v1::LearnResult* result) {
    *result->mutable_error() = ToRpcStatus(
        MakeError(absl::StatusCode::kUnavailable, "KEEPER_UNREACHABLE", "it does not answer"));
  };
  LearnOptions options;
  options.producer_id = "p";
  options.retry.initial_backoff = absl::Milliseconds(1);
  options.retry.max_backoff = absl::Milliseconds(1);
  options.retry.give_up_after = absl::Milliseconds(300);
  absl::StatusOr<std::unique_ptr<LearnStream>> stream =
      LearnStream::Open(server.Connect(), "m", options);
  ASSERT_TRUE(stream.ok()) << stream.status();
  Row row;
  row.indices = {0};
  row.label = 1;
  ASSERT_TRUE((*stream)->Push(row).ok());
  const absl::Status status = (*stream)->Finish().status();
  EXPECT_EQ(ErrorReason(status), "KEEPER_UNREACHABLE");
  EXPECT_EQ(GaveUpAfter(status), absl::Milliseconds(300));
  EXPECT_GT(server.openings(), 2);
}

}  // namespace
}  // namespace perceptrond::client
