// Tokens and trace contexts that calls carry, against a server that looks at them.
#include "client/call_metadata.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/client.h"
#include "tests/client/fake_server.h"

namespace perceptrond::client {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CallMetadataTest : public ::testing::Test {
 protected:
  // The server knows one token.
  CallMetadataTest() {
    server_.on_learn = [this](const grpc::ServerContext& context, const v1::LearnRequest&) {
      seen_.push_back(Header(context, "authorization"));
      traceparent_ = Header(context, "traceparent");
      return seen_.back() == "Bearer " + token_
                 ? grpc::Status::OK
                 : grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "no such token");
    };
  }
  ~CallMetadataTest() override { unlink(path_.c_str()); }

  absl::Status Learn(const CallMetadata& metadata) {
    return LearnWith(*Client::Connect(server_.address(), OptionsWith(metadata)));
  }
  static ClientOptions OptionsWith(const CallMetadata& metadata) {
    ClientOptions options;
    options.metadata = metadata;
    options.retry.sleep = [](absl::Duration) {};
    return options;
  }
  // It may be repeated.
  static absl::Status LearnWith(const Client& client) {
    return client.Learn("m", v1::ExampleColumns(), Numbered{"p", 0}).status();
  }
  std::string File(const std::string& text) const {
    std::ofstream(path_) << text;
    return path_;
  }

  static std::string Header(const grpc::ServerContext& context, const char* name) {
    const auto found = context.client_metadata().find(name);
    return found == context.client_metadata().end()
               ? ""
               : std::string(found->second.data(), found->second.size());
  }

  // Calls come one at a time: the headers seen so far.
  std::string token_ = "good";
  std::vector<std::string> seen_;
  std::string traceparent_;
  FakeServer server_;
  const std::string path_ = absl::StrCat(::testing::TempDir(), "/token-", getpid());
};

TEST_F(CallMetadataTest, AFileIsReadAgainWhenTheServerRefusesItsToken) {
  const std::string path = File(" good \n");
  const Client client = *Client::Connect(server_.address(), OptionsWith({.token_file = path}));
  ASSERT_TRUE(LearnWith(client).ok());
  token_ = "better";
  EXPECT_TRUE(absl::IsUnauthenticated(LearnWith(client)));
  File("better");
  EXPECT_TRUE(LearnWith(client).ok());
  EXPECT_THAT(seen_, ElementsAre("Bearer good", "Bearer good", "Bearer good", "Bearer better"));
}

TEST_F(CallMetadataTest, ATokenIsNotSentToOthersWithoutTlsUnlessAllowed) {
  // Could lead anywhere.
  const std::string elsewhere = absl::StrCat("ipv4:", server_.address(), ",", server_.address());
  const absl::Status refused =
      LearnWith(*Client::Connect(elsewhere, OptionsWith({.token = "good"})));
  EXPECT_TRUE(absl::IsUnauthenticated(refused));
  EXPECT_THAT(seen_, Each(""));
  EXPECT_TRUE(LearnWith(*Client::Connect(elsewhere,
                                         OptionsWith({.token = "good", .token_without_tls = true})))
                  .ok());
}

TEST_F(CallMetadataTest, AnAddressOfThisMachineMayHaveSpaceAround) {
  const auto client =
      Client::Connect(absl::StrCat(" ", server_.address(), " "), OptionsWith({.token = "good"}));
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_TRUE(LearnWith(*client).ok());
}

TEST_F(CallMetadataTest, WhatIsNoTokenIsAnErrorAndSentNowhere) {
  for (const CallMetadata& metadata :
       {CallMetadata{.token = "two words"}, CallMetadata{.token = "line\n"},
        CallMetadata{.token_file = "/nowhere"}, CallMetadata{.token_file = File("")}}) {
    EXPECT_TRUE(absl::IsUnauthenticated(Learn(metadata)));
  }
  EXPECT_THAT(seen_, Each(""));
}

TEST_F(CallMetadataTest, ATokenThatIsTooLongIsNotCutButRefusedWithItsFile) {
  const std::string path = File(std::string(9000, 'a'));
  const absl::Status status = Learn({.token_file = path});
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  EXPECT_THAT(seen_, IsEmpty());
}

TEST_F(CallMetadataTest, TheCallersTraceIsPassedOn) {
  const std::string parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  EXPECT_TRUE(Learn({.token = "good", .traceparent = [&] { return parent; }}).ok());
  EXPECT_EQ(traceparent_, parent);
  EXPECT_TRUE(Learn({.token = "good", .traceparent = [] { return "not\nvalid"; }}).ok());
  EXPECT_EQ(traceparent_, "");
}

TEST(IsLocalAddress, OnlyAddressesOfThisMachineAre) {
  for (const char* address : {"127.0.0.1:1", "localhost:1", "LOCALHOST:1", "[::1]:1", "unix:/s",
                              "127.1:1", "localhost.:1", "[0:0:0:0:0:0:0:1]:1",
                              "[::ffff:127.0.0.1]:1", "ipv4:127.9.9.9:1", "dns:///localhost:1"}) {
    EXPECT_TRUE(IsLocalAddress(address)) << address;
  }
  for (const char* address : {"10.0.0.1:1", "0.0.0.0:1", "127.0.0.1.example:1", "example:1",
                              "[::]:1", "ipv4:127.0.0.1:1,10.0.0.1:1", "dns://8.8.8.8/localhost:1",
                              "localhost.example:1", "xds:///localhost", "ip6-localhost:1", ""}) {
    EXPECT_FALSE(IsLocalAddress(address)) << address;
  }
}

}  // namespace
}  // namespace perceptrond::client
