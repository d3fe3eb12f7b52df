// Calls of every kind are counted once, under their method's name, by the interceptor as the server
// has it.
#include "server/metrics/rpc_metrics.h"

#include "perceptron/v1/learning_service.pb.h"
#include "perceptron/v1/model_service.pb.h"
#include "tests/server/rpc/rpc_server.h"

namespace perceptrond::rpc_metrics_test {
namespace {

using namespace ::perceptrond::testing;

constexpr char kGetModel[] = "/perceptron.v1.ModelService/GetModel";
constexpr char kWatchModel[] = "/perceptron.v1.ModelService/WatchModel";
constexpr char kLearnStream[] = "/perceptron.v1.LearningService/LearnStream";

class RpcMetricsTest : public ::testing::Test {
 protected:
  RpcMetricsTest() {
    for (const auto* message : {perceptron::v1::GetModelRequest::descriptor(),
                                perceptron::v1::LearnStreamRequest::descriptor()})
      metrics_.AddService(*message->file()->service(0));
    RpcServer::Interceptors interceptors;
    interceptors.push_back(MakeRpcMetricsInterceptor(metrics_));
    server_ = std::make_unique<RpcServer>(
        [this](const std::string&) -> const Call::Method& { return method_; }, 1,
        std::move(interceptors));
  }

  // One call that sends so many messages and reads until the end.
  grpc::Status Exchange(const std::string& path, int messages, const std::string& message = "m") {
    ClientCall call(server_->Connect(), path);
    for (int i = 0; i < messages; ++i) call.Write(message);
    call.WritesDone();
    for (std::string answer; call.Read(answer);) {
    }
    return call.Finish();
  }
  // Once every call is over, `code` alone was counted, so often.
  const RpcMethodMetrics& ExpectHandled(const std::string& path, grpc::StatusCode code,
                                        uint64_t times) {
    server_->Stop();
    const RpcMethodMetrics& method = metrics_.Find(path);
    for (size_t i = 0; i < kRpcCodes; ++i) {
      EXPECT_EQ(method.handled(i), i == static_cast<size_t>(code) ? times : 0) << RpcCodeName(i);
    }
    EXPECT_EQ(method.started(), times);
    uint64_t observed = 0;
    for (size_t i = 0; i <= kRpcLatencyBounds.size(); ++i) observed += method.latency_bucket(i);
    EXPECT_EQ(observed, times);
    EXPECT_EQ(metrics_.in_flight(), 0);
    return method;
  }

  CallCounts counts_;
  RpcMetrics metrics_;
  Call::Method method_ = Make<Echo>(counts_);
  std::unique_ptr<RpcServer> server_;
};

TEST_F(RpcMetricsTest, CallsOfEveryTypeCountTheirMessagesBothWays) {
  const struct {
    const char* path;
    const char* type;
    uint64_t messages;
  } cases[] = {
      {kGetModel, "unary", 1}, {kWatchModel, "server_stream", 3}, {kLearnStream, "bidi_stream", 5}};
  for (const auto& one : cases)
    EXPECT_TRUE(Exchange(one.path, static_cast<int>(one.messages)).ok());
  for (const auto& one : cases) {
    const RpcMethodMetrics& method = ExpectHandled(one.path, grpc::StatusCode::OK, 1);
    EXPECT_STREQ(RpcTypeName(method.type()), one.type);
    EXPECT_EQ(method.received(), one.messages) << one.path;
    EXPECT_EQ(method.sent(), one.messages) << one.path;
    EXPECT_GT(method.latency_sum_seconds(), 0);
  }
}

TEST_F(RpcMetricsTest,
       AnOpenStreamIsInFlightAndOneThatTheClientCancelsIsCanceledWhateverTheServerSays) {
  // Finishes with OK once it is cancelled.
  class Content final : public Reactor {
   public:
    explicit Content(Call& call) : call_(call) {}
    void OnCancel() override { call_.Finish(grpc::Status::OK); }

   private:
    Call& call_;
  };
  method_ = [this](Call& call) {
    call.Bind(std::make_shared<Content>(call));
    counts_.Begin();
  };
  ClientCall call(server_->Connect(), kLearnStream);
  ASSERT_TRUE(counts_.AwaitBegun(1));
  EXPECT_EQ(metrics_.in_flight(), 1);
  call.Cancel();
  EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::CANCELLED);
  ExpectHandled(kLearnStream, grpc::StatusCode::CANCELLED, 1);
}

TEST_F(RpcMetricsTest, UnknownMethodsShareOneName) {
  for (const char* path : {"/perceptron.v1.ModelService/Guess", "/a/b", "/c/d", "/nonsense"})
    EXPECT_TRUE(Exchange(path, 1).ok());
  const RpcMethodMetrics& method = ExpectHandled("/no/such", grpc::StatusCode::OK, 4);
  EXPECT_EQ(method.service(), "unknown");
  EXPECT_EQ(method.method(), "unknown");
}

TEST(RpcMethodMetrics, LatenciesFallIntoTheBucketTheyDoNotExceedAndCodesNobodyDefinedAreUnknown) {
  RpcMethodMetrics method(RpcType::kUnary, "s", "m");
  method.Handled(0, absl::Microseconds(50));
  method.Handled(17, absl::Microseconds(51));
  method.Handled(static_cast<size_t>(-1), absl::Seconds(61));
  EXPECT_EQ(method.latency_bucket(0), 1);
  EXPECT_EQ(method.latency_bucket(1), 1);
  EXPECT_EQ(method.latency_bucket(kRpcLatencyBounds.size()), 1);
  EXPECT_NEAR(method.latency_sum_seconds(), 61.000101, 1e-9);
  EXPECT_EQ(method.handled(grpc::StatusCode::UNKNOWN), 2);
  EXPECT_STREQ(RpcCodeName(99), "Unknown");
  EXPECT_STREQ(RpcCodeName(grpc::StatusCode::CANCELLED), "Canceled");
}

}  // namespace
}  // namespace perceptrond::rpc_metrics_test
