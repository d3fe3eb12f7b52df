// What a running server reads again, on SIGHUP and whenever the files change: its settings and its
// certificates.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "perceptron/v1/model_service.grpc.pb.h"
#include "tests/support/server_process.h"
#include "tests/support/temp_dir.h"

namespace perceptrond::testing {
namespace {

namespace v1 = ::perceptron::v1;
namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class CtlReloadTest : public ::testing::Test {
 protected:
  // Two authorities, and a certificate for server.test of each: ca1.pem, server1.pem, server1.key.
  void MakeCertificates() {
    const CommandResult made = RunCommand("cd " + dir_.path() + R"( && exec 2>&1
      printf subjectAltName=DNS:server.test > names
      for i in 1 2; do
        openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca$i -keyout ca$i.key -out ca$i.pem &&
        openssl req -newkey rsa:2048 -nodes -subj /CN=server.test -keyout server$i.key -out server.csr &&
        openssl x509 -req -in server.csr -CA ca$i.pem -CAkey ca$i.key -CAcreateserial -days 2 \
          -extfile names -out server$i.pem || exit 1
      done
      cp server1.pem server.pem && cp server1.key server.key)");
    ASSERT_EQ(made.exit_code, 0) << made.out;
  }
  std::string File(const std::string& name) const { return dir_.path() + "/" + name; }
  void Install(const std::string& from, const std::string& to) const {
    fs::copy_file(File(from), File(to), fs::copy_options::overwrite_existing);
  }
  // Runs a script in the directory, with $perceptrond, $perceptronctl, and `await TEXT`, which waits
  // until the server's log has the text. Starts the server as $server first, with these flags.
  CommandResult WithServer(const std::string& flags, const std::string& script) const {
    return RunCommand(absl::StrCat("cd ", dir_.path(), R"( && exec 2>&1
      perceptrond=)",
                                   PERCEPTROND_BIN,
                                   "/perceptrond perceptronctl=", PERCEPTRONCTL_BINARY, R"(
      await() { timeout 60 sh -c 'until grep -q "$0" log; do sleep 0.05; done' "$1" || echo "no $1"; }
      $perceptrond --journal memory --metrics-address off --address 127.0.0.1:0 )",
                                   flags,
                                   R"( 2> log & server=$!
      await " serving "
      address=$(sed -n 's/.* serving .*address=\([^ ]*\).*/\1/p' log)
      )",
                                   script, R"(
      kill $server; wait $server; echo "ended with $?"; cat log)"));
  }
  static bool Answers(const std::shared_ptr<grpc::Channel>& channel) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    v1::ListModelsResponse models;
    return v1::ModelService::NewStub(channel)
        ->ListModels(&context, v1::ListModelsRequest(), &models)
        .ok();
  }
  // A connection of its own, to a server with a certificate of this authority.
  std::shared_ptr<grpc::Channel> Connect(const std::string& address,
                                         const std::string& authority) const {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = ReadAll(File(authority));
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride("server.test");
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(address, grpc::SslCredentials(options), arguments);
  }

  TempDir dir_;
};

TEST_F(CtlReloadTest, RenewedCertificatesAreUsedForNewConnectionsWhileOldOnesGoOn) {
  ASSERT_NO_FATAL_FAILURE(MakeCertificates());
  const ServerProcess server(File("data"),
                             {"--tls-cert", File("server.pem"), "--tls-key", File("server.key")});
  const auto old = Connect(server.address(), "ca1.pem");
  ASSERT_TRUE(Answers(old));
  EXPECT_FALSE(Answers(Connect(server.address(), "ca2.pem")));
  Install("server2.pem", "server.pem");
  Install("server2.key", "server.key");
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (!Answers(Connect(server.address(), "ca2.pem"))) ASSERT_LT(absl::Now(), deadline);
  EXPECT_FALSE(Answers(Connect(server.address(), "ca1.pem")));
  EXPECT_TRUE(Answers(old));
}

TEST_F(CtlReloadTest, AKeyThatIsNoneOfTheCertificateLeavesThoseInUse) {
  ASSERT_NO_FATAL_FAILURE(MakeCertificates());
  const CommandResult result = WithServer("--tls-cert server.pem --tls-key server.key", R"(
      cp server2.key server.key; kill -HUP $server; await "the certificates in use stay"
      $perceptronctl --server $address --tls-ca ca1.pem --tls-server-name server.test health
      cp server2.pem server.pem; await "new TLS certificates"
      $perceptronctl --server $address --tls-ca ca2.pem --tls-server-name server.test health)");
  EXPECT_THAT(result.out, AllOf(HasSubstr("SERVING\nSERVING\nended with 0\n"),
                                HasSubstr("is not the key of the first certificate")));
}

TEST_F(CtlReloadTest, OnSighupTheLogLevelChangesAndWhatNeedsAStartIsNamed) {
  std::ofstream(File("settings")) << "log-level = \"info\"\n";
  const CommandResult result = WithServer("--config settings", R"(
      printf 'log-level = "debug"\nmemory-budget = "2GiB"\n' > settings
      kill -HUP $server; await "at the next start"
      printf 'log-level = "shout"\n' > settings
      kill -HUP $server; await "cannot use the settings"
      $perceptronctl --server $address health)");
  EXPECT_THAT(result.out, AllOf(HasSubstr("SERVING\nended with 0\n"), HasSubstr("log_level=debug"),
                                HasSubstr("settings=memory-budget"), HasSubstr("those in use stay"),
                                HasSubstr("shout")));
}

}  // namespace
}  // namespace perceptrond::testing
