// The server as a process: how it starts and does not, where it listens, TLS, reflection, how it
// ends.
#include <grpcpp/security/credentials.h>

#include <fstream>
#include <sstream>

#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

std::string ReadAll(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  return content.str();
}

CommandResult RunServer(const std::string& arguments) {
  return RunCommand(std::string(PERCEPTROND_BINARY) + " --metrics-address=off " + arguments +
                    " 2>&1");
}

class ServerProcessTest : public ServerTest {};

TEST_F(ServerProcessTest, ADirectoryInUseIsRefusedWithWords) {
  const CommandResult second =
      RunServer("--address 127.0.0.1:0 --data-dir " + dir_.path() + "/data");
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.out, ::testing::HasSubstr("in use by another server"));
}

TEST_F(ServerProcessTest, AnAddressInUseIsRefusedWithWords) {
  const CommandResult second =
      RunServer("--address " + server_.address() + " --data-dir " + dir_.path() + "/other");
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.out, ::testing::HasSubstr("cannot listen on " + server_.address()));
}

TEST_F(ServerProcessTest, UnknownFlagsAndValuesOutOfRangeExitWithTwo) {
  EXPECT_EQ(RunServer("--no-such-flag").exit_code, 2);
  const CommandResult range = RunServer("--max-message-bytes 1");
  EXPECT_EQ(range.exit_code, 2);
  EXPECT_THAT(range.out, ::testing::HasSubstr("--max-message-bytes"));
}

TEST_F(ServerProcessTest, AnInterruptDrainsToo) {
  server_.Signal(SIGINT);
  EXPECT_EQ(server_.Wait(), 0);
}

TEST_F(ServerProcessTest, ReflectionNamesTheServices) {
  // ServerReflectionRequest { list_services: "" } is field 7.
  std::vector<std::string> answers;
  const grpc::Status status =
      CallRaw("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
              {std::string("\x3a\x00", 2)}, &answers);
  EXPECT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(answers.size(), 1);
  EXPECT_THAT(answers[0], ::testing::HasSubstr("perceptron.v1.ModelService"));
  EXPECT_THAT(answers[0], ::testing::HasSubstr("perceptron.v1.LearningService"));
}

TEST_F(ServerProcessTest, AUnixSocketServes) {
  const TempDir dir;
  const std::string address = "unix:" + dir.path() + "/socket";
  ServerProcess server(dir.path() + "/data", {"--address", address});
  const auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  grpc::ClientContext context;
  v1::ListModelsResponse models;
  EXPECT_TRUE(v1::ModelService::NewStub(channel)
                  ->ListModels(&context, v1::ListModelsRequest(), &models)
                  .ok());
}

TEST_F(ServerProcessTest, TlsServesThoseWhoSpeakItAndNobodyElse) {
  const TempDir dir;
  const std::string certificate = dir.path() + "/cert.pem";
  const std::string key = dir.path() + "/key.pem";
  ASSERT_EQ(
      RunCommand("openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -addext "
                 "subjectAltName=DNS:localhost -keyout " +
                 key + " -out " + certificate + " 2>/dev/null")
          .exit_code,
      0);
  ServerProcess server(dir.path() + "/data", {"--tls-cert", certificate, "--tls-key", key});
  const auto list = [&](const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
    const std::string port = server.address().substr(server.address().rfind(':'));
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride("localhost");
    const auto channel = grpc::CreateCustomChannel("127.0.0.1" + port, credentials, arguments);
    grpc::ClientContext context;
    v1::ListModelsResponse models;
    return v1::ModelService::NewStub(channel)->ListModels(&context, v1::ListModelsRequest(),
                                                          &models);
  };
  grpc::SslCredentialsOptions ssl;
  ssl.pem_root_certs = ReadAll(certificate);
  const grpc::Status served = list(grpc::SslCredentials(ssl));
  EXPECT_TRUE(served.ok()) << served.error_message();
  EXPECT_EQ(list(grpc::InsecureChannelCredentials()).error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace perceptrond::testing
