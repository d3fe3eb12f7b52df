// perceptronctl, and with it the client library, against the real server with TLS.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/server_process.h"
#include "tests/support/temp_dir.h"

namespace perceptrond::testing {
namespace {

using ::testing::HasSubstr;

// An authority of its own, and a server's and a client's certificate of it.
class CtlTlsTest : public ::testing::Test {
 protected:
  CtlTlsTest() {
    const CommandResult made = RunCommand("cd " + dir_.path() + R"( && exec 2>&1
      openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca -keyout ca.key -out ca.pem &&
      for name in server client; do
        openssl req -newkey rsa:2048 -nodes -subj /CN=$name.test -keyout $name.key -out $name.csr &&
        printf "subjectAltName=DNS:$name.test" > $name.ext &&
        openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
          -extfile $name.ext -out $name.pem || exit 1
      done)");
    EXPECT_EQ(made.exit_code, 0) << made.out;
  }
  std::string File(const std::string& name) const { return dir_.path() + "/" + name; }
  ServerProcess Serve(std::vector<std::string> more = {}) const {
    std::vector<std::string> flags = {"--tls-cert", File("server.pem"), "--tls-key",
                                      File("server.key")};
    flags.insert(flags.end(), more.begin(), more.end());
    return ServerProcess(File("data"), flags);
  }
  static CommandResult Ctl(const ServerProcess& server, const std::string& arguments,
                           const std::string& environment = "") {
    return RunCommand(environment + " " PERCEPTRONCTL_BINARY " --server " + server.address() + " " +
                          arguments + " 2>&1",
                      "+1 1:1\n-1 2:1\n");
  }
  std::string Trusting() const {
    return "--tls-ca " + File("ca.pem") + " --tls-server-name server.test ";
  }

  TempDir dir_;
};

TEST_F(CtlTlsTest, CallsAndStreamsRunOverTls) {
  const ServerProcess server = Serve();
  EXPECT_EQ(Ctl(server, Trusting() + "create m --dimension 2").exit_code, 0);
  const std::string input = " m - --format svmlight --index-base 1";
  EXPECT_EQ(Ctl(server, Trusting() + "learn" + input).exit_code, 0);
  EXPECT_EQ(Ctl(server, Trusting() + "predict" + input).exit_code, 0);
  EXPECT_EQ(Ctl(server, Trusting() + "health").exit_code, 0);
  const CommandResult listed =
      Ctl(server, "list",
          "PERCEPTRONCTL_TLS_SERVER_NAME=server.test PERCEPTRONCTL_TLS_CA=" + File("ca.pem"));
  EXPECT_EQ(listed.exit_code, 0) << listed.out;
}

TEST_F(CtlTlsTest, WhatIsMissingIsSaid) {
  const ServerProcess server = Serve();
  const CommandResult plain = Ctl(server, "list");
  EXPECT_EQ(plain.exit_code, 1);
  EXPECT_THAT(plain.out, HasSubstr("If it uses TLS, give --tls"));
  const CommandResult stranger = Ctl(server, "--tls list");
  EXPECT_EQ(stranger.exit_code, 1);
  EXPECT_THAT(stranger.out, HasSubstr("see --tls-ca"));
  // The address is no name of the certificate's.
  const CommandResult misnamed = Ctl(server, "list --tls-ca " + File("ca.pem"));
  EXPECT_EQ(misnamed.exit_code, 1);
  EXPECT_THAT(misnamed.out, HasSubstr("see --tls-server-name"));
  const CommandResult half = Ctl(server, Trusting() + "list --tls-cert " + File("client.pem"));
  EXPECT_EQ(half.exit_code, 2);
  EXPECT_THAT(half.out, HasSubstr("--tls-cert and --tls-key must be given together"));
  EXPECT_EQ(Ctl(server, "list --tls-ca /nonexistent").exit_code, 2);
  const CommandResult no_pem = Ctl(server, "list --tls-ca " + File("server.ext"));
  EXPECT_EQ(no_pem.exit_code, 2);
  EXPECT_THAT(no_pem.out, HasSubstr("is not a PEM file"));
}

TEST_F(CtlTlsTest, AServerThatAsksForCertificatesTakesOnlyThoseOfItsAuthority) {
  const ServerProcess server = Serve({"--tls-client-ca", File("ca.pem")});
  EXPECT_EQ(Ctl(server, Trusting() + "list").exit_code, 1);
  const std::string certificate = "--tls-cert " + File("client.pem");
  const CommandResult known =
      Ctl(server, Trusting() + certificate + " --tls-key " + File("client.key") + " list");
  EXPECT_EQ(known.exit_code, 0) << known.out;
  const CommandResult mixed =
      Ctl(server, Trusting() + certificate + " --tls-key " + File("server.key") + " list");
  EXPECT_EQ(mixed.exit_code, 1);
  EXPECT_THAT(mixed.out, HasSubstr("key and certificate match"));
}

TEST_F(CtlTlsTest, TlsToAServerWithoutItSaysSo) {
  const ServerProcess server(File("plain"));
  const CommandResult result = Ctl(server, "--tls list");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("omit --tls"));
}

}  // namespace
}  // namespace perceptrond::testing
