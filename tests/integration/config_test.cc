// The real server's settings from file, environment and flags, as an operator gives them, and what
// a load balancer asks it.
#include <grpcpp/security/credentials.h>

#include <cstdlib>
#include <fstream>

#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

// An environment variable for the servers started while it lives.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Environment() { unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* const name_;
};

class ConfigTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& content) {
    const std::string path = dir_.path() + "/perceptrond.conf";
    std::ofstream(path) << content;
    return path;
  }
  // Whether a server with these flags takes a message of 100 KiB.
  bool TakesLargeMessages(const std::vector<std::string>& flags) {
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

  TempDir dir_;
};

TEST_F(ConfigTest, AFlagBeatsTheEnvironmentAndTheEnvironmentTheFile) {
  const std::string file = Write("# small messages only\nmax-message-bytes = 64KiB\n");
  EXPECT_TRUE(TakesLargeMessages({}));
  EXPECT_FALSE(TakesLargeMessages({"--config", file}));
  const Environment environment("PERCEPTROND_MAX_MESSAGE_BYTES", "1MiB");
  EXPECT_TRUE(TakesLargeMessages({"--config", file}));
  EXPECT_FALSE(TakesLargeMessages({"--config", file, "--max-message-bytes", "64KiB"}));
}

TEST_F(ConfigTest, PrintedSettingsAreAConfigFileThatGivesTheSameSettings) {
  const CommandResult printed = RunServer("--memory-budget 2GiB --log-format json --print-config");
  EXPECT_EQ(printed.exit_code, 0);
  EXPECT_THAT(printed.out, ::testing::HasSubstr("memory-budget = \"2GiB\"\n"));
  const CommandResult again = RunServer("--print-config --config " + Write(printed.out));
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_EQ(again.out, printed.out);
}

TEST_F(ConfigTest, AVariableThatIsNoSettingIsNamedOnTheLogAndTheServerStarts) {
  const Environment environment("PERCEPTROND_MEMORY_BUDGE", "4GiB");
  // It gets as far as its address, which is taken.
  ServerProcess first(dir_.path() + "/data");
  const CommandResult second =
      RunServer("--journal memory --metrics-address off --address " + first.address());
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(
      second.out,
      ::testing::ContainsRegex(
          " warning an environment variable is not a setting .*variable=PERCEPTROND_MEMORY_BUDGE"));
  const CommandResult printed = RunServer("--print-config");
  EXPECT_EQ(printed.exit_code, 0);
  EXPECT_THAT(printed.out, ::testing::HasSubstr("PERCEPTROND_MEMORY_BUDGE is not a setting"));
}

TEST_F(ConfigTest, AFileThatCannotBeReadOrUnderstoodExitsWithTwoAndSaysWhy) {
  const CommandResult unknown = RunServer("--config " + Write("no-such-key = 1\n"));
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.out, ::testing::HasSubstr("unknown key no-such-key"));
  const CommandResult range = RunServer("--config " + Write("max-message-bytes = 1\n"));
  EXPECT_EQ(range.exit_code, 2);
  EXPECT_THAT(range.out, ::testing::HasSubstr("max-message-bytes"));
  const CommandResult missing = RunServer("--config " + dir_.path() + "/missing");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.out, ::testing::HasSubstr("/missing"));
}

TEST_F(ConfigTest, ClientsMustBeSignedWhereTheirAuthorityIsNamed) {
  const std::string certificate = dir_.path() + "/cert.pem";
  const std::string key = dir_.path() + "/key.pem";
  ASSERT_EQ(
      RunCommand("openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -addext "
                 "subjectAltName=DNS:localhost -keyout " +
                 key + " -out " + certificate + " 2>/dev/null")
          .exit_code,
      0);
  ServerProcess server(dir_.path() + "/data", {"--tls-cert", certificate, "--tls-key", key,
                                               "--tls-client-ca", certificate});
  const auto list = [&](const grpc::SslCredentialsOptions& ssl) {
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride("localhost");
    const auto channel =
        grpc::CreateCustomChannel(server.address(), grpc::SslCredentials(ssl), arguments);
    grpc::ClientContext context;
    v1::ListModelsResponse models;
    return v1::ModelService::NewStub(channel)->ListModels(&context, v1::ListModelsRequest(),
                                                          &models);
  };
  grpc::SslCredentialsOptions ssl;
  ssl.pem_root_certs = ReadAll(certificate);
  EXPECT_EQ(list(ssl).error_code(), grpc::StatusCode::UNAVAILABLE);
  ssl.pem_cert_chain = ReadAll(certificate);
  ssl.pem_private_key = ReadAll(key);
  const grpc::Status served = list(ssl);
  EXPECT_TRUE(served.ok()) << served.error_message();
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
