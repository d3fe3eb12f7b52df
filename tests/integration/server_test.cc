// The server as a process: how it starts and does not, where it listens, TLS, reflection, how it
// ends.
#include <cstdlib>
#include <fstream>
#include <thread>

#include "tests/integration/certificates.h"
#include "tests/integration/fixture.h"

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

TEST_F(ServerProcessTest, AnInterruptDrainsToo) {
  server_.Signal(SIGINT);
  EXPECT_EQ(server_.Wait(), 0);
}

TEST_F(ServerProcessTest, AUnaryCallThatWasTakenIsAnsweredBeforeTheServerGoes) {
  // 40 rows of some 50 ms each.
  Create(
      "slow",
      "feature_space { dense { dimension: 1 } map { fourier { dimension: 1000000 gamma: 1 } } }");
  v1::PredictRequest request;
  request.set_model("models/slow");
  request.mutable_columns()->set_dense_width(1);
  for (int i = 0; i < 40; ++i) request.mutable_columns()->add_values(static_cast<float>(i));
  v1::PredictResponse response;
  grpc::Status status;
  std::thread caller([&] { status = Predict(request, &response); });
  while (StartedCalls(server_, "Predict") == 0) {
  }
  EXPECT_EQ(server_.Terminate(), 0);
  caller.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.scores_size(), 40);
}

TEST_F(ServerProcessTest, EachServiceIsInReflectionAndHealth) {
  std::vector<std::string> reflected;
  // ServerReflectionRequest { list_services: "" } is field 7.
  EXPECT_TRUE(CallRaw("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                      {std::string("\x3a\x00", 2)}, &reflected)
                  .ok());
  ASSERT_EQ(reflected.size(), 1U);
  for (const std::string service :
       {"perceptron.v1.ModelService", "perceptron.v1.LearningService",
        "perceptron.v1.PredictionService", "perceptron.v1.AnalysisService",
        "perceptron.v1.AliasService", "perceptron.v1.HistoryService", "perceptron.v1.BackupService",
        "inference.GRPCInferenceService"}) {
    EXPECT_THAT(reflected[0], ::testing::HasSubstr(service));
    // HealthCheckRequest.service; HealthCheckResponse.status SERVING.
    std::vector<std::string> health;
    EXPECT_TRUE(CallRaw("/grpc.health.v1.Health/Check",
                        {"\x0a" + std::string(1, static_cast<char>(service.size())) + service},
                        &health)
                    .ok());
    EXPECT_THAT(health, ::testing::ElementsAre("\x08\x01")) << service;
  }
}

TEST(ServerTls, ServesThoseWhoSpeakItAndNobodyElse) {
  const TempDir dir;
  const Certificates certificates;
  ServerProcess server(dir.path() + "/data", {"--tls-cert", certificates.Path("server.pem"),
                                              "--tls-key", certificates.Path("server.key")});
  const auto list = [&](const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
    const std::string port = server.address().substr(server.address().rfind(':'));
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride("perceptrond");
    const auto channel = grpc::CreateCustomChannel("127.0.0.1" + port, credentials, arguments);
    grpc::ClientContext context;
    v1::ListModelsResponse models;
    return v1::ModelService::NewStub(channel)->ListModels(&context, {}, &models);
  };
  EXPECT_EQ(Outcome(list(certificates.Credentials(""))), "OK");
  EXPECT_EQ(list(grpc::InsecureChannelCredentials()).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST(ServerTls, AFileThatIsNoCertificateOrNoKeyOfItIsNamedBeforeAnythingListens) {
  const TempDir dir;
  const Certificates certificates;
  const auto path = [&](const std::string& name) { return certificates.Path(name); };
  std::ofstream(path("garbage")) << "-----BEGIN CERTIFICATE-----\nno\n";
  std::ofstream(path("cut-off")) << ReadAll(path("server.pem"))
                                 << ReadAll(path("server.pem")).substr(0, 300);
  const struct {
    const char* certificate;
    const char* key;
    const char* ca;
    const char* named;
  } cases[] = {{"garbage", "server.key", "ca.pem", "garbage holds no cert"},
               {"cut-off", "server.key", "ca.pem", "cut-off is damaged"},
               {"server.pem", "garbage", "ca.pem", "garbage holds no priv"},
               {"server.pem", "client.key", "ca.pem", "client.key is not the"},
               {"server.pem", "server.key", "garbage", "garbage holds no cert"}};
  for (const auto& one : cases) {
    const CommandResult result =
        RunServer("--metrics-address off --address 127.0.0.1:0 --data-dir " + dir.path() +
                  "/data --tls-cert " + path(one.certificate) + " --tls-key " + path(one.key) +
                  " --tls-client-ca " + path(one.ca));
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.out, ::testing::HasSubstr(path(one.named)));
    EXPECT_THAT(result.out, ::testing::Not(::testing::HasSubstr("cannot listen")));
  }
}

}  // namespace
}  // namespace perceptrond::testing
