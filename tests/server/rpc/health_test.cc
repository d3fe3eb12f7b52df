// Health is SERVING until Stop and NOT_SERVING after it, by Check and by Watch.
#include "server/rpc/health.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "grpc/health/v1/health.pb.h"
#include "server/rpc/acceptor.h"
#include "tests/server/rpc/rpc_server.h"

namespace perceptrond::health_test {
namespace {

using namespace ::perceptrond::testing;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

constexpr char kCheck[] = "/grpc.health.v1.Health/Check";
constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";
constexpr char kKnown[] = "grpc.reflection.v1alpha.ServerReflection";
constexpr char kLearning[] = "perceptron.v1.LearningService";
// A field of length 5 that ends after 1.
const std::string kNoRequest = "\x0a\x05x";

class HealthTest : public ::testing::Test {
 protected:
  HealthTest() {
    AddReflectionService(router_);
    server_ = std::make_unique<RpcServer>(
        [this](const std::string& path) -> const Call::Method& { return router_.Find(path); });
    channel_ = server_->Connect();
  }

  static std::string Request(const std::string& service) {
    HealthCheckRequest request;
    request.set_service(service);
    return request.SerializeAsString();
  }
  grpc::Status Check(const std::string& service, HealthCheckResponse& response) {
    HealthCheckRequest request;
    request.set_service(service);
    return Ask(channel_, kCheck, request, response);
  }
  // UNKNOWN, which is never said: the stream is over.
  static HealthCheckResponse::ServingStatus Next(ClientCall& watch) {
    std::string answer;
    HealthCheckResponse response;
    if (!watch.Read(answer) || !response.ParseFromString(answer))
      return HealthCheckResponse::UNKNOWN;
    return response.status();
  }

  Router router_;
  Health health_{router_};
  std::unique_ptr<RpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(HealthTest, TheServerAndItsServicesServeUntilTheyAreStopped) {
  for (const char* service : {"", kKnown, "grpc.health.v1.Health"}) {
    HealthCheckResponse response;
    EXPECT_TRUE(Check(service, response).ok());
    EXPECT_EQ(response.status(), HealthCheckResponse::SERVING) << service;
  }
  EXPECT_TRUE(health_.IsServing(""));
  health_.Stop();
  EXPECT_FALSE(health_.IsServing(""));
  for (const char* service : {"", kKnown, "grpc.health.v1.Health"}) {
    HealthCheckResponse response;
    EXPECT_TRUE(Check(service, response).ok());
    EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING) << service;
  }
}

TEST_F(HealthTest, WhileNothingCanBeLearnedOnlyTheLearningServiceDoesNotServe) {
  const Call::Method none = [](Call& call) { call.Finish(grpc::Status::OK); };
  router_.AddService(kLearning, {{"Learn", none}, {"LearnStream", none}});
  ClientCall learning(channel_, kWatch);
  ClientCall all(channel_, kWatch);
  ASSERT_TRUE(learning.Write(Request(kLearning)));
  ASSERT_TRUE(all.Write(Request("")));
  EXPECT_EQ(Next(learning), HealthCheckResponse::SERVING);
  EXPECT_EQ(Next(all), HealthCheckResponse::SERVING);
  health_.SetLearning(false);
  EXPECT_EQ(Next(learning), HealthCheckResponse::NOT_SERVING);
  EXPECT_TRUE(health_.IsServing(""));
  EXPECT_TRUE(health_.IsServing(kKnown));
  health_.SetLearning(true);
  EXPECT_EQ(Next(learning), HealthCheckResponse::SERVING);
  health_.Stop();
  EXPECT_EQ(Next(learning), HealthCheckResponse::NOT_SERVING);
  // It was not notified of what does not concern it.
  EXPECT_EQ(Next(all), HealthCheckResponse::NOT_SERVING);
  health_.SetLearning(true);
  EXPECT_FALSE(health_.IsServing(kLearning));
}

TEST_F(HealthTest, WhileOthersShouldPredictOnlyThePredictionServicesDoNotServe) {
  const Call::Method none = [](Call& call) { call.Finish(grpc::Status::OK); };
  router_.AddService(kLearning, {{"Learn", none}, {"LearnStream", none}});
  constexpr char kPrediction[] = "perceptron.v1.PredictionService";
  constexpr char kInference[] = "inference.GRPCInferenceService";
  router_.AddService(kPrediction, {{"Predict", none}, {"PredictStream", none}, {"Explain", none}});
  ClientCall prediction(channel_, kWatch);
  ASSERT_TRUE(prediction.Write(Request(kPrediction)));
  EXPECT_EQ(Next(prediction), HealthCheckResponse::SERVING);
  health_.SetPredicting(false);
  EXPECT_EQ(Next(prediction), HealthCheckResponse::NOT_SERVING);
  EXPECT_FALSE(health_.IsServing(kInference));
  EXPECT_TRUE(health_.IsServing(kLearning));
  EXPECT_TRUE(health_.IsServing(""));
  health_.SetPredicting(true);
  EXPECT_EQ(Next(prediction), HealthCheckResponse::SERVING);
}

TEST_F(HealthTest, AnUnknownServiceIsNotFoundWithAReasonAndItsName) {
  HealthCheckResponse response;
  for (int i = 0; i < 2; ++i) {
    const grpc::Status status = Check("no.such.Service", response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_NE(status.error_message().find("no.such.Service"), std::string::npos);
    EXPECT_EQ(ReasonOf(status), "UNKNOWN_SERVICE");
    health_.Stop();
  }
}

TEST_F(HealthTest, BytesThatAreNoRequestAreInvalid) {
  for (const char* path : {kCheck, kWatch}) {
    std::string answer;
    EXPECT_EQ(AskBytes(channel_, path, kNoRequest, answer).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT)
        << path;
  }
}

TEST_F(HealthTest, ACallWithoutARequestIsInvalid) {
  for (const char* path : {kCheck, kWatch}) {
    ClientCall call(channel_, path);
    ASSERT_TRUE(call.WritesDone());
    EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT) << path;
  }
}

TEST_F(HealthTest, ARequestThatIsTooLargeIsRefused) {
  for (const char* path : {kCheck, kWatch}) {
    std::string answer;
    EXPECT_EQ(AskBytes(channel_, path, Request(std::string(100'000, 'x')), answer).error_code(),
              grpc::StatusCode::RESOURCE_EXHAUSTED)
        << path;
  }
}

TEST_F(HealthTest, WatchersReceiveTheStopOnceAndTheirStreamsStayOpen) {
  ClientCall whole(channel_, kWatch);
  ClientCall one(channel_, kWatch);
  ASSERT_TRUE(whole.Write(Request("")));
  ASSERT_TRUE(one.Write(Request(kKnown)));
  ASSERT_TRUE(one.WritesDone());
  EXPECT_EQ(Next(whole), HealthCheckResponse::SERVING);
  EXPECT_EQ(Next(one), HealthCheckResponse::SERVING);
  health_.Stop();
  EXPECT_EQ(Next(whole), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(Next(one), HealthCheckResponse::NOT_SERVING);
  health_.Stop();
  // Nothing more is said, and only the client ends the stream.
  for (ClientCall* watch : {&whole, &one}) {
    watch->Cancel();
    EXPECT_EQ(Next(*watch), HealthCheckResponse::UNKNOWN);
    EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
}

TEST_F(HealthTest, AWatcherThatStartsAfterTheStopReceivesNotServing) {
  health_.Stop();
  ClientCall watch(channel_, kWatch);
  ASSERT_TRUE(watch.Write(Request(kKnown)));
  EXPECT_EQ(Next(watch), HealthCheckResponse::NOT_SERVING);
}

TEST_F(HealthTest, AWatcherOfAnUnknownServiceReceivesThatAndItsStreamStaysOpen) {
  ClientCall watch(channel_, kWatch);
  ASSERT_TRUE(watch.Write(Request("no.such.Service")));
  EXPECT_EQ(Next(watch), HealthCheckResponse::SERVICE_UNKNOWN);
  health_.Stop();
  watch.Cancel();
  EXPECT_EQ(Next(watch), HealthCheckResponse::UNKNOWN);
  EXPECT_EQ(watch.Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(HealthTest, WatchersThatCancelAreNeitherWaitedForNorNotified) {
  for (int i = 0; i < 20; ++i) {
    ClientCall watch(channel_, kWatch);
    ASSERT_TRUE(watch.Write(Request("")));
    EXPECT_EQ(Next(watch), HealthCheckResponse::SERVING);
  }
  health_.Stop();
  server_->Stop();
}

TEST_F(HealthTest, TheServersEndEndsWatching) {
  ClientCall watch(channel_, kWatch);
  ASSERT_TRUE(watch.Write(Request("")));
  EXPECT_EQ(Next(watch), HealthCheckResponse::SERVING);
  server_->Stop();
  EXPECT_EQ(Next(watch), HealthCheckResponse::UNKNOWN);
  EXPECT_FALSE(watch.Finish().ok());
}

}  // namespace
}  // namespace perceptrond::health_test
