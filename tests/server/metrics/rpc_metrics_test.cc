#include "server/metrics/rpc_metrics.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/client_unary_call.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "perceptron/v1/learning_service.grpc.pb.h"
#include "perceptron/v1/model_service.grpc.pb.h"
#include "perceptron/v1/prediction_service.grpc.pb.h"

namespace perceptrond::rpc_metrics_test {
namespace {

using perceptron::v1::GetModelRequest;
using perceptron::v1::LearningService;
using perceptron::v1::LearnStreamRequest;
using perceptron::v1::LearnStreamResponse;
using perceptron::v1::Model;
using perceptron::v1::ModelService;
using perceptron::v1::PredictionService;
using perceptron::v1::PredictRequest;
using perceptron::v1::PredictResponse;
using perceptron::v1::WatchModelRequest;
using perceptron::v1::WatchModelResponse;

constexpr char kModelService[] = "perceptron.v1.ModelService";
constexpr char kLearningService[] = "perceptron.v1.LearningService";
constexpr char kPredictionService[] = "perceptron.v1.PredictionService";

// Sends three reports.
class Watch final : public grpc::ServerWriteReactor<WatchModelResponse> {
 public:
  Watch() { StartWrite(&report_); }
  void OnWriteDone(bool ok) override {
    if (ok && --left_ > 0) {
      StartWrite(&report_);
    } else {
      Finish(grpc::Status::OK);
    }
  }
  void OnDone() override { delete this; }

 private:
  int left_ = 3;
  WatchModelResponse report_;
};

// Knows no model without a name; implements nothing else.
class Models final : public ModelService::CallbackService {
  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* context,
                                     const GetModelRequest* request, Model* model) override {
    model->set_name(request->name());
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(request->name().empty()
                        ? grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "name")
                        : grpc::Status::OK);
    return reactor;
  }
  grpc::ServerWriteReactor<WatchModelResponse>* WatchModel(grpc::CallbackServerContext*,
                                                           const WatchModelRequest*) override {
    return new Watch;
  }
};

// Answers each message with one of its own; ends as the caller does.
template <typename Request, typename Response>
class Echo final : public grpc::ServerBidiReactor<Request, Response> {
 public:
  explicit Echo(Response response) : response_(std::move(response)) { this->StartRead(&request_); }
  void OnReadDone(bool ok) override {
    if (ok) {
      this->StartWrite(&response_);
    } else {
      this->Finish(grpc::Status::OK);
    }
  }
  void OnWriteDone(bool ok) override {
    if (ok) this->StartRead(&request_);
  }
  void OnDone() override { delete this; }

 private:
  Request request_;
  Response response_;
};

// Says hello, then waits until the caller cancels; takes that for a good end.
class Hold final : public grpc::ServerBidiReactor<PredictRequest, PredictResponse> {
 public:
  Hold() { StartSendInitialMetadata(); }
  void OnCancel() override { Finish(grpc::Status::OK); }
  void OnDone() override { delete this; }
};

// LearnStream takes raw bytes, as a server does that parses into arenas.
class Learning final
    : public LearningService::WithRawCallbackMethod_LearnStream<LearningService::Service> {
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* LearnStream(
      grpc::CallbackServerContext*) override {
    const std::string bytes = LearnStreamResponse().SerializeAsString();
    const grpc::Slice slice(bytes);
    return new Echo<grpc::ByteBuffer, grpc::ByteBuffer>(grpc::ByteBuffer(&slice, 1));
  }
};

class Prediction final
    : public PredictionService::WithCallbackMethod_PredictStream<PredictionService::Service> {
  grpc::ServerBidiReactor<PredictRequest, PredictResponse>* PredictStream(
      grpc::CallbackServerContext* context) override {
    if (context->client_metadata().count("hold") > 0) return new Hold;
    return new Echo<PredictRequest, PredictResponse>(PredictResponse());
  }
};

class RpcMetricsTest : public ::testing::Test {
 protected:
  RpcMetricsTest() {
    metrics_.AddService(*Model::descriptor()->file()->pool()->FindServiceByName(kModelService));
    metrics_.AddService(*Model::descriptor()->file()->pool()->FindServiceByName(kLearningService));
    metrics_.AddService(
        *PredictRequest::descriptor()->file()->pool()->FindServiceByName(kPredictionService));
    grpc::ServerBuilder builder;
    builder.RegisterService(&models_);
    builder.RegisterService(&learning_);
    builder.RegisterService(&prediction_);
    builder.SetMaxReceiveMessageSize(1000);
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> creators;
    creators.push_back(MakeRpcMetricsInterceptor(metrics_));
    builder.experimental().SetInterceptorCreators(std::move(creators));
    server_ = builder.BuildAndStart();
    channel_ = server_->InProcessChannel(grpc::ChannelArguments());
    models_stub_ = ModelService::NewStub(channel_);
    learning_stub_ = LearningService::NewStub(channel_);
    prediction_stub_ = PredictionService::NewStub(channel_);
  }

  // What was counted once every call is over.
  const RpcMethodMetrics& Final(const std::string& service, const std::string& method) {
    server_->Shutdown();
    server_->Wait();
    return metrics_.Find("/" + service + "/" + method);
  }
  grpc::Status CallRaw(const std::string& path, const std::string& bytes) {
    grpc::ClientContext context;
    const grpc::Slice slice(bytes);
    grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer response;
    return grpc::internal::BlockingUnaryCall(
        channel_.get(),
        grpc::internal::RpcMethod(path.c_str(), grpc::internal::RpcMethod::NORMAL_RPC), &context,
        request, &response);
  }

  RpcMetrics metrics_;
  Models models_;
  Learning learning_;
  Prediction prediction_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<ModelService::Stub> models_stub_;
  std::unique_ptr<LearningService::Stub> learning_stub_;
  std::unique_ptr<PredictionService::Stub> prediction_stub_;
};

// Only `code` was seen, and so often.
void ExpectHandled(const RpcMethodMetrics& method, grpc::StatusCode code, uint64_t times) {
  for (size_t i = 0; i < kRpcCodes; ++i) {
    EXPECT_EQ(method.handled(i), i == static_cast<size_t>(code) ? times : 0) << RpcCodeName(i);
  }
  EXPECT_EQ(method.started(), times);
  uint64_t observed = 0;
  for (size_t i = 0; i <= kRpcLatencyBounds.size(); ++i) observed += method.latency_bucket(i);
  EXPECT_EQ(observed, times);
}

TEST_F(RpcMetricsTest, UnaryCallsCountWithTheirCodes) {
  for (const char* name : {"models/a", "models/b", ""}) {
    grpc::ClientContext context;
    GetModelRequest request;
    request.set_name(name);
    Model model;
    models_stub_->GetModel(&context, request, &model);
  }
  const RpcMethodMetrics& method = Final(kModelService, "GetModel");
  EXPECT_STREQ(RpcTypeName(method.type()), "unary");
  EXPECT_EQ(method.started(), 3u);
  EXPECT_EQ(method.handled(grpc::StatusCode::OK), 2u);
  EXPECT_EQ(method.handled(grpc::StatusCode::INVALID_ARGUMENT), 1u);
  EXPECT_EQ(method.handled(), 3u);
  EXPECT_EQ(method.received(), 3u);
  EXPECT_EQ(method.sent(), 2u);
  EXPECT_GT(method.latency_sum_seconds(), 0);
}

TEST_F(RpcMetricsTest, StreamsCountEveryMessageBothWays) {
  grpc::ClientContext context;
  auto stream = prediction_stub_->PredictStream(&context);
  PredictResponse response;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(stream->Write(PredictRequest()));
    ASSERT_TRUE(stream->Read(&response));
  }
  stream->WritesDone();
  ASSERT_TRUE(stream->Finish().ok());
  const RpcMethodMetrics& method = Final(kPredictionService, "PredictStream");
  EXPECT_STREQ(RpcTypeName(method.type()), "bidi_stream");
  ExpectHandled(method, grpc::StatusCode::OK, 1);
  EXPECT_EQ(method.received(), 5u);
  EXPECT_EQ(method.sent(), 5u);
}

TEST_F(RpcMetricsTest, RawStreamsCountUnderTheirOwnName) {
  grpc::ClientContext context;
  auto stream = learning_stub_->LearnStream(&context);
  LearnStreamResponse response;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(stream->Write(LearnStreamRequest()));
    ASSERT_TRUE(stream->Read(&response));
  }
  stream->WritesDone();
  ASSERT_TRUE(stream->Finish().ok());
  const RpcMethodMetrics& method = Final(kLearningService, "LearnStream");
  ExpectHandled(method, grpc::StatusCode::OK, 1);
  EXPECT_EQ(method.received(), 4u);
  EXPECT_EQ(method.sent(), 4u);
}

TEST_F(RpcMetricsTest, ServerStreamsCountOneRequestAndEveryAnswer) {
  grpc::ClientContext context;
  auto stream = models_stub_->WatchModel(&context, WatchModelRequest());
  WatchModelResponse response;
  while (stream->Read(&response)) {
  }
  ASSERT_TRUE(stream->Finish().ok());
  const RpcMethodMetrics& method = Final(kModelService, "WatchModel");
  EXPECT_STREQ(RpcTypeName(method.type()), "server_stream");
  ExpectHandled(method, grpc::StatusCode::OK, 1);
  EXPECT_EQ(method.received(), 1u);
  EXPECT_EQ(method.sent(), 3u);
}

TEST_F(RpcMetricsTest, AnOpenStreamIsInFlightAndACancelledOneCanceled) {
  grpc::ClientContext context;
  context.AddMetadata("hold", "");
  auto stream = prediction_stub_->PredictStream(&context);
  stream->WaitForInitialMetadata();
  EXPECT_EQ(metrics_.in_flight(), 1u);
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  ExpectHandled(Final(kPredictionService, "PredictStream"), grpc::StatusCode::CANCELLED, 1);
  EXPECT_EQ(metrics_.in_flight(), 0u);
}

TEST_F(RpcMetricsTest, AMethodNotImplementedCountsUnderItsName) {
  grpc::ClientContext context;
  Model model;
  models_stub_->CreateModel(&context, perceptron::v1::CreateModelRequest(), &model);
  ExpectHandled(Final(kModelService, "CreateModel"), grpc::StatusCode::UNIMPLEMENTED, 1);
}

TEST_F(RpcMetricsTest, UnknownMethodsShareOneName) {
  for (const char* path : {"/perceptron.v1.ModelService/Guess", "/a/b", "/c/d", "/nonsense"}) {
    EXPECT_EQ(CallRaw(path, "x").error_code(), grpc::StatusCode::UNIMPLEMENTED);
  }
  const RpcMethodMetrics& method = Final("no", "such");
  EXPECT_EQ(method.service(), "unknown");
  EXPECT_EQ(method.method(), "unknown");
  ExpectHandled(method, grpc::StatusCode::UNIMPLEMENTED, 4);
}

TEST_F(RpcMetricsTest, ARequestThatIsNoMessageCountsOnce) {
  const std::string path = std::string("/") + kModelService + "/GetModel";
  const grpc::Status status = CallRaw(path, "\xff\xff");
  EXPECT_FALSE(status.ok());
  const RpcMethodMetrics& method = Final(kModelService, "GetModel");
  EXPECT_EQ(method.started(), 1u);
  EXPECT_EQ(method.handled(), 1u);
  EXPECT_EQ(method.handled(grpc::StatusCode::OK), 0u);
}

TEST_F(RpcMetricsTest, AMessageTooLargeEndsItsCallOnce) {
  const std::string path = std::string("/") + kModelService + "/GetModel";
  EXPECT_EQ(CallRaw(path, std::string(2000, 'x')).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  const RpcMethodMetrics& method = Final(kModelService, "GetModel");
  EXPECT_EQ(method.started(), method.handled());
  EXPECT_EQ(method.handled(grpc::StatusCode::OK), 0u);
  EXPECT_EQ(metrics_.in_flight(), 0u);
}

TEST(RpcMethodMetrics, AddingAMethodTwiceKeepsItsCounts) {
  RpcMetrics metrics;
  const size_t before = metrics.methods().size();
  metrics.Add(RpcType::kUnary, "s", "m");
  metrics.Find("/s/m").Started();
  metrics.Add(RpcType::kUnary, "s", "m");
  EXPECT_EQ(metrics.methods().size(), before + 1);
  EXPECT_EQ(metrics.Find("/s/m").started(), 1u);
}

TEST(RpcMethodMetrics, LatenciesFallIntoTheBucketTheyDoNotExceed) {
  RpcMethodMetrics method(RpcType::kUnary, "s", "m");
  method.Handled(0, absl::Microseconds(50));
  method.Handled(0, absl::Microseconds(51));
  method.Handled(0, absl::Seconds(61));
  EXPECT_EQ(method.latency_bucket(0), 1u);
  EXPECT_EQ(method.latency_bucket(1), 1u);
  EXPECT_EQ(method.latency_bucket(kRpcLatencyBounds.size()), 1u);
  EXPECT_NEAR(method.latency_sum_seconds(), 61.000101, 1e-9);
}

TEST(RpcMethodMetrics, CodesNobodyDefinedAreUnknown) {
  RpcMethodMetrics method(RpcType::kUnary, "s", "m");
  method.Handled(17, absl::ZeroDuration());
  method.Handled(static_cast<size_t>(-1), absl::ZeroDuration());
  EXPECT_EQ(method.handled(grpc::StatusCode::UNKNOWN), 2u);
  EXPECT_STREQ(RpcCodeName(99), "Unknown");
  EXPECT_STREQ(RpcCodeName(grpc::StatusCode::CANCELLED), "Canceled");
  EXPECT_STREQ(RpcCodeName(grpc::StatusCode::UNAUTHENTICATED), "Unauthenticated");
}

}  // namespace
}  // namespace perceptrond::rpc_metrics_test
