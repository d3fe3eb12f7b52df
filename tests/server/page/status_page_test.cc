// Paths, methods and headers of the status page, without HTTP; and that requests change nothing.
#include "server/page/status_page.h"

#include <gmock/gmock.h>
#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "google/rpc/status.pb.h"
#include "tests/server/page/status_page_fixture.h"
#include "tests/support/traffic.h"

namespace perceptrond {
namespace {

using ::perceptrond::testing::Header;
using ::perceptrond::testing::StatusPageTest;
using testing::DenseSettings;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
namespace page = ::perceptron::page::v1;

std::string Unpack(const std::string& packed) {
  google::protobuf::io::ArrayInputStream in(packed.data(), static_cast<int>(packed.size()));
  google::protobuf::io::GzipInputStream gzip(&in);
  std::string plain;
  const void* part = nullptr;
  int size = 0;
  while (gzip.Next(&part, &size)) plain.append(static_cast<const char*>(part), size);
  return plain;
}

TEST_F(StatusPageTest, EveryPathIsOfTheRightKindAndTellsBrowsersToTrustNothingElse) {
  Create(DenseSettings("models/m", 2));
  const struct {
    const char* path;
    int status;
    const char* type;
  } cases[] = {{"/", 200, "text/html; charset=utf-8"},
               {"/compare", 200, "text/html; charset=utf-8"},
               {"/models/m", 200, "text/html; charset=utf-8"},
               {"/models/none", 404, "text/html; charset=utf-8"},
               {"/models/", 400, "text/plain; charset=utf-8"},
               {"/models/100%", 400, "text/plain; charset=utf-8"},
               {"/models/\xE0\xA4%A", 400, "text/plain; charset=utf-8"},
               {"/assets/page.css", 200, "text/css; charset=utf-8"},
               {"/assets/chart.js", 200, "text/javascript; charset=utf-8"},
               {"/assets/icon.svg", 200, "image/svg+xml"},
               {"/assets/chart.js-licence.txt", 200, "text/plain; charset=utf-8"},
               {"/api/models", 200, "application/json; charset=utf-8"},
               {"/api/models/m", 200, "application/json; charset=utf-8"},
               {"/api/models/none", 404, "application/json; charset=utf-8"},
               {"/api/models/a/b", 400, "application/json; charset=utf-8"},
               {"/api/", 404, "text/plain; charset=utf-8"},
               {"/assets/index.html", 404, "text/plain; charset=utf-8"},
               {"/assets/../page.css", 404, "text/plain; charset=utf-8"},
               {"", 404, "text/plain; charset=utf-8"}};
  for (const auto& one : cases) {
    const HttpAnswer answer = Ask(one.path);
    EXPECT_EQ(answer.status, one.status) << one.path;
    EXPECT_EQ(Header(answer, "Content-Type"), one.type) << one.path;
    EXPECT_THAT(Header(answer, "Content-Security-Policy"), HasSubstr("default-src 'none'"));
    EXPECT_THAT(Header(answer, "Content-Security-Policy"), Not(HasSubstr("unsafe")));
    EXPECT_EQ(Header(answer, "X-Content-Type-Options"), "nosniff") << one.path;
  }
  EXPECT_THAT(Ask("/assets/chart.js-licence.txt").body, HasSubstr("Permission is hereby granted"));
}

TEST_F(StatusPageTest, OnlyReadingIsAllowed) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH"}) {
    for (const char* path : {"/", "/api/models", "/nowhere"}) {
      HttpRequest request;
      request.method = method;
      request.path = path;
      const HttpAnswer answer = page_->Answer(request);
      EXPECT_EQ(answer.status, 405) << method;
      EXPECT_EQ(Header(answer, "Allow"), "GET, HEAD");
    }
  }
  HttpRequest head;
  head.method = "HEAD";
  head.path = "/";
  EXPECT_EQ(page_->Answer(head).status, 200);
}

TEST_F(StatusPageTest, AFileIsNotModifiedForABrowserThatHasItAndGzippedForOneThatAcceptsIt) {
  HttpRequest request;
  request.method = "GET";
  request.path = "/assets/chart.js";
  const HttpAnswer plain = page_->Answer(request);
  EXPECT_EQ(Header(plain, "Content-Encoding"), "");
  EXPECT_EQ(Header(plain, "Cache-Control"), "no-cache");
  request.accept_encoding = "gzip, deflate, br";
  const HttpAnswer packed = page_->Answer(request);
  EXPECT_EQ(Header(packed, "Content-Encoding"), "gzip");
  EXPECT_LT(packed.body.size(), plain.body.size() / 2);
  EXPECT_EQ(Unpack(packed.body), plain.body);
  EXPECT_EQ(Header(packed, "ETag"), Header(plain, "ETag"));
  request.if_none_match = absl::StrCat("W/\"other\", ", Header(plain, "ETag"));
  const HttpAnswer again = page_->Answer(request);
  EXPECT_EQ(again.status, 304);
  EXPECT_THAT(again.body, IsEmpty());
  request.if_none_match = "W/\"other\"";
  EXPECT_EQ(page_->Answer(request).status, 200);
  request.accept_encoding = "gzip;q=0";
  EXPECT_EQ(Header(page_->Answer(request), "Content-Encoding"), "");
  // Figures are kept by nobody.
  request.path = "/api/models";
  EXPECT_EQ(Header(page_->Answer(request), "Cache-Control"), "no-store");
}

TEST(SetBody, GzipsWhatGetsShorterByIt) {
  HttpRequest request;
  request.accept_encoding = "gzip";
  std::mt19937 random(1);
  std::string noise;
  while (noise.size() < 5000) noise += static_cast<char>(random());
  for (const auto& [body, shorter] : {std::pair{std::string(1023, 'a'), false},
                                      {std::string(1024, 'a'), true},
                                      {noise, false},
                                      {noise + std::string(1 << 20, 'a') + noise, true}}) {
    HttpAnswer answer;
    SetBody(request, body, answer);
    EXPECT_EQ(Header(answer, "Content-Encoding"), shorter ? "gzip" : "");
    EXPECT_EQ(answer.body.size() < body.size(), shorter);
    EXPECT_TRUE((shorter ? Unpack(answer.body) : answer.body) == body);
  }
}

TEST_F(StatusPageTest, AskingLoadsNothingUnlessItIsAskedTo) {
  Create(DenseSettings("models/m", 2));
  LearnNoise("models/m", 50);
  Open();
  const page::ModelList list = List();
  EXPECT_FALSE(list.models(0).in_memory());
  // The journal has these.
  EXPECT_EQ(list.models(0).convergence(), "learning");
  EXPECT_EQ(list.models(0).model().report().window_examples(), 50U);
  for (const char* state : {"learning", "not in memory"})
    EXPECT_EQ(List({{"state", state}, {"min_error", "0.1"}}).matches(), 1U) << state;
  EXPECT_EQ(List({{"state", "converged"}}).matches(), 0U);
  EXPECT_EQ(list.models(0).model().learning_curve_size(), 0);
  const page::ModelDetail stored = Detail("m", {{"features", "5"}});
  EXPECT_FALSE(stored.in_memory());
  EXPECT_EQ(stored.model().report().examples(), 50U);
  EXPECT_FALSE(stored.has_top_features());
  EXPECT_EQ(Ask("/models/m").status, 200);
  EXPECT_EQ(store_->stats().loads, 0U);
  const page::ModelDetail loaded = Detail("m", {{"load", "true"}});
  EXPECT_TRUE(loaded.in_memory());
  // The curve of what it learned before.
  EXPECT_GT(loaded.model().learning_curve_size(), 10);
  EXPECT_EQ(store_->stats().loads, 1U);
  EXPECT_EQ(Ask("/api/models/none", {{"load", "true"}}).status, 404);
}

TEST_F(StatusPageTest, MoreThanTheMaximumOfRequestsGetRetryAfter) {
  absl::Notification go;
  absl::BlockingCounter inside(StatusPage::kMaxActiveRequests);
  std::atomic<bool> hold = true;
  draining_ = [&] {
    if (hold) {
      inside.DecrementCount();
      go.WaitForNotification();
    }
    return false;
  };
  std::vector<std::thread> askers;
  for (int i = 0; i < StatusPage::kMaxActiveRequests; ++i)
    askers.emplace_back([this] { EXPECT_EQ(Ask("/api/models").status, 200); });
  inside.Wait();
  hold = false;
  const HttpAnswer refused = Ask("/api/models");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(Header(refused, "Retry-After"), "1");
  // Its own files are not held up.
  EXPECT_EQ(Ask("/assets/page.css").status, 200);
  go.Notify();
  for (std::thread& asker : askers) asker.join();
  draining_ = [] { return true; };
  EXPECT_TRUE(List().server().draining());
}

}  // namespace
}  // namespace perceptrond
