// Errors fit into a call's trailers, and stay what they are.
#include "server/rpc/status.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "core/model/error.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace perceptrond {
namespace {

std::string Repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// gRPC writes a byte beyond ASCII as three in the message; the details go in base64.
size_t TrailerBytes(const grpc::Status& status) {
  return 3 * status.error_message().size() + 4 * (status.error_details().size() + 2) / 3;
}

class LongErrors : public ::testing::TestWithParam<int> {};

TEST_P(LongErrors, AreCutBetweenCharactersAndKeepTheirDetails) {
  // Characters of two bytes, at every offset against the cut.
  const std::string text =
      std::string(static_cast<size_t>(GetParam()), 'a') + Repeated("\u00e9", 20000);
  for (const absl::Status& error :
       {InvalidField("INVALID_FIELD", text, text),
        MakeError(absl::StatusCode::kNotFound, "MODEL_NOT_FOUND", text, {{"model", text}})}) {
    const grpc::Status status = ToGrpc(error);
    EXPECT_EQ(static_cast<int>(status.error_code()), static_cast<int>(error.code()));
    EXPECT_LT(TrailerBytes(status), 7000U);
    google::rpc::Status details;
    ASSERT_TRUE(details.ParseFromString(status.error_details()));
    EXPECT_GT(details.message().size(), 500U);
    bool has_reason = false;
    for (const google::protobuf::Any& detail : details.details()) {
      google::rpc::ErrorInfo info;
      google::rpc::BadRequest request;
      if (detail.UnpackTo(&info)) has_reason = !info.reason().empty();
      if (detail.UnpackTo(&request)) {
        EXPECT_GT(request.field_violations(0).description().size(), 300U);
      }
    }
    EXPECT_TRUE(has_reason);
  }
}

INSTANTIATE_TEST_SUITE_P(Offsets, LongErrors, ::testing::Values(0, 1));

}  // namespace
}  // namespace perceptrond
