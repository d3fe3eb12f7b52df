#include "server/config/endpoint.h"

#include <gtest/gtest.h>

namespace perceptrond {
namespace {

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
