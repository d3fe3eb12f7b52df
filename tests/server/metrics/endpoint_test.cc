// How the metrics endpoint answers HTTP, whatever the metrics are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/http/http_server.h"
#include "server/metrics/metrics.h"
#include "tests/server/metrics/http_client.h"

namespace perceptrond {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Metrics::Sources NoModels() {
  return {.models = [](size_t /*limit*/) { return std::vector<ModelMetrics>(); },
          .server = [] { return ServerStats(); }};
}

class MetricsEndpointTest : public ::testing::Test {
 protected:
  void Start() {
    auto metrics = Metrics::Start("127.0.0.1:0", 1000, NoModels());
    ASSERT_TRUE(metrics.ok()) << metrics.status();
    metrics_ = std::move(*metrics);
  }

  std::unique_ptr<Metrics> metrics_;
};

TEST_F(MetricsEndpointTest, ConnectionsThatSayNothingDoNotKeepAScrapeWaitingAndTheOldestMakesRoom) {
  Start();
  std::vector<int> silent;
  for (size_t i = 0; i < 2 * HttpServer::kMaxConnections; ++i)
    silent.push_back(Connect(metrics_->port()));
  EXPECT_THAT(Get(metrics_->port(), "/metrics"), HasSubstr("perceptrond_build_info"));
  char byte;
  EXPECT_EQ(recv(silent.front(), &byte, 1, 0), 0);
  EXPECT_EQ(recv(silent.back(), &byte, 1, MSG_DONTWAIT), -1);
  for (const int fd : silent) close(fd);
}

TEST_F(MetricsEndpointTest, MetricsAreOnlyRead) {
  Start();
  EXPECT_THAT(Ask(metrics_->port(), "POST /metrics"),
              AllOf(HasSubstr("HTTP/1.1 405"), HasSubstr("Allow: GET, HEAD")));
}

TEST_F(MetricsEndpointTest, APortInUseIsSaidSo) {
  Start();
  const std::string address = absl::StrCat("127.0.0.1:", metrics_->port());
  const auto second = Metrics::Start(address, 1, NoModels());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              AllOf(HasSubstr("cannot listen for metrics on " + address), HasSubstr("in use")));
}

}  // namespace
}  // namespace perceptrond
