// What a stream claims of the connections before, when it connects again; and when it gives up.
#include <gtest/gtest.h>

#include "client/error.h"
#include "client/learn_stream.h"
#include "client/retry.h"
#include "tests/client/fake_server.h"

namespace perceptrond::client {
namespace {

using Fate = FakeServer::Fate;

TEST(LearnStreamClaim, NamesTheRevisionAndTheHistoryOfWhatWasAcknowledged) {
  Row row;
  row.indices = {0};
  row.label = 1;
  FakeServer server;
  server.history_id = "first";
  v1::Producer::Resume claim;
  server.on_open = [&](int64_t before, const v1::LearnStreamRequest& request) {
    if (before > 0) claim = request.producer().resume();
    return grpc::Status::OK;
  };
  server.on_result = [](const v1::LearnStreamRequest& request, v1::LearnResult* result) {
    if (request.columns().row_ends_size() > 0) result->set_revision(17);
  };
  int messages = 0;
  server.fate = [&](const v1::LearnStreamRequest&) {
    return ++messages == 2 ? Fate::kDropBefore : Fate::kAnswer;
  };
  LearnOptions options;
  options.producer_id = "p";
  options.retry.initial_backoff = absl::Microseconds(100);
  auto opened = LearnStream::Open(server.Connect(), "m", options);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const std::unique_ptr<LearnStream> stream = *std::move(opened);
  ASSERT_TRUE(stream->Push(row).ok());
  ASSERT_TRUE(stream->MarkPass().ok());
  ASSERT_TRUE(stream->Push(row).ok());
  ASSERT_TRUE(stream->Finish().ok());
  EXPECT_EQ(claim.acknowledged_offset(), 0);
  EXPECT_EQ(claim.acknowledged_revision(), 17);
  EXPECT_EQ(claim.history_id(), "first");
}

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
