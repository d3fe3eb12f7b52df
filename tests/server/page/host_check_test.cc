// By which names metrics and page can be asked for.
#include "server/page/host_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace perceptrond {
namespace {

using ::testing::HasSubstr;

HttpAnswer Ask(const std::vector<std::string>& names, const std::string& host) {
  HttpRequest request;
  request.method = "GET";
  request.path = "/metrics";
  request.host = host;
  return WithHostCheck(names, [](const HttpRequest&) {
    HttpAnswer answer;
    answer.body = "secret";
    return answer;
  })(request);
}

TEST(HostCheckTest, AddressesAndLocalhostAreAnswered) {
  for (const char* host : {"", "127.0.0.1", "127.0.0.1:7601", "192.0.2.7:1", "localhost:1",
                           "LocalHost", "[::1]:7601", "[2001:db8::1]"})
    EXPECT_EQ(Ask({}, host).body, "secret") << host;
}

// A site whose name leads to this machine would be of one origin with the page.
TEST(HostCheckTest, OtherNamesAreRefusedWithTheOptionThatAllowsThem) {
  for (const char* host : {"evil.example", "evil.example:7601", "127.0.0.1.evil.example",
                           "localhost.evil.example:7601", "[evil]:1", "[", "127.1.evil", ":7601"}) {
    const HttpAnswer answer = Ask({"perceptrond"}, host);
    EXPECT_EQ(answer.status, 403) << host;
    EXPECT_THAT(answer.body, HasSubstr("--metrics-hosts")) << host;
  }
}

TEST(HostCheckTest, NamesThatAreListedAreAnswered) {
  for (const char* host : {"perceptrond:7601", "Perceptrond", "p.example:1", "127.0.0.1"})
    EXPECT_EQ(Ask({"perceptrond", "P.example"}, host).body, "secret") << host;
}

}  // namespace
}  // namespace perceptrond
