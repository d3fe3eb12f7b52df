#include "server/rpc/listening_sockets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "server/config/endpoint.h"
#include "tests/support/ipv6.h"
#include "tests/support/temp_dir.h"

namespace perceptrond {
namespace {

using ::perceptrond::testing::TempDir;
using ::testing::HasSubstr;

TEST(ListenOnTest, PortZeroTakesOnePortForAllAddressesOfAHost) {
  for (const char* address : {"127.0.0.1:0", "localhost:0", "[::1]:0", "0.0.0.0:0", "[::]:0"}) {
    if (address[0] == '[' && !testing::HasIpv6()) continue;
    const auto listening = ListenOn(address);
    ASSERT_TRUE(listening.ok()) << address << ": " << listening.status();
    ASSERT_FALSE(listening->sockets.empty());
    const std::string port = listening->name.substr(listening->name.rfind(':'));
    EXPECT_NE(port, ":0");
    for (const ListeningSocket& socket : listening->sockets) {
      const SocketAddress bound = socket.address();
      const in_port_t actual = bound.family() == AF_INET6
                                   ? reinterpret_cast<const sockaddr_in6&>(bound.storage).sin6_port
                                   : reinterpret_cast<const sockaddr_in&>(bound.storage).sin_port;
      EXPECT_EQ(absl::StrCat(":", ntohs(actual)), port);
    }
  }
}

TEST(ListenOnTest, APortInUseIsAnErrorAndNotShared) {
  const auto first = ListenOn("127.0.0.1:0");
  ASSERT_TRUE(first.ok());
  const auto second = ListenOn(first->name);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr(absl::StrCat("cannot listen on ", first->name)));
  EXPECT_FALSE(ListenOn("192.0.2.1:0").ok());
  EXPECT_FALSE(ListenOn("no-such-host.invalid:0").ok());
}

TEST(ListenOnTest, AUnixSocketIsReplacedOnlyIfNobodyListensAndRemovedAtTheEnd) {
  const TempDir dir;
  const std::string path = dir.path() + "/socket";
  const std::string address = "unix:" + path;
  {
    const auto first = ListenOn(address);
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ(first->name, address);
    EXPECT_THAT(std::string(ListenOn(address).status().message()),
                HasSubstr("another process listens there"));
    EXPECT_TRUE(IsListenedOn(path));
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  EXPECT_THAT(std::string(ListenOn("unix:/" + std::string(200, 'x')).status().message()),
              HasSubstr("the system allows at most"));
}

}  // namespace
}  // namespace perceptrond
