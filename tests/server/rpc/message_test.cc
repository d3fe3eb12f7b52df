// Messages to bytes and back, and what is said where that cannot be.
#include "server/rpc/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/cord.h"
#include "google/rpc/error_details.pb.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond {
namespace {

using ::perceptron::v1::Model;
using ::testing::HasSubstr;

google::rpc::ErrorInfo Info(const absl::Status& status) {
  google::rpc::ErrorInfo info;
  info.ParseFromString(std::string(status.GetPayload(kErrorInfoUrl).value_or(absl::Cord())));
  return info;
}

Model SomeModel() {
  Model model;
  model.set_description(std::string(100, 'x'));
  return model;
}

TEST(Message, IsTheSameAgain) {
  grpc::ByteBuffer bytes;
  ASSERT_TRUE(SerializeMessage(SomeModel(), bytes).ok());
  Model again;
  ASSERT_TRUE(ParseMessage(bytes, 1000, again).ok());
  EXPECT_EQ(again.description(), SomeModel().description());
}

TEST(Message, AnAnswerTooLargeForAMessageIsAnErrorAndNotAnEmptyAnswer) {
  grpc::ByteBuffer bytes;
  EXPECT_TRUE(SerializeMessage(SomeModel(), bytes, SomeModel().ByteSizeLong()).ok());
  const absl::Status status = SerializeMessage(SomeModel(), bytes, SomeModel().ByteSizeLong() - 1);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(Info(status).reason(), "ANSWER_TOO_LARGE");
  EXPECT_EQ(Info(status).metadata().at("bytes"), std::to_string(SomeModel().ByteSizeLong()));
  EXPECT_EQ(bytes.Length(), 0);
}

TEST(Message, BytesThatAreNoMessageAreABadRequestThatNamesTheType) {
  const grpc::Slice slice("\xff\xff\xff");
  grpc::ByteBuffer bytes(&slice, 1);
  Model model;
  const absl::Status status = ParseMessage(bytes, 1000, model);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(Info(status).reason(), "MALFORMED_MESSAGE");
  google::rpc::BadRequest bad;
  ASSERT_TRUE(
      bad.ParseFromString(std::string(status.GetPayload(kBadRequestUrl).value_or(absl::Cord()))));
  ASSERT_EQ(bad.field_violations_size(), 1);
  EXPECT_EQ(bad.field_violations(0).field(), "perceptron.v1.Model");
}

}  // namespace
}  // namespace perceptrond
