// The status page of the real server, over its real HTTP: beside the metrics, and
// not at all where it is switched off.
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class StatusPageServerTest : public ServerTest {
 protected:
  explicit StatusPageServerTest(std::vector<std::string> flags = {})
      : ServerTest(std::move(flags)) {}
  // Status line, headers and body.
  std::string Ask(const std::string& path, const std::string& options = "") {
    return RunCommand("curl -si " + options +
                      " 'http://127.0.0.1:" + std::to_string(server_.metrics_port()) + path + "'")
        .out;
  }
};

TEST_F(StatusPageServerTest, IsServedBesideTheMetrics) {
  CreateDense("a", 1);
  EXPECT_THAT(Ask("/"), ::testing::AllOf(HasSubstr("HTTP/1.1 200"), HasSubstr("<!doctype html>")));
  EXPECT_THAT(Ask("/api/models?search=A&page_size=3"), HasSubstr("\"name\":\"models/a\""));
  EXPECT_THAT(Ask("/api/models?search=%61&page_size=3"), HasSubstr("\"name\":\"models/a\""));
  EXPECT_THAT(Ask("/api/models?search=b"), Not(HasSubstr("models/a")));
  EXPECT_THAT(Ask("/api/models/a"), HasSubstr("\"report\":[\"state: LEARNING"));
  EXPECT_THAT(Ask("/models/b"), HasSubstr("HTTP/1.1 404"));
  EXPECT_THAT(Ask("/", "-X POST -d x"),
              ::testing::AllOf(HasSubstr("HTTP/1.1 405"), HasSubstr("Allow: GET, HEAD")));
  const std::string head = Ask("/assets/page.css", "-I");
  EXPECT_THAT(head, ::testing::AllOf(HasSubstr("HTTP/1.1 200"), Not(HasSubstr("color-scheme"))));
  // What was there before still is.
  EXPECT_THAT(Ask("/metrics"), HasSubstr("perceptrond_models 1"));
  EXPECT_THAT(Ask("/metrics", "-I"), HasSubstr("text/plain; version=0.0.4"));
}

TEST_F(StatusPageServerTest, ANameThatLeadsToTheLoopbackIsNotAnswered) {
  EXPECT_THAT(Ask("/api/models", "-H 'Host: evil.example'"), HasSubstr("HTTP/1.1 403"));
  EXPECT_THAT(Ask("/metrics", "-H 'Host: evil.example'"), HasSubstr("HTTP/1.1 403"));
  EXPECT_THAT(Ask("/metrics", "-H 'Host: localhost'"), HasSubstr("HTTP/1.1 200"));
}

// The flag.
class StatusPageElsewhereTest : public StatusPageServerTest,
                                public ::testing::WithParamInterface<std::string> {
 protected:
  StatusPageElsewhereTest()
      : StatusPageServerTest({"--metrics-address=0.0.0.0:0", "--insecure", GetParam()}) {}
};

TEST_P(StatusPageElsewhereTest, EveryNameIsAnsweredUnlessSomeAreListed) {
  const bool all = GetParam() == "--metrics-hosts=";
  for (const char* path : {"/", "/metrics"}) {
    EXPECT_THAT(Ask(path, "-H 'Host: evil.example'"),
                HasSubstr(all ? "HTTP/1.1 200" : "HTTP/1.1 403"));
    EXPECT_THAT(Ask(path, "-H 'Host: p.example:80'"), HasSubstr("HTTP/1.1 200"));
  }
}

INSTANTIATE_TEST_SUITE_P(Flags, StatusPageElsewhereTest,
                         ::testing::Values("--metrics-hosts=", "--metrics-hosts=p.example"),
                         [](const auto& flag) {
                           return flag.param.back() == '=' ? "None" : "Some";
                         });

// A browser's script could not even decode some of these.
TEST_F(StatusPageServerTest, PathsAreOnlyPathsAndAnInvalidModelNameIsReportedInPlainText) {
  CreateDense("m", 1);
  for (const char* path : {"/assets/../../etc/passwd", "/assets/%2e%2e/%2e%2e/etc/passwd",
                           "/models/%00", "/api/models/..%2f..%2fetc%2fpasswd"}) {
    EXPECT_THAT(Ask(path, "--path-as-is"), HasSubstr("HTTP/1.1 4")) << path;
  }
  for (const char* path : {"/models/%E0%A4%A", "/models/100%", "/models/m%", "/models/%zz",
                           "/models/%C3%28", "/models/m%2Fn", "/models/a%20b", "/models/"}) {
    EXPECT_THAT(Ask(path),
                ::testing::AllOf(HasSubstr("HTTP/1.1 400"), HasSubstr("Content-Type: text/plain"),
                                 HasSubstr("not a model's name"), Not(HasSubstr("<script"))))
        << path;
  }
  EXPECT_THAT(Ask("/models/%6D"), HasSubstr("HTTP/1.1 200"));
}

TEST_F(StatusPageServerTest, ANameMayEndWithDots) {
  CreateDense("a", 1);
  EXPECT_THAT(Ask("/models/a."), HasSubstr("HTTP/1.1 404"));
  CreateDense("a.", 2);
  CreateDense("a..b", 3);
  for (const char* path : {"/api/models/a.", "/api/models/a%2e"})
    EXPECT_THAT(Ask(path), HasSubstr("\"name\":\"models/a.\"")) << path;
  EXPECT_THAT(Ask("/models/a."), HasSubstr("HTTP/1.1 200"));
  EXPECT_THAT(Ask("/api/models/a..b"), HasSubstr("\"dimension\":3"));
  EXPECT_THAT(Ask("/api/models/a"), HasSubstr("\"dimension\":1"));
  EXPECT_THAT(Ask("/metrics"), HasSubstr("perceptrond_models 3"));
}

class NoStatusPage : public StatusPageServerTest {
 protected:
  NoStatusPage() : StatusPageServerTest({"--status-page", "off"}) {}
};

TEST_F(NoStatusPage, LeavesTheMetricsAlone) {
  for (const char* path : {"/", "/api/models", "/assets/page.css", "/models/a"})
    EXPECT_THAT(Ask(path), HasSubstr("HTTP/1.1 404")) << path;
  EXPECT_THAT(Ask("/metrics"), HasSubstr("perceptrond_models 0"));
}

}  // namespace
}  // namespace perceptrond::testing
