#include "client/target.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <string>

#include "core/file/read_file.h"

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

// The cases are those of the clients in Python and Node too.
google::protobuf::Struct Cases() {
  google::protobuf::Struct cases;
  const std::string text = ReadFileUpTo(ADDRESS_CASES, 1 << 20, FileKind::kRegular).value();
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(text, &cases).ok());
  return cases;
}

TEST(Addresses, AreReadAsPeopleWriteThem) {
  const google::protobuf::Struct cases = Cases();
  for (const auto& [written, read] : cases.fields().at("read").struct_value().fields())
    EXPECT_EQ(ReadAddresses(written).value_or("refused"), read.string_value()) << written;
  for (const auto& wrong : cases.fields().at("refused").list_value().values()) {
    const absl::Status status = ReadAddresses(wrong.string_value()).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << wrong.string_value();
  }
}

TEST(Addresses, OfThisMachineAndOfFleetsTakeNoProxy) {
  const google::protobuf::Struct cases = Cases();
  for (const bool direct : {true, false}) {
    const auto& list = cases.fields().at(direct ? "direct" : "through_a_proxy").list_value();
    for (const auto& address : list.values())
      EXPECT_EQ(GoesDirect(address.string_value()), direct) << address.string_value();
  }
}

}  // namespace
}  // namespace perceptrond::client
