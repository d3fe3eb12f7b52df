// How the metrics endpoint answers HTTP, whatever the metrics are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <thread>
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

  // A scrape is answered before the server has given up any of these connections, which takes it kRequestSeconds.
  void ExpectScrapeBeside(std::span<const int> connections) {
    EXPECT_THAT(Get(metrics_->port(), "/metrics"), HasSubstr("perceptrond_build_info"));
    char byte;
    for (const int fd : connections) EXPECT_EQ(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
  }

  std::unique_ptr<Metrics> metrics_;
};

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
  ExpectScrapeBeside(silent);
  for (const int fd : silent) close(fd);
}

// Each such client would hold a thread of a server that has one for each connection.
TEST_F(MetricsEndpointTest, ClientsThatSendAByteASecondDoNotKeepAScrapeWaiting) {
  Start();
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n";
  std::vector<int> slow;
  for (int i = 0; i < 50; ++i) slow.push_back(Connect(metrics_->port()));
  for (size_t second = 0; second < 4; ++second) {
    for (const int fd : slow) EXPECT_EQ(send(fd, &request[second], 1, MSG_NOSIGNAL), 1);
    ExpectScrapeBeside(slow);
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  for (const int fd : slow) close(fd);
}

TEST_F(MetricsEndpointTest, AClientThatDoesNotEndItsRequestIsCutOffThoughItSendsBytes) {
  Start();
  const int fd = Connect(metrics_->port());
  const auto begin = std::chrono::steady_clock::now();
  const timeval timeout{.tv_sec = 0, .tv_usec = 500'000};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  ssize_t received = -1;
  for (char byte; received != 0 && send(fd, "x", 1, MSG_NOSIGNAL) == 1;)
    received = recv(fd, &byte, 1, 0);
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GT(took, std::chrono::seconds(HttpServer::kRequestSeconds - 1));
  EXPECT_LT(took, std::chrono::seconds(HttpServer::kRequestSeconds + 20));
  close(fd);
}

TEST_F(MetricsEndpointTest, AtTheLimitTheOldestConnectionWithoutARequestMakesRoom) {
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

TEST_F(MetricsEndpointTest, BodiesAreNotKeptAndOtherMethodsAreRefused) {
  Start();
  const std::string answer = Ask(metrics_->port(), "POST /metrics", "Content-Length: 3\r\n\r\nabc");
  EXPECT_THAT(answer, HasSubstr(" 405 "));
  EXPECT_THAT(answer, HasSubstr("Allow: GET, HEAD"));
}

TEST_F(MetricsEndpointTest, AnIpv6AddressMayBeListenedOn) {
  const auto metrics = Metrics::Start("[::1]:0", 1, NoModels());
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_GT((*metrics)->port(), 0);
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
