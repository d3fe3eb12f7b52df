#include "client/target.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <utility>

namespace perceptrond::client {
namespace {

TEST(TargetTest, OneAddressIsWhatGrpcTakes) {
  for (const char* address : {"db1:7600", "db1", "unix:/run/perceptrond.sock", "dns:///db1:7600",
                              "[::1]:7600", "ipv4:10.0.0.1:7600,10.0.0.2:7600"}) {
    EXPECT_EQ(MakeTarget(address).address, address);
    EXPECT_EQ(MakeTarget(address).host, "");
  }
}

TEST(TargetTest, SeveralAddressesAreTriedInTheirOrder) {
  const Target target = MakeTarget("127.0.0.2:7600, 127.0.0.1:7601");
  EXPECT_EQ(target.address, "ipv4:127.0.0.2:7600,127.0.0.1:7601");
  EXPECT_EQ(target.host, "127.0.0.2");
  EXPECT_EQ(MakeTarget("[::1]:7600,[::1]:7601").address, "ipv6:[::1]:7600,[::1]:7601");
  EXPECT_EQ(MakeTarget("[::1]:7600,[::1]:7601").host, "::1");
}

TEST(TargetTest, NamesAreLookedUpAndUnknownOnesLeftOut) {
  // RFC 6761: no name under .invalid exists.
  const Target target = MakeTarget("nothing.invalid:7600,127.0.0.1:7601");
  EXPECT_EQ(target.address, "ipv4:127.0.0.1:7601");
  EXPECT_EQ(target.host, "nothing.invalid");
  EXPECT_EQ(MakeTarget("a.invalid:1,b.invalid:2").address, "a.invalid:1,b.invalid:2");
}

TEST(TargetTest, AServerIsFoundByItsNameOrItsNumericAddress) {
  const Target both = MakeTarget("localhost:7600,127.0.0.1:7601");
  EXPECT_EQ(FindServer(both, "127.0.0.1:7600").value_or(Target{}).address, "ipv4:127.0.0.1:7600");
  EXPECT_EQ(FindServer(both, "localhost:7601").value_or(Target{}).address, "ipv4:127.0.0.1:7601");
  EXPECT_EQ(FindServer(both, "localhost:7601").value_or(Target{}).host, "localhost");
  EXPECT_FALSE(FindServer(both, "127.0.0.1:7602").has_value());
  EXPECT_FALSE(FindServer(both, "127.0.0.2:7600").has_value());
  EXPECT_FALSE(FindServer(both, "nothing.invalid:7600").has_value());
  EXPECT_FALSE(FindServer(MakeTarget("127.0.0.1:7600"), "127.0.0.1:7600").has_value());
}

TEST(Addresses, AreReadAsPeopleWriteThem) {
  for (const auto& [written, read] : std::initializer_list<std::pair<const char*, const char*>>{
           {"db1", "db1:7600"},
           {"db1:1", "db1:1"},
           {" 127.0.0.1:7600 ", "127.0.0.1:7600"},
           {"::1", "[::1]:7600"},
           {"[::1]", "[::1]:7600"},
           {"[::1]:65535", "[::1]:65535"},
           {"fe80::1%lo", "[fe80::1%lo]:7600"},
           {"db1:1 , db2,", "db1:1,db2:7600"},
           {"unix:/tmp/99999", "unix:/tmp/99999"},
           {"dns:///db1:7600", "dns:///db1:7600"},
           {"ipv4:10.0.0.1:7600,10.0.0.2:7600", "ipv4:10.0.0.1:7600,10.0.0.2:7600"}})
    EXPECT_EQ(ReadAddresses(written).value_or("refused"), read) << written;
  for (const char* wrong : {"", " , ", "db1:abc", "db1:", "db1:0", "db1:99999", "db1:1:2", ":7600",
                            "[db1]:7600", "[::1", "[::1]7600", "[::1]:abc", "d b:1", "2187",
                            "2187:7600", "http://db1:7600", "grpcs://db1", "db1:1,db2:x"})
    EXPECT_TRUE(absl::IsInvalidArgument(ReadAddresses(wrong).status())) << wrong;
}

TEST(Addresses, OfThisMachineAndOfFleetsTakeNoProxy) {
  for (const char* direct : {"127.0.0.1:1", "localhost:1", "[::1]:1", "unix:/s", "db1:1,db2:1"})
    EXPECT_TRUE(GoesDirect(direct)) << direct;
  for (const char* address : {"db1:1", "10.0.0.1:1"}) EXPECT_FALSE(GoesDirect(address)) << address;
}

}  // namespace
}  // namespace perceptrond::client
