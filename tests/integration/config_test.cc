// The real server's settings from file, environment and flags, read again on SIGHUP, and what a load balancer asks it.
#include <csignal>
#include <cstdlib>
#include <fstream>

#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

class ConfigTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& content) const {
    const std::string path = dir_.path() + "/perceptrond.conf";
    std::ofstream(path) << content;
    return path;
  }
  // Whether a server with these flags takes a message of 100 KiB.
  bool TakesLargeMessages(const std::vector<std::string>& flags) const {
    ServerProcess server(dir_.path() + "/data", flags);
    const auto channel = grpc::CreateChannel(server.address(), grpc::InsecureChannelCredentials());
    grpc::ClientContext context;
    v1::PredictRequest request;
    request.set_model("models/none");
    request.mutable_columns()->mutable_values()->Resize(25600, 1.0F);
    v1::PredictResponse response;
    const grpc::Status status =
        v1::PredictionService::NewStub(channel)->Predict(&context, request, &response);
    if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) return false;
    EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND) << status.error_message();
    return true;
  }

  const TempDir dir_;
};

TEST_F(ConfigTest, AFlagBeatsTheEnvironmentAndTheEnvironmentTheFile) {
  const std::string file = Write("# small messages only\nmax-message-bytes = 64KiB\n");
  EXPECT_FALSE(TakesLargeMessages({"--config", file}));
  setenv("PERCEPTROND_MAX_MESSAGE_BYTES", "1MiB", 1);
  EXPECT_TRUE(TakesLargeMessages({"--config", file}));
  EXPECT_FALSE(TakesLargeMessages({"--config", file, "--max-message-bytes", "64KiB"}));
  unsetenv("PERCEPTROND_MAX_MESSAGE_BYTES");
}

TEST_F(ConfigTest, SettingsThatAreNoneExitWithTwo) {
  EXPECT_EQ(RunServer("--config " + Write("no-such-key = 1\n")).exit_code, 2);
  EXPECT_EQ(RunServer("--config " + dir_.path() + "/missing").exit_code, 2);
  EXPECT_EQ(RunServer("--max-message-bytes 1").exit_code, 2);
  const CommandResult printed = RunServer("--memory-budget 2GiB --log-format json --print-config");
  EXPECT_EQ(printed.exit_code, 0);
  EXPECT_EQ(RunServer("--print-config --config " + Write(printed.out)).out, printed.out);
}

TEST_F(ConfigTest, OnSighupTheLogLevelChangesAndWhatNeedsAStartIsNamed) {
  const std::string file = Write("log-level = \"info\"\n");
  const ServerProcess server(dir_.path() + "/data", {"--config", file});
  Write("log-level = \"debug\"\nmemory-budget = \"2GiB\"\n");
  server.Signal(SIGHUP);
  EXPECT_THAT(server.AwaitLog("at the next start"), ::testing::HasSubstr("settings=memory-budget"));
  EXPECT_NE(server.AwaitLog("log_level=debug"), "");
  Write("log-level = \"shout\"\n");
  server.Signal(SIGHUP);
  EXPECT_THAT(server.AwaitLog("cannot use the settings"), ::testing::HasSubstr("shout"));
}

class HealthTest : public ServerTest {};

TEST_F(HealthTest, EveryServiceSaysThatItServes) {
  // HealthCheckRequest { service }, field 1; HealthCheckResponse { status: SERVING }, field 1.
  for (const std::string service :
       {"", "perceptron.v1.ModelService", "perceptron.v1.LearningService"}) {
    const std::string request =
        service.empty() ? "" : "\x0a" + std::string(1, static_cast<char>(service.size())) + service;
    std::vector<std::string> answers;
    const grpc::Status status = CallRaw("/grpc.health.v1.Health/Check", {request}, &answers);
    EXPECT_TRUE(status.ok()) << service << ": " << status.error_message();
    EXPECT_THAT(answers, ::testing::ElementsAre(std::string("\x08\x01"))) << service;
  }
  const grpc::Status unknown = CallRaw("/grpc.health.v1.Health/Check", {"\x0a\x01x"});
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace perceptrond::testing
