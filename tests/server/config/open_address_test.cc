// An address that other machines can reach is refused unless somebody decided who may use it.
#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "server/access/token.h"
#include "server/config/endpoint.h"
#include "tests/server/config/options_fixture.h"

namespace perceptrond {
namespace {

using ::perceptrond::testing::OptionsTest;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class OpenAddressTest : public OptionsTest {
 protected:
  static std::vector<std::string> With(std::vector<std::string> args,
                                       const std::vector<std::string>& more) {
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }

  const std::string pem_ = File("a.pem", "x");
  const std::vector<std::string> tls_ = {"--tls-cert", pem_, "--tls-key", pem_};
  const std::vector<std::string> access_ = {"--access-file", File("access", "")};
};

TEST_F(OpenAddressTest, GrpcNeedsTlsAndAuthenticationAndTheErrorSaysWhatIsMissing) {
  for (const char* address : {"0.0.0.0:7600", "[::]:7600", "10.0.0.1:7600", "host.example:7600"}) {
    const std::vector<std::string> open = {"--address", address};
    EXPECT_THAT(Bad(open), AllOf(HasSubstr(address), HasSubstr("--tls-cert and --tls-key"),
                                 HasSubstr("--access-file"), HasSubstr("--insecure")));
    EXPECT_THAT(Bad(With(open, access_)), HasSubstr("--tls-cert"));
    EXPECT_THAT(Bad(With(open, tls_)), AllOf(HasSubstr("add --access-file or --tls-client-ca"),
                                             Not(HasSubstr("--tls-cert"))));
    Good(With(With(open, tls_), access_));
    Good(With(With(open, tls_), {"--tls-client-ca", pem_}));
    Good(With(open, {"--insecure"}));
  }
  EXPECT_THAT(Bad({"--address", "127.0.0.1:1,0.0.0.0:2"}), HasSubstr("0.0.0.0:2"));
  Good({"--address", "127.0.0.2:1,[::1]:2,unix:/p,localhost:3"});
}

TEST_F(OpenAddressTest, MetricsNeedTlsAndAToken) {
  const std::vector<std::string> open = {"--metrics-address", "0.0.0.0:7601"};
  EXPECT_THAT(Bad(open),
              AllOf(HasSubstr("--metrics-tls and --access-file"), HasSubstr("--insecure")));
  EXPECT_THAT(Bad(With(open, With(tls_, {"--tls-client-ca", pem_}))), HasSubstr("--metrics-tls"));
  EXPECT_THAT(Bad(With(open, With(tls_, {"--metrics-tls"}))), HasSubstr("--access-file"));
  Good(With(With(open, With(tls_, {"--metrics-tls"})), access_));
  Good(With(open, {"--insecure"}));
  EXPECT_THAT(Bad({"--metrics-tls"}), HasSubstr("--metrics-tls needs --tls-cert"));
}

TEST_F(OpenAddressTest, AFleetWhoseClientsAreKnownNeedsCertificatesOfItsOwn) {
  const std::vector<std::string> fleet = {"--journal", "postgres:///db"};
  Good(With(fleet, tls_));
  EXPECT_THAT(Bad(With(With(fleet, tls_), access_)),
              AllOf(HasSubstr("--access-file"), HasSubstr("--fleet-cert")));
  EXPECT_THAT(Bad(With(With(fleet, tls_), {"--tls-client-ca", pem_})),
              AllOf(HasSubstr("--tls-client-ca"), HasSubstr("--fleet-cert")));
}

TEST_F(OpenAddressTest, AServerOfAFleetNamesAnAddressAtWhichOthersReachIt) {
  const std::vector<std::string> fleet = {"--journal", "postgres:///db", "--insecure"};
  for (const char* address : {"0.0.0.0:7602", "[::]:7602", "[0::0]:7602"}) {
    const std::vector<std::string> everywhere = With(fleet, {"--fleet-address", address});
    EXPECT_THAT(Bad(everywhere), AllOf(HasSubstr(absl::StrCat("--fleet-address ", address)),
                                       HasSubstr("set --fleet-advertise")));
    Good(With(everywhere, {"--fleet-advertise", "10.0.0.5:7602"}));
    EXPECT_THAT(Bad(With(everywhere, {"--fleet-advertise", address})),
                HasSubstr(absl::StrCat("--fleet-advertise ", address)));
    // It has no fleet.
    Good({"--fleet-address", address, "--insecure"});
  }
}

TEST_F(OpenAddressTest, InsecureIsASwitchOfEverySource) {
  const std::vector<std::string> open = {"--address", "0.0.0.0:1"};
  Good(With({"--insecure"}, open));
  Good(With(open, {"--insecure", "true"}));
  Good(With(open, {"--config", File("a.toml", "insecure = true\n")}));
  SetEnvironment("PERCEPTROND_INSECURE", "false");
  Bad(open);
  SetEnvironment("PERCEPTROND_INSECURE", "true");
  Good(open);
  EXPECT_THAT(ConfigText(Good(open)), HasSubstr("insecure = true\n"));
}

TEST_F(OpenAddressTest, ANewTokenIsInItsFileAloneAndItsDigestIsPrinted) {
  const std::string path = File("none", "") + ".token";
  const ParseResult made = ParseOptions({"--new-token", path});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  std::string token;
  std::getline(std::ifstream(path), token);
  EXPECT_EQ(made.out, "token_sha256: \"" + FormatDigest(DigestToken(token)) + "\"\n");
  EXPECT_THAT(ParseOptions({"--new-token", path}).err, HasSubstr("exists"));
}

TEST(HostOf, IsTheHostWithoutBracketsAndAbsentWithoutAValidPort) {
  EXPECT_EQ(HostOf("example.org:0"), "example.org");
  EXPECT_EQ(HostOf("[::1]:65535"), "::1");
  for (const char* address : {"", "host", ":1", "host:", "host:65536", "host:-1", "::1:1", "[x]:1"})
    EXPECT_FALSE(HostOf(address).has_value()) << address;
}

TEST(IsLoopback, HoldsForAddressesThatOnlyThisMachineCanReach) {
  for (const char* address :
       {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1", "LOCALHOST:1", "unix:/tmp/p"}) {
    EXPECT_TRUE(IsLoopback(address)) << address;
  }
  for (const char* address : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "128.0.0.1:1", "example.org:1",
                              "localhost.example.org:1", "127.example.org:1", "", "nonsense"}) {
    EXPECT_FALSE(IsLoopback(address)) << address;
  }
}

}  // namespace
}  // namespace perceptrond
