// The status page of the real server, over its real HTTP: beside the metrics, and not at all where it is switched off.
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Status line, headers and body.
std::string Ask(const ServerProcess& server, const std::string& path,
                const std::string& options = "") {
  return RunCommand("curl -si --path-as-is " + options +
                    " 'http://127.0.0.1:" + std::to_string(server.metrics_port()) + path + "'")
      .out;
}

class StatusPageServerTest : public ServerTest {
 protected:
  std::string Ask(const std::string& path, const std::string& options = "") {
    return testing::Ask(server_, path, options);
  }
};

TEST_F(StatusPageServerTest, IsServedBesideTheMetrics) {
  CreateDense("a", 1);
  EXPECT_THAT(Ask("/"), AllOf(HasSubstr("HTTP/1.1 200"), HasSubstr("<!doctype html>")));
  EXPECT_THAT(Ask("/api/models?search=%61&page_size=3"), HasSubstr("\"name\":\"models/a\""));
  EXPECT_THAT(Ask("/api/models?search=b"), Not(HasSubstr("models/a")));
  EXPECT_THAT(Ask("/api/models/a"), HasSubstr("\"report\":[\"state: LEARNING"));
  EXPECT_THAT(Ask("/", "-X POST -d x"), HasSubstr("HTTP/1.1 405"));
  EXPECT_THAT(Ask("/assets/page.css", "-I"),
              AllOf(HasSubstr("HTTP/1.1 200"), Not(HasSubstr("color-scheme"))));
  EXPECT_THAT(Ask("/metrics"), HasSubstr("perceptrond_models 1"));
  EXPECT_THAT(Ask("/metrics", "-I"), HasSubstr("text/plain; version=0.0.4"));
  for (const char* path : {"/api/models", "/metrics"}) {
    EXPECT_THAT(Ask(path, "-H 'Host: evil.example'"), HasSubstr("HTTP/1.1 403"));
    EXPECT_THAT(Ask(path, "-H 'Origin: http://evil.example'"),
                Not(HasSubstr("Access-Control-Allow")));
  }
}

// tests/server/page/status_page_test.cc has all paths, once their escapes are gone.
TEST_F(StatusPageServerTest, EscapesInAPathAreDecoded) {
  CreateDense("a..b", 3);
  for (const auto& [path, status] : {std::pair{"/models/%61..b", "HTTP/1.1 200"},
                                     {"/assets/%2e%2e/%2e%2e/etc/passwd", "HTTP/1.1 404"},
                                     {"/models/%E0%A4%A", "HTTP/1.1 400"},
                                     {"/models/m%2Fn", "HTTP/1.1 400"}})
    EXPECT_THAT(Ask(path), HasSubstr(status)) << path;
}

TEST(StatusPageFlags, HostsAreListedAndThePageIsSwitchedOff) {
  const TempDir dir;
  const auto start = [&](const std::string& flag) {
    return ServerProcess(dir.path() + "/data", {"--metrics-address=0.0.0.0:0", "--insecure", flag});
  };
  for (const auto& [flag, other] : {std::pair{"--metrics-hosts=", "HTTP/1.1 200"},
                                    {"--metrics-hosts=p.example", "HTTP/1.1 403"}}) {
    const ServerProcess server = start(flag);
    EXPECT_THAT(Ask(server, "/", "-H 'Host: evil.example'"), HasSubstr(other)) << flag;
    EXPECT_THAT(Ask(server, "/", "-H 'Host: p.example:80'"), HasSubstr("HTTP/1.1 200")) << flag;
  }
  const ServerProcess off = start("--status-page=off");
  for (const char* path : {"/", "/api/models", "/assets/page.css", "/models/a"})
    EXPECT_THAT(Ask(off, path), HasSubstr("HTTP/1.1 404")) << path;
  EXPECT_THAT(Ask(off, "/metrics"), HasSubstr("perceptrond_models 0"));
}

}  // namespace
}  // namespace perceptrond::testing
