// Health is SERVING until Stop and NOT_SERVING after it, by Check and by Watch.
#include "server/rpc/health.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>

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
constexpr char kPrediction[] = "perceptron.v1.PredictionService";

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

TEST_F(HealthTest, WhileAServiceCannotBeUsedItAloneDoesNotServe) {
  const Call::Method none = [](Call& call) { call.Finish(grpc::Status::OK); };
  router_.AddService(kLearning, {{"Learn", none}, {"LearnStream", none}});
  router_.AddService(kPrediction, {{"Predict", none}, {"PredictStream", none}, {"Explain", none}});
  ClientCall all(channel_, kWatch);
  ASSERT_TRUE(all.Write(Request("")));
  EXPECT_EQ(Next(all), HealthCheckResponse::SERVING);
  for (const auto& [service, other, set] :
       {std::tuple{kLearning, kPrediction, &Health::SetLearning},
        std::tuple{kPrediction, kLearning, &Health::SetPredicting}}) {
    ClientCall watch(channel_, kWatch);
    ASSERT_TRUE(watch.Write(Request(service)));
    EXPECT_EQ(Next(watch), HealthCheckResponse::SERVING);
    (health_.*set)(false);
    EXPECT_EQ(Next(watch), HealthCheckResponse::NOT_SERVING);
    EXPECT_EQ(health_.IsServing("inference.GRPCInferenceService"), service == kLearning);
    for (const char* serving : {"", kKnown, other}) EXPECT_TRUE(health_.IsServing(serving));
    (health_.*set)(true);
    EXPECT_EQ(Next(watch), HealthCheckResponse::SERVING);
  }
  health_.Stop();
  // It was not notified of what does not concern it.
  EXPECT_EQ(Next(all), HealthCheckResponse::NOT_SERVING);
  health_.SetLearning(true);
  EXPECT_FALSE(health_.IsServing(kLearning));
}

TEST_F(HealthTest, WatchersReceiveTheStopOnceAndTheirStreamsStayOpen) {
  ClientCall whole(channel_, kWatch);
  ClientCall one(channel_, kWatch);
  ClientCall cancelled(channel_, kWatch);
  ASSERT_TRUE(cancelled.Write(Request("")));
  EXPECT_EQ(Next(cancelled), HealthCheckResponse::SERVING);
  cancelled.Cancel();
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
  // Whoever comes later hears it at once, until the server's end.
  ClientCall late(channel_, kWatch);
  ASSERT_TRUE(late.Write(Request(kKnown)));
  EXPECT_EQ(Next(late), HealthCheckResponse::NOT_SERVING);
  server_->Stop();
  EXPECT_EQ(Next(late), HealthCheckResponse::UNKNOWN);
  EXPECT_FALSE(late.Finish().ok());
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

}  // namespace
}  // namespace perceptrond::health_test
