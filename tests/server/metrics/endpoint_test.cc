// How the metrics endpoint answers HTTP, whatever the metrics are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/metrics/metrics.h"
#include "tests/server/metrics/http_client.h"

namespace perceptrond {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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

TEST_F(MetricsEndpointTest, OnThisMachineAloneANameAsHostIsRefused) {
  Start();
  for (const char* host : {"localhost", "127.0.0.1:9", "[::1]:7601"}) {
    EXPECT_THAT(Ask(metrics_->port(), "GET /metrics", absl::StrCat("Host: ", host, "\r\n")),
                HasSubstr("perceptrond_build_info"))
        << host;
  }
  for (const char* method : {"GET", "HEAD", "OPTIONS"}) {
    const std::string answer =
        Ask(metrics_->port(), absl::StrCat(method, " /metrics"), "Host: rebound.example\r\n");
    EXPECT_THAT(answer, HasSubstr(" 403 Forbidden")) << method;
    EXPECT_THAT(answer, Not(HasSubstr("perceptrond_build_info"))) << method;
  }
}

TEST_F(MetricsEndpointTest, WhereOtherMachinesScrapeAnyHostIsRight) {
  auto metrics = Metrics::Start("0.0.0.0:0", 1000, NoModels());
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_THAT(Ask((*metrics)->port(), "GET /metrics", "Host: perceptrond:7601\r\n"),
              HasSubstr("perceptrond_build_info"));
}

TEST_F(MetricsEndpointTest, NoOtherOriginIsAllowedToRead) {
  Start();
  for (const char* method : {"GET", "OPTIONS"}) {
    const std::string answer = Ask(metrics_->port(), absl::StrCat(method, " /metrics"),
                                   "Origin: http://other.example\r\n"
                                   "Access-Control-Request-Method: GET\r\n");
    EXPECT_FALSE(answer.empty());
    EXPECT_THAT(answer, Not(HasSubstr("Access-Control-Allow"))) << method;
    EXPECT_THAT(answer, Not(HasSubstr("*"))) << answer.substr(0, 300);
  }
}

TEST_F(MetricsEndpointTest, ConnectionsThatSayNothingDoNotKeepAScrapeWaiting) {
  Start();
  std::vector<int> silent;
  for (int i = 0; i < 30; ++i) silent.push_back(Connect(metrics_->port()));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(Get(metrics_->port(), "/metrics"), HasSubstr("perceptrond_build_info"));
  // None of them has been given up by then: that takes 2 s.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1500));
  for (const int fd : silent) close(fd);
}

TEST_F(MetricsEndpointTest, HeadIsAnsweredWithoutABody) {
  Start();
  const std::string response = Ask(metrics_->port(), "HEAD /metrics");
  EXPECT_THAT(response, ::testing::StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(response, ::testing::EndsWith("\r\n\r\n"));
  EXPECT_THAT(Ask(metrics_->port(), "HEAD /other"), Not(HasSubstr("HTTP/1.1 200")));
}

TEST_F(MetricsEndpointTest, APortInUseIsSaidSo) {
  Start();
  const std::string address = absl::StrCat("127.0.0.1:", metrics_->port());
  const auto second = Metrics::Start(address, 1, NoModels());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              AllOf(HasSubstr("cannot listen for metrics on " + address), HasSubstr("in use")));
}

TEST_F(MetricsEndpointTest, WhatIsNoAddressIsRefused) {
  for (const char* address : {"", "127.0.0.1", "7601", ":7601", "127.0.0.1:", "127.0.0.1:70000",
                              "127.0.0.1:80s", "127.0.0.1:80,127.0.0.1:81", "127.0.0.1:-1"}) {
    EXPECT_EQ(Metrics::Start(address, 1, NoModels()).status().code(),
              absl::StatusCode::kInvalidArgument)
        << address;
  }
}

TEST_F(MetricsEndpointTest, ALocalNameMayBeListenedOn) {
  const auto metrics = Metrics::Start("localhost:0", 1, NoModels());
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_GT((*metrics)->port(), 0);
}

}  // namespace
}  // namespace perceptrond
