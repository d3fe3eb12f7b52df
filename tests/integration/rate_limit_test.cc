// A principal above its rate of examples is slowed down, and others are not.
#include "tests/integration/access_fixture.h"

namespace perceptrond::testing {
namespace {

class RateLimitTest : public AccessTest {
 protected:
  RateLimitTest() {
    Write(absl::StrCat(Text(), "principal { name: 'slow' token_sha256: '", Digest("slow-token"),
                       "' allow { role: ADMIN models: '' } max_examples_per_second: 100 }\n"));
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    while (!CreateAs("slow", "m").ok() && absl::Now() < deadline) {
    }
  }
  static v1::ExampleColumns Rows(int rows) {
    v1::ExampleColumns columns;
    columns.set_dense_width(2);
    for (int i = 0; i < rows; ++i) {
      columns.add_labels(1);
      columns.add_values(1);
      columns.add_values(1);
    }
    return columns;
  }
};

TEST_F(RateLimitTest, AUnaryCallAboveTheRateIsRefusedWithTheTimeToWait) {
  const auto learn = [&](const std::string& principal) {
    grpc::ClientContext context;
    Authorize(context, principal);
    v1::LearnRequest request;
    request.set_model("models/m");
    // The debt of a minute: it is there however late the next call comes.
    *request.mutable_columns() = Rows(6000);
    v1::LearnResponse response;
    return learning_->Learn(&context, request, &response);
  };
  ASSERT_TRUE(learn("slow").ok());
  const grpc::Status refused = learn("slow");
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Reason(refused), "RATE_LIMITED");
  EXPECT_GT(RetryDelay(refused), absl::Seconds(1));
  // It may do what takes no examples, and others are not concerned.
  EXPECT_TRUE(GetAs("slow", "m").ok());
  EXPECT_TRUE(learn("admin").ok());
  const std::string metrics =
      RunCommand("curl -s -H 'Authorization: Bearer scraper-token' http://127.0.0.1:" +
                 std::to_string(server_.metrics_port()) + "/metrics")
          .out;
  EXPECT_THAT(metrics, ::testing::HasSubstr(
                           "perceptrond_principal_examples_total{principal=\"slow\"} 6000"));
  EXPECT_THAT(metrics,
              ::testing::HasSubstr("perceptrond_principal_limited_total{principal=\"slow\"} 1"));
}

TEST_F(RateLimitTest, APausedStreamEndsWhenItsClientCancels) {
  grpc::ClientContext context;
  Authorize(context, "slow");
  const auto stream = learning_->LearnStream(&context);
  v1::LearnStreamRequest request;
  request.set_model("models/m");
  *request.mutable_columns() = Rows(5000);
  stream->Write(request);
  v1::LearnStreamResponse response;
  ASSERT_TRUE(stream->Read(&response));
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  // The server's drain would wait for a stream that does not end.
  const absl::Time begin = absl::Now();
  EXPECT_EQ(server_.Terminate(), 0);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(20));
}

}  // namespace
}  // namespace perceptrond::testing
