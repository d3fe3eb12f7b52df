// The server as a process: how it starts and does not, where it listens, TLS, reflection, how it
// ends.
#include <grpcpp/security/credentials.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/integration/fixture.h"
#include "tests/integration/slow_model.h"

namespace perceptrond::testing {
namespace {

class ServerProcessTest : public ServerTest {};

TEST_F(ServerProcessTest, ADirectoryInUseIsRefusedWithWords) {
  const CommandResult second =
      RunServer("--metrics-address off --address 127.0.0.1:0 --data-dir " + dir_.path() + "/data");
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.out, ::testing::HasSubstr("waiting for it to stop"));
  EXPECT_THAT(second.out, ::testing::HasSubstr("in use by another server"));
}

TEST_F(ServerProcessTest, AServerStartedWhileTheOneBeforeItStillStopsTakesOver) {
  server_.Signal(SIGTERM);
  ServerProcess second(dir_.path() + "/data");
  EXPECT_EQ(server_.Wait(), 0);
  EXPECT_EQ(second.Terminate(), 0);
}

TEST_F(ServerProcessTest, AnAddressInUseIsRefusedWithWords) {
  const CommandResult second = RunServer("--metrics-address off --address " + server_.address() +
                                         " --data-dir " + dir_.path() + "/other");
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.out, ::testing::HasSubstr("cannot listen on " + server_.address()));
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

TEST_F(ServerProcessTest, AUnaryCallThatWasTakenIsAnsweredBeforeTheServerGoes) {
  Create("slow", SlowSettings());
  const v1::PredictRequest request = SlowPrediction("models/slow");
  v1::PredictResponse response;
  grpc::Status status;
  std::thread caller([&] { status = Predict(request, &response); });
  while (StartedCalls(server_.metrics_port(), "Predict") == 0) {
  }
  EXPECT_EQ(server_.Terminate(), 0);
  caller.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.scores_size(), 40);
}

TEST_F(ServerProcessTest, AUnixSocketIsNotTakenFromARunningServerButFromOneThatHasStopped) {
  const TempDir dir;
  const std::string address = "unix:" + dir.path() + "/socket";
  ServerProcess server(dir.path() + "/data", {"--address", address});
  const CommandResult second =
      RunServer("--address " + address + " --journal memory --metrics-address off");
  EXPECT_NE(second.exit_code, 0);
  EXPECT_THAT(second.out, ::testing::HasSubstr("another process listens there"));
  server.Kill();
  const ServerProcess third(dir.path() + "/data", {"--address", address});
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

// Runs openssl to make a certificate and its key.
void MakeCertificate(const std::string& certificate, const std::string& key) {
  const std::string command =
      "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -keyout " + key +
      " -out " + certificate + " 2>/dev/null";
  ASSERT_EQ(RunCommand(command).exit_code, 0);
}

TEST(ServerTls, AFileThatIsNoCertificateOrNoKeyOfItIsNamedBeforeAnythingListens) {
  const TempDir dir;
  const auto path = [&](const std::string& name) { return dir.path() + "/" + name; };
  MakeCertificate(path("cert"), path("key"));
  MakeCertificate(path("other-cert"), path("other-key"));
  std::ofstream(path("garbage")) << "-----BEGIN CERTIFICATE-----\nno\n";
  std::ofstream(path("cut-off")) << ReadAll(path("cert")) << ReadAll(path("cert")).substr(0, 300);
  const auto complaint = [&](const std::string& certificate, const std::string& key,
                             const std::string& ca) {
    const CommandResult result = RunServer(
        "--metrics-address off --address 127.0.0.1:0 --data-dir " + path("data") + " --tls-cert " +
        path(certificate) + " --tls-key " + path(key) + " --tls-client-ca " + path(ca));
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.out, ::testing::Not(::testing::HasSubstr("cannot listen")));
    return result.out;
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(complaint("garbage", "key", "cert"), HasSubstr(path("garbage") + " holds no cert"));
  EXPECT_THAT(complaint("cut-off", "key", "cert"), HasSubstr(path("cut-off") + " is damaged"));
  EXPECT_THAT(complaint("cert", "garbage", "cert"), HasSubstr(path("garbage") + " holds no priv"));
  EXPECT_THAT(complaint("cert", "other-key", "cert"), HasSubstr(path("other-key") + " is not the"));
  EXPECT_THAT(complaint("cert", "key", "garbage"), HasSubstr(path("garbage") + " holds no cert"));
}

}  // namespace
}  // namespace perceptrond::testing
