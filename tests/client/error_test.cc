#include "client/error.h"

#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"

namespace perceptrond::client {
namespace {

google::rpc::Status Detailed() {
  google::rpc::Status status;
  status.set_code(11);
  status.set_message("a gap");
  google::rpc::ErrorInfo info;
  info.set_reason("OFFSET_GAP");
  info.set_domain("perceptrond");
  (*info.mutable_metadata())["expected_offset"] = "17";
  status.add_details()->PackFrom(info);
  google::rpc::BadRequest bad;
  auto* violation = bad.add_field_violations();
  violation->set_field("first_offset");
  violation->set_description("too high");
  status.add_details()->PackFrom(bad);
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_nanos(250'000'000);
  status.add_details()->PackFrom(retry);
  return status;
}

TEST(Error, KeepsDetailsFromTheWireToTheHelpers) {
  const grpc::Status wire(grpc::StatusCode::OUT_OF_RANGE, "a gap", Detailed().SerializeAsString());
  const absl::Status status = ToAbslStatus(wire);
  EXPECT_TRUE(absl::IsOutOfRange(status));
  EXPECT_EQ(status.message(), "a gap");
  EXPECT_EQ(ErrorReason(status), "OFFSET_GAP");
  EXPECT_EQ(ErrorMetadata(status).at("expected_offset"), "17");
  ASSERT_EQ(FieldViolations(status).size(), 1u);
  EXPECT_EQ(FieldViolations(status)[0].first, "first_offset");
  EXPECT_EQ(RetryDelay(status), absl::Milliseconds(250));
}

// HAProxy resets a stream that the server has ended early, with CANCEL.
TEST(Error, HasTheServersCodeAlsoWhereAProxyHasCancelledTheCall) {
  const grpc::Status wire(grpc::StatusCode::CANCELLED, "a gap", Detailed().SerializeAsString());
  EXPECT_TRUE(absl::IsOutOfRange(ToAbslStatus(wire)));
}

TEST(Error, GoesThereAndBackWithoutLoss) {
  const absl::Status status = ToAbslStatus(Detailed());
  EXPECT_EQ(ToAbslStatus(ToGrpcStatus(status)), status);
  EXPECT_EQ(ToAbslStatus(ToRpcStatus(status)), status);
  EXPECT_TRUE(ToAbslStatus(grpc::Status::OK).ok());
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
}

TEST(Error, HasNoReasonWhereTheServerGaveNone) {
  const absl::Status plain = ToAbslStatus(grpc::Status(grpc::StatusCode::UNAVAILABLE, "refused"));
  EXPECT_TRUE(absl::IsUnavailable(plain));
  EXPECT_EQ(ErrorReason(plain), "");
  EXPECT_FALSE(RetryDelay(plain).has_value());
  const absl::Status garbled =
      ToAbslStatus(grpc::Status(grpc::StatusCode::ABORTED, "why", "\xff\xff\xff"));
  EXPECT_TRUE(absl::IsAborted(garbled));
  EXPECT_EQ(garbled.message(), "why");
}

}  // namespace
}  // namespace perceptrond::client
