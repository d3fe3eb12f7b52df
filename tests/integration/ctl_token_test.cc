// perceptronctl and the example clients with tokens and certificate names, against the real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/server_process.h"
#include "tests/support/temp_dir.h"

namespace perceptrond::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CtlTokenTest : public ::testing::Test {
 protected:
  std::string File(const std::string& name) const { return dir_.path() + "/" + name; }
  // An access file with these principals, and the server's flags for it.
  std::vector<std::string> Access(const std::string& principals) const {
    std::ofstream(File("access")) << principals;
    chmod(File("access").c_str(), 0600);
    return {"--access-file", File("access")};
  }
  // A new token in the file of this name; returns its line of the access file.
  std::string NewToken(const std::string& name) const {
    const CommandResult made = RunServer("--new-token " + File(name));
    EXPECT_EQ(made.exit_code, 0) << made.out;
    return made.out;
  }
  static CommandResult Ctl(const std::string& address, const std::string& arguments,
                           const std::string& environment = "") {
    return RunCommand(environment + " " PERCEPTRONCTL_BINARY " --server " + address + " " +
                      arguments + " 2>&1");
  }

  TempDir dir_;
};

TEST_F(CtlTokenTest, ATokenComesFromAFileOrAVariable) {
  const ServerProcess server(File("data"),
                             Access("principal { name: 'owner' " + NewToken("owner") +
                                    "allow { role: ADMIN models: '' } right: HEALTH }"));
  const std::string token_file = "--token-file " + File("owner");
  EXPECT_EQ(Ctl(server.address(), token_file + " create m --dimension 2").exit_code, 0);
  EXPECT_EQ(Ctl(server.address(), "list", "PERCEPTRONCTL_TOKEN_FILE=" + File("owner")).exit_code,
            0);
  std::string token;
  std::getline(std::ifstream(File("owner")), token);
  EXPECT_EQ(Ctl(server.address(), "health", "PERCEPTRONCTL_TOKEN=" + token).exit_code, 0);
  const CommandResult none = Ctl(server.address(), "list");
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.out, HasSubstr("UNAUTHENTICATED"));
  EXPECT_EQ(Ctl(server.address(), "--token-file /nowhere list").exit_code, 2);
  // No flag takes the token itself.
  EXPECT_NE(Ctl(server.address(), "--token " + token + " list").exit_code, 0);
}

TEST_F(CtlTokenTest, ASuggestionNamesOnlyModelsThatTheCallerMaySee) {
  const ServerProcess server(File("data"),
                             Access("principal { name: 'owner' " + NewToken("owner") +
                                    "allow { role: ADMIN models: '' } }\n"
                                    "principal { name: 'clerk' " +
                                    NewToken("clerk") + "allow { role: READ models: 'shop-' } }"));
  const std::string owner = "--token-file " + File("owner");
  const std::string clerk = "--token-file " + File("clerk");
  EXPECT_EQ(Ctl(server.address(), owner + " create shop-tea --dimension 2").exit_code, 0);
  EXPECT_EQ(Ctl(server.address(), owner + " create shop2tea --dimension 2").exit_code, 0);
  EXPECT_THAT(Ctl(server.address(), owner + " get shop2tee").out,
              HasSubstr("did you mean shop2tea?"));
  EXPECT_THAT(Ctl(server.address(), clerk + " get shop-tee").out,
              HasSubstr("did you mean shop-tea?"));
  for (const char* name : {"shop2tee", "shop-2tea"}) {
    EXPECT_THAT(Ctl(server.address(), clerk + " get " + name).out, Not(HasSubstr("shop2tea")))
        << name;
  }
}

TEST_F(CtlTokenTest, ATokenIsNotSentToAnotherMachineWithoutTls) {
  std::ofstream(File("token")) << "ptd_secret\n";
  const CommandResult refused =
      Ctl("perceptrond.example:7600", "list --token-file " + File("token"));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.out, AllOf(HasSubstr("--tls"), HasSubstr("--token-without-tls"),
                                 Not(HasSubstr("ptd_secret"))));
}

TEST_F(CtlTokenTest, ACertificateNameIsAPrincipal) {
  const CommandResult made = RunCommand("cd " + dir_.path() + R"( && exec 2>&1
      openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca -keyout ca.key -out ca.pem &&
      for name in server trainer stranger; do
        openssl req -newkey rsa:2048 -nodes -subj /CN=cn.$name -keyout $name.key -out $name.csr &&
        printf "subjectAltName=DNS:$name.test,URI:spiffe://test/$name" > $name.ext &&
        openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
          -extfile $name.ext -out $name.pem || exit 1
      done)");
  ASSERT_EQ(made.exit_code, 0) << made.out;
  std::vector<std::string> flags = Access(
      "principal { name: 'dns' certificate: 'dns:trainer.test' right: HEALTH }"
      "principal { name: 'uri' certificate: 'uri:spiffe://test/server' right: HEALTH }"
      "principal { name: 'cn' certificate: 'cn:trainer.test' allow { role: ADMIN models: '' } }");
  for (const char* flag :
       {"--tls-cert", "server.pem", "--tls-key", "server.key", "--tls-client-ca", "ca.pem"})
    flags.push_back(flag[0] == '-' ? flag : File(flag));
  const ServerProcess server(File("data"), flags);
  const auto health = [&](const std::string& name) {
    return Ctl(server.address(), "health --timeout 5 --tls-server-name server.test --tls-ca " +
                                     File("ca.pem") + " --tls-cert " + File(name + ".pem") +
                                     " --tls-key " + File(name + ".key"));
  };
  EXPECT_EQ(health("trainer").exit_code, 0) << health("trainer").out;
  EXPECT_EQ(health("server").exit_code, 0) << health("server").out;
  EXPECT_THAT(health("stranger").out, HasSubstr("UNAUTHENTICATED"));
}

TEST_F(CtlTokenTest, AServerWhoseAccessFileIsNoGoodDoesNotStart) {
  Access("principal {");
  const std::string flags =
      " --journal memory --address 127.0.0.1:0 --metrics-address off --access-file " +
      File("access");
  EXPECT_THAT(RunServer(flags).out, HasSubstr("line 1"));
  Access("");
  chmod(File("access").c_str(), 0666);
  EXPECT_THAT(RunServer(flags).out, HasSubstr("can be written by others"));
}

}  // namespace
}  // namespace perceptrond::testing
