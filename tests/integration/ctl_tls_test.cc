// perceptronctl, and with it the client library, with TLS and tokens against the real server, which reads its certificates
// again.
#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/certificates.h"
#include "tests/support/server_process.h"
#include "tests/support/temp_dir.h"

namespace perceptrond::testing {
namespace {

class CtlTlsTest : public ::testing::Test {
 protected:
  ServerProcess Serve(std::vector<std::string> more = {}) const {
    std::vector<std::string> flags = {"--tls-cert", File("server.pem"), "--tls-key",
                                      File("server.key")};
    flags.insert(flags.end(), more.begin(), more.end());
    return ServerProcess(dir_.path() + "/data", flags);
  }
  std::string File(const std::string& name) const { return certificates_.Path(name); }
  // Flags that trust an authority, and those of a client with a certificate.
  std::string Trusting(const std::string& authority = "ca") const {
    return absl::StrCat("--tls-ca ", File(authority + ".pem"), " --tls-server-name perceptrond ");
  }
  std::string As(const std::string& name, const std::string& key) const {
    return absl::StrCat("--tls-cert ", File(name + ".pem"), " --tls-key ", File(key + ".key"), " ");
  }
  static void Expect(int exit_code, const ServerProcess& server, const std::string& arguments,
                     const std::string& environment = "") {
    const CommandResult result =
        RunCommand(absl::StrCat(environment, " ", PerceptronctlBinary(), " --server ",
                                server.address(), " ", arguments, " 2>&1"),
                   "+1 1:1\n-1 2:1\n");
    EXPECT_EQ(result.exit_code, exit_code) << environment << " " << arguments << result.out;
  }

  const Certificates certificates_;
  const TempDir dir_;
};

TEST_F(CtlTlsTest, CallsAndStreamsRunOverTlsIfTheCertificateIsTrustedAndNamed) {
  const ServerProcess server = Serve();
  Expect(0, server, Trusting() + "create m --dimension 2");
  const std::string input = " m - --format svmlight --index-base 1";
  Expect(0, server, Trusting() + "learn" + input);
  Expect(0, server, Trusting() + "predict" + input);
  Expect(0, server, "list",
         "PERCEPTRONCTL_TLS_SERVER_NAME=perceptrond PERCEPTRONCTL_TLS_CA=" + File("ca.pem"));
  Expect(1, server, "list");
  Expect(1, server, "list --tls");
  Expect(1, server, "list " + Trusting("stranger"));
  Expect(1, server, "list --tls-ca " + File("ca.pem"));
  Expect(2, server, Trusting() + "list --tls-cert " + File("client.pem"));
  Expect(2, server, "list --tls-ca /nonexistent");
  Expect(2, server, "list --tls-ca " + File("n.ext"));
  const ServerProcess plain(dir_.path() + "/plain");
  Expect(1, plain, "list --tls");
}

TEST_F(CtlTlsTest, AClientIsKnownByItsCertificateOrItsToken) {
  const std::string access = dir_.path() + "/access";
  const std::string token = dir_.path() + "/token";
  const CommandResult made = RunServer("--new-token " + token);
  ASSERT_EQ(made.exit_code, 0) << made.out;
  std::ofstream(access) << "principal { name: 'dns' certificate: 'dns:client' right: HEALTH }\n"
                        << "principal { name: 'token' " << made.out << " right: HEALTH }\n";
  chmod(access.c_str(), 0600);
  const ServerProcess server = Serve({"--tls-client-ca", File("ca.pem"), "--access-file", access});
  Expect(0, server, "health " + Trusting() + As("client", "client"));
  Expect(1, server, "list " + Trusting() + As("client", "client"));
  // Without a certificate, with that of another authority, with another's key.
  Expect(1, server, "health " + Trusting());
  Expect(1, server, "health " + Trusting() + As("foreign", "foreign"));
  Expect(1, server, "health " + Trusting() + As("client", "server"));
  // A certificate of the authority that the access file does not name; a token says who it is.
  const std::string nobody = "health " + Trusting() + As("server", "server");
  Expect(1, server, nobody);
  Expect(0, server, nobody + "--token-file " + token);
  Expect(0, server, nobody, "PERCEPTRONCTL_TOKEN_FILE=" + token);
  Expect(0, server, nobody, "PERCEPTRONCTL_TOKEN=\"$(cat " + token + ")\"");
  Expect(2, server, nobody + "--token-file /nowhere");
  Expect(2, server, nobody + "--token secret");
}

TEST_F(CtlTlsTest, RenewedCertificatesAreServedAndAKeyOfAnotherCertificateIsNot) {
  ServerProcess server = Serve({"--metrics-tls"});
  const auto scrape = [&](const std::string& authority) {
    const std::string at = absl::StrCat("perceptrond:", server.metrics_port());
    return RunCommand("curl -s --resolve " + at + ":127.0.0.1 https://" + at +
                      "/metrics --cacert " + File(authority + ".pem"));
  };
  EXPECT_EQ(scrape("ca").exit_code, 0);
  certificates_.Certify("next", "perceptrond", "stranger");
  const auto install = [&](const std::string& kind) {
    ASSERT_EQ(RunCommand("cp " + File("next" + kind) + " " + File("server" + kind)).exit_code, 0);
    server.Signal(SIGHUP);
  };
  install(".key");
  EXPECT_NE(server.AwaitLog("the certificates in use stay"), "");
  Expect(0, server, "health " + Trusting());
  install(".pem");
  EXPECT_NE(server.AwaitLog("new TLS certificates"), "");
  Expect(0, server, "health " + Trusting("stranger"));
  Expect(1, server, "health " + Trusting());
  EXPECT_EQ(scrape("stranger").exit_code, 0);
  EXPECT_NE(scrape("ca").exit_code, 0);
}

}  // namespace
}  // namespace perceptrond::testing
