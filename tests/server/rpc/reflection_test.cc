// Reflection describes services and messages, request after request.
#include "server/rpc/acceptor.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "perceptron/v1/model_service.pb.h"
#include "server/rpc/health.h"
#include "tests/server/rpc/rpc_server.h"

namespace perceptrond {
namespace {

using namespace ::perceptrond::testing;
using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using google::protobuf::FileDescriptorProto;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

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
}  // namespace perceptrond
