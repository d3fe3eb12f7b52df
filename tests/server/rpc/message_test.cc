// Messages are parsed and serialized, or rejected with a reason; errors fit a call's trailers.
#include "server/rpc/message.h"

#include "core/error/error.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "perceptron/v1/model.pb.h"
#include "tests/server/rpc/rpc_server.h"

namespace perceptrond::message_test {
namespace {

using ::perceptron::v1::Model;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Model SomeModel() {
  Model model;
  model.set_description(std::string(100, 'x'));
  return model;
}

TEST(Message, AnAnswerTooLargeForAMessageIsAnErrorAndNotAnEmptyAnswer) {
  grpc::ByteBuffer bytes;
  EXPECT_TRUE(SerializeMessage(SomeModel(), bytes, SomeModel().ByteSizeLong()).ok());
  const absl::Status status = SerializeMessage(SomeModel(), bytes, SomeModel().ByteSizeLong() - 1);
  google::rpc::Status proto;
  ToProto(status, proto);
  EXPECT_EQ(testing::Outcome(proto), "RESOURCE_EXHAUSTED ANSWER_TOO_LARGE");
  EXPECT_EQ(testing::Metadata(proto, "bytes"), std::to_string(SomeModel().ByteSizeLong()));
  EXPECT_EQ(bytes.Length(), 0);
}

TEST(Message, MalformedBytesAreABadRequestThatNamesTheType) {
  grpc::ByteBuffer bytes = testing::ToBytes("\xff\xff\xff");
  Model model;
  EXPECT_EQ(testing::Outcome(ToGrpc(ParseMessage(bytes, 1000, model))),
            "INVALID_ARGUMENT MALFORMED_MESSAGE perceptron.v1.Model");
}

// Its checksum can be computed by anyone.
TEST(PageToken, IsReadOnlyIfItHoldsWhatItsListPutsThere) {
  const std::string numbers = MakePageToken("list", {1, 2, ~uint64_t{0}});
  EXPECT_THAT(ReadPageNumbers("list", numbers, 3).value(), ElementsAre(1, 2, ~uint64_t{0}));
  EXPECT_THAT(ReadPageNumbers("list", "", 3).value(), IsEmpty());
  EXPECT_TRUE(absl::IsInvalidArgument(ReadPageNumbers("other list", numbers, 3).status()));
  std::string changed = numbers;
  changed.back() = changed.back() == 'A' ? 'B' : 'A';
  for (const std::string& other : {changed, numbers + "A", numbers.substr(1), std::string("*/")})
    EXPECT_TRUE(absl::IsInvalidArgument(ReadPageNumbers("list", other, 3).status())) << other;
  const std::string long_number = "1 2 " + std::string(1000, '0') + "3";
  for (const absl::string_view content :
       {"", "1", "1 2", "1 2 3 4", "1 2 ", "1  3", "1 2 x", "1 2 -3", "1 2 18446744073709551616",
        long_number.c_str()}) {
    const absl::Status status = ReadPageNumbers("list", MakePageToken("list", content), 3).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << content;
  }
  const auto name = [](absl::string_view content) {
    return ReadPageName("list", MakePageToken("list", content), kModelCollection);
  };
  EXPECT_EQ(name("models/a").value(), "models/a");
  EXPECT_EQ(ReadPageName("list", "", kModelCollection).value(), "");
  for (const char* content : {"", "a", "models/", "models/a/b", "aliases/a", "models/\xff"})
    EXPECT_TRUE(absl::IsInvalidArgument(name(content).status())) << content;
}

std::string Repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// gRPC writes a byte beyond ASCII as three in the message; the details go in base64.
size_t TrailerBytes(const grpc::Status& status) {
  return 3 * status.error_message().size() + 4 * (status.error_details().size() + 2) / 3;
}

TEST(Errors, AreTruncatedBetweenCharactersToFitTrailersAndKeepTheirDetails) {
  // Characters of two bytes, at every offset against the cut.
  for (const std::string offset : {"", "a"}) {
    const std::string text = offset + Repeated("\u00e9", 20000);
    for (const absl::Status& error :
         {InvalidField("INVALID_FIELD", text, text),
          MakeError(absl::StatusCode::kNotFound, "MODEL_NOT_FOUND", text, {{"model", text}})}) {
      const grpc::Status status = ToGrpc(error);
      EXPECT_EQ(static_cast<int>(status.error_code()), static_cast<int>(error.code()));
      EXPECT_LT(TrailerBytes(status), 7000U);
      google::rpc::Status details;
      ASSERT_TRUE(details.ParseFromString(status.error_details()));
      EXPECT_GT(details.message().size(), 500U);
      EXPECT_NE(testing::Reason(details), "");
      for (const google::protobuf::Any& detail : details.details()) {
        google::rpc::BadRequest request;
        if (detail.UnpackTo(&request)) {
          EXPECT_GT(request.field_violations(0).description().size(), 300U);
        }
      }
    }
  }
}

// Names are looked up before a request is parsed, and repeated in errors: Protobuf reads no message whose strings are not UTF-8.
TEST(Errors, RepeatBytesThatAreNotUtf8SoThatTheirDetailsCanBeRead) {
  const std::string bytes = "a\xff\xc3(\xed\xa0\x80z";
  const std::string shown = "a\uFFFD\uFFFD(\uFFFD\uFFFD\uFFFDz";
  for (const absl::Status& error :
       {InvalidField("INVALID_FIELD", bytes, bytes), absl::InternalError(bytes),
        MakeError(absl::StatusCode::kNotFound, "MODEL_NOT_FOUND", bytes, {{"model", bytes}})}) {
    google::rpc::Status details;
    ASSERT_TRUE(details.ParseFromString(ToGrpc(error).error_details()));
    EXPECT_THAT(details.message(), ::testing::HasSubstr(shown));
    for (const google::protobuf::Any& detail : details.details()) {
      google::rpc::ErrorInfo info;
      google::rpc::BadRequest request;
      ASSERT_TRUE(detail.Is<google::rpc::ErrorInfo>() ? detail.UnpackTo(&info)
                                                      : detail.UnpackTo(&request));
      for (const auto& [key, value] : info.metadata()) EXPECT_EQ(value, shown);
      for (const auto& violation : request.field_violations())
        EXPECT_EQ(violation.description(), shown);
    }
  }
}

}  // namespace
}  // namespace perceptrond::message_test
