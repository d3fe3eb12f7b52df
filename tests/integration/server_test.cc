// The server as a process: how it does not start, and how it ends.
#include <fstream>

#include "tests/integration/certificates.h"
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

using ServerProcessTest = ServerTest;

TEST_F(ServerProcessTest, ADirectoryInUseIsRefusedWithWords) {
  const CommandResult second =
      RunServer("--metrics-address off --address 127.0.0.1:0 --data-dir " + dir_.path() + "/data");
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.out, ::testing::HasSubstr("waiting for it to stop"));
  EXPECT_THAT(second.out, ::testing::HasSubstr("in use by another server"));
}

TEST_F(ServerProcessTest, AnInterruptDrainsToo) {
  server_.Signal(SIGINT);
  EXPECT_EQ(server_.Wait(), 0);
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
