#include "server/fleet/example_count.h"

#include <map>

#include "perceptron/v1/learning_service.pb.h"
#include "server/rpc/timed_request.h"
#include "server/sessions/nested_examples.h"
#include "tests/server/rpc/rpc_server.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

// The count of the server that reads the request.
size_t CountParsed(const v1::LearnRequest& request) {
  grpc::ByteBuffer bytes = testing::ToBytes(request.SerializeAsString());
  RequestWithExamples<v1::LearnRequest> parsed;
  EXPECT_OK(ParseMessage(bytes, 1 << 20, parsed));
  return CountRequestRows(parsed);
}

TEST(ExampleCountTest, EachFormCountsAsTheReaderOfTheRequestDoes) {
  for (const auto& [text, count] : std::map<std::string, size_t>{
           {"model: 'models/m'", 0},
           {"examples { dense { values: 1 } } examples {} examples { text: 'a' }", 3},
           {"columns { row_ends: [1000, 2000, 3000] values: 1 } examples {}", 4},
           {"columns { dense_width: 4 values: [1, 2, 3, 4, 5, 6, 7, 8] }", 2},
           {"columns { dense_width: 4 half_values: '0123456789abcdef0123456789abcdef' }", 4}}) {
    const auto request = testing::FromText<v1::LearnRequest>(text);
    grpc::ByteBuffer bytes = testing::ToBytes(request.SerializeAsString());
    EXPECT_EQ(CountExamplesIn(bytes), count) << text;
    EXPECT_EQ(CountParsed(request), count) << text;
  }
}

TEST(ExampleCountTest, NumbersThatAreNotPackedCountToo) {
  const std::string unpacked = std::string("\x08\x01\x08\x02", 4);
  const std::string request = std::string("\x1a\x04", 2) + unpacked;
  v1::LearnRequest parsed;
  ASSERT_TRUE(parsed.ParseFromString(request));
  EXPECT_EQ(parsed.columns().row_ends_size(), 2);
  grpc::ByteBuffer bytes = testing::ToBytes(request);
  EXPECT_EQ(CountExamplesIn(bytes), 2U);
}

TEST(ExampleCountTest, NumbersOfAnotherWireTypeAreUnknownFields) {
  // row_ends in four bytes; and dense_width 1 with a value that is a varint.
  for (const std::string& columns :
       {std::string("\x0d\x01\x00\x00\x00", 5), std::string("\x20\x01\x18\x01", 4)}) {
    const std::string request = std::string({'\x1a', static_cast<char>(columns.size())}) + columns;
    v1::LearnRequest parsed;
    ASSERT_TRUE(parsed.ParseFromString(request));
    EXPECT_EQ(CountRows(parsed.columns()), 0U);
    grpc::ByteBuffer bytes = testing::ToBytes(request);
    EXPECT_EQ(CountExamplesIn(bytes), 0U);
  }
}

TEST(ExampleCountTest, AMalformedRequestHasNone) {
  v1::LearnRequest request;
  for (int i = 0; i < 3; ++i) request.mutable_columns()->add_row_ends(300);
  const std::string whole = request.SerializeAsString();
  for (size_t size = 0; size < whole.size(); ++size) {
    grpc::ByteBuffer bytes = testing::ToBytes(whole.substr(0, size));
    EXPECT_EQ(CountExamplesIn(bytes), 0U) << size;
  }
}

}  // namespace
}  // namespace perceptrond
