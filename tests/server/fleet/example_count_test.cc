#include "server/fleet/example_count.h"

#include <gtest/gtest.h>

#include <string>

#include "perceptron/v1/learning_service.pb.h"
#include "server/rpc/message.h"
#include "server/rpc/timed_request.h"
#include "server/sessions/nested_examples.h"
#include "tests/support/status.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

grpc::ByteBuffer BytesOf(const std::string& text) {
  const grpc::Slice slice(text);
  return {&slice, 1};
}

// As the server that reads the request counts them.
size_t CountParsed(const v1::LearnRequest& request) {
  grpc::ByteBuffer bytes = BytesOf(request.SerializeAsString());
  RequestWithExamples<v1::LearnRequest> parsed;
  EXPECT_OK(ParseMessage(bytes, 1 << 20, parsed));
  return CountRequestRows(parsed);
}

size_t Count(const v1::LearnRequest& request) {
  grpc::ByteBuffer bytes = BytesOf(request.SerializeAsString());
  return CountExamplesIn(bytes);
}

TEST(ExampleCountTest, EachFormCountsAsTheReaderOfTheRequestDoes) {
  v1::LearnRequest request;
  request.set_model("models/m");
  EXPECT_EQ(Count(request), 0U);
  for (int i = 0; i < 5; ++i) request.add_examples()->mutable_dense()->add_values(1);
  EXPECT_EQ(Count(request), 5U);
  for (int i = 0; i < 3; ++i) request.mutable_columns()->add_row_ends(1000 * (i + 1));
  request.mutable_columns()->add_values(1);
  EXPECT_EQ(Count(request), 8U);
  EXPECT_EQ(Count(request), CountParsed(request));
  request.mutable_columns()->set_dense_width(4);
  for (int i = 0; i < 40; ++i) request.mutable_columns()->add_values(1);
  EXPECT_EQ(Count(request), 15U);
  EXPECT_EQ(Count(request), CountParsed(request));
  request.mutable_columns()->set_half_values(std::string(2 * 4 * 20, '\0'));
  EXPECT_EQ(Count(request), 25U);
  EXPECT_EQ(Count(request), CountParsed(request));
}

TEST(ExampleCountTest, NumbersThatAreNotPackedCountToo) {
  const std::string unpacked = std::string("\x08\x01\x08\x02", 4);
  const std::string request = std::string("\x1a\x04", 2) + unpacked;
  v1::LearnRequest parsed;
  ASSERT_TRUE(parsed.ParseFromString(request));
  EXPECT_EQ(parsed.columns().row_ends_size(), 2);
  grpc::ByteBuffer bytes = BytesOf(request);
  EXPECT_EQ(CountExamplesIn(bytes), 2U);
}

TEST(ExampleCountTest, AMalformedRequestHasNone) {
  v1::LearnRequest request;
  for (int i = 0; i < 3; ++i) request.mutable_columns()->add_row_ends(300);
  const std::string whole = request.SerializeAsString();
  for (size_t size = 0; size < whole.size(); ++size) {
    grpc::ByteBuffer bytes = BytesOf(whole.substr(0, size));
    EXPECT_EQ(CountExamplesIn(bytes), 0U) << size;
  }
}

}  // namespace
}  // namespace perceptrond
