// gRPC's own services: health is SERVING until Stop and NOT_SERVING after it, by Check and by Watch; reflection describes services and
// messages, request after request.
#include "server/rpc/health.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <set>
#include <tuple>

#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "perceptron/v1/model_service.pb.h"
#include "server/rpc/acceptor.h"
#include "tests/server/rpc/rpc_server.h"

namespace perceptrond::health_test {
namespace {

using namespace ::perceptrond::testing;
using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using google::protobuf::FileDescriptorProto;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

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
    EXPECT_NE(status.error_message().find("no.such.Service"), std::string::npos);
    EXPECT_EQ(Outcome(status), "NOT_FOUND UNKNOWN_SERVICE");
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

constexpr char kPath[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
constexpr char kModelServiceFile[] = "perceptron/v1/model_service.proto";

// Adds the names of a file and of all files that it imports.
void Collect(const FileDescriptor& file, std::set<std::string>& names) {
  if (!names.insert(file.name()).second) return;
  for (int i = 0; i < file.dependency_count(); ++i) Collect(*file.dependency(i), names);
}

class ReflectionTest : public ::testing::Test {
 protected:
  ReflectionTest() {
    AddReflectionService(router_);
    health_.emplace(router_);
    server_ = std::make_unique<RpcServer>(
        [this](const std::string& path) -> const Call::Method& { return router_.Find(path); });
    stream_ = std::make_unique<ClientCall>(server_->Connect(), kPath);
  }
  ~ReflectionTest() override {
    std::string more;
    EXPECT_TRUE(stream_->WritesDone());
    EXPECT_FALSE(stream_->Read(more));
    EXPECT_TRUE(stream_->Finish().ok());
  }

  // Each answer has its question with it.
  ServerReflectionResponse Ask(const ServerReflectionRequest& request) {
    std::string bytes;
    ServerReflectionResponse response;
    EXPECT_TRUE(stream_->Write(request.SerializeAsString()));
    EXPECT_TRUE(stream_->Read(bytes));
    EXPECT_TRUE(response.ParseFromString(bytes));
    EXPECT_EQ(response.original_request().SerializeAsString(), request.SerializeAsString());
    return response;
  }
  ServerReflectionResponse AskForSymbol(const std::string& symbol) {
    ServerReflectionRequest request;
    request.set_file_containing_symbol(symbol);
    return Ask(request);
  }
  ServerReflectionResponse AskForFile(const std::string& name) {
    ServerReflectionRequest request;
    request.set_file_by_filename(name);
    return Ask(request);
  }
  ServerReflectionResponse AskForExtensions(const std::string& message) {
    ServerReflectionRequest request;
    request.set_all_extension_numbers_of_type(message);
    return Ask(request);
  }
  // The files are that one, first, and all that it imports, each once and as it is.
  static void ExpectFiles(const ServerReflectionResponse& response, const std::string& first) {
    const FileDescriptor* const file = DescriptorPool::generated_pool()->FindFileByName(first);
    ASSERT_NE(file, nullptr);
    std::set<std::string> needed;
    Collect(*file, needed);
    const auto& sent = response.file_descriptor_response().file_descriptor_proto();
    ASSERT_EQ(static_cast<size_t>(sent.size()), needed.size());
    for (int i = 0; i < sent.size(); ++i) {
      FileDescriptorProto proto;
      FileDescriptorProto own;
      ASSERT_TRUE(proto.ParseFromString(sent[i]));
      EXPECT_TRUE(i > 0 || proto.name() == first) << proto.name();
      EXPECT_EQ(needed.erase(proto.name()), 1) << proto.name();
      DescriptorPool::generated_pool()->FindFileByName(proto.name())->CopyTo(&own);
      EXPECT_EQ(proto.SerializeAsString(), own.SerializeAsString());
    }
  }

  Router router_;
  std::optional<Health> health_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<ClientCall> stream_;
  // So that the linker keeps its file.
  const google::protobuf::Descriptor* const kept_ = ::perceptron::v1::GetModelRequest::descriptor();
};

TEST_F(ReflectionTest, TheRoutersServicesAreListedThoseThatWereAddedLaterToo) {
  ServerReflectionRequest request;
  request.set_list_services("*");
  request.set_host("here");
  const ServerReflectionResponse response = Ask(request);
  EXPECT_EQ(response.valid_host(), "here");
  const auto& services = response.list_services_response().service();
  ASSERT_EQ(services.size(), 2);
  EXPECT_EQ(services[0].name(), "grpc.reflection.v1alpha.ServerReflection");
  EXPECT_EQ(services[1].name(), "grpc.health.v1.Health");
}

TEST_F(ReflectionTest, AFileIsFoundByItsNameAndByWhatIsInItAndComesWithItsImportsEachOnce) {
  for (const char* symbol : {"perceptron.v1.ModelService", "perceptron.v1.ModelService.GetModel",
                             "perceptron.v1.GetModelRequest", "perceptron.v1.GetModelRequest.name"})
    ExpectFiles(AskForSymbol(symbol), kModelServiceFile);
  ExpectFiles(AskForSymbol("grpc.health.v1.HealthCheckResponse.ServingStatus"),
              "grpc/health/v1/health.proto");
  for (const char* name : {kModelServiceFile, "google/protobuf/any.proto"})
    ExpectFiles(AskForFile(name), name);
}

TEST_F(ReflectionTest, WhatIsNotThereIsNotFoundAndTheStreamGoesOn) {
  std::vector<ServerReflectionResponse> responses = {AskForSymbol("no.such.Symbol"),
                                                     AskForSymbol(""), AskForFile("no/such.proto"),
                                                     AskForExtensions("no.such.Message")};
  ServerReflectionRequest request;
  request.mutable_file_containing_extension()->set_containing_type("no.such.Message");
  responses.push_back(Ask(request));
  request.mutable_file_containing_extension()->set_containing_type("perceptron.v1.Model");
  request.mutable_file_containing_extension()->set_extension_number(1);
  responses.push_back(Ask(request));
  for (const ServerReflectionResponse& response : responses) {
    EXPECT_EQ(response.error_response().error_code(), grpc::StatusCode::NOT_FOUND)
        << response.DebugString();
  }
  EXPECT_EQ(Ask(ServerReflectionRequest()).error_response().error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  ExpectFiles(AskForFile(kModelServiceFile), kModelServiceFile);
}

}  // namespace
}  // namespace perceptrond::health_test
