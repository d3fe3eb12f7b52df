// What the status page answers, before any HTTP: paths, methods, headers, what the JSON holds, and
// that asking changes nothing.
#include "server/page/status_page.h"

#include <gmock/gmock.h>
#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "core/report/format.h"
#include "google/rpc/status.pb.h"
#include "tests/support/journal_decorator.h"
#include "tests/support/traffic.h"

namespace perceptrond {
namespace {

using testing::Columns;
using testing::DenseSettings;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
namespace v1 = ::perceptron::v1;
namespace page = ::perceptron::page::v1;

std::string Header(const HttpAnswer& answer, const std::string& name) {
  for (const auto& [key, value] : answer.headers) {
    if (key == name) return value;
  }
  return "";
}

std::string Unpack(const std::string& packed) {
  google::protobuf::io::ArrayInputStream in(packed.data(), static_cast<int>(packed.size()));
  google::protobuf::io::GzipInputStream gzip(&in);
  std::string plain;
  const void* part = nullptr;
  int size = 0;
  while (gzip.Next(&part, &size)) plain.append(static_cast<const char*>(part), size);
  return plain;
}

class StatusPageTest : public ::testing::Test {
 protected:
  StatusPageTest() { Open(); }

  void Open() {
    page_.reset();
    store_.reset();
    store_ = std::make_unique<Store>(std::make_unique<testing::JournalDecorator>(journal_),
                                     Store::Options());
    page_ = std::make_unique<StatusPage>(
        *store_, [this] { return draining_(); }, /*loopback=*/true);
  }
  void Create(v1::Model settings) {
    ASSERT_OK(store_->Create(std::move(settings), "", false).status());
  }
  // Labels by lot: updates never end.
  void LearnNoise(const std::string& name, int examples) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (int i = 0; i < examples; ++i) {
      const Columns row =
          Columns().AddDense({normal(random), normal(random)}, random() % 2 == 0 ? 1 : -1);
      ASSERT_OK(testing::Send(*store_, name, "p", row.batch()).status);
    }
  }

  HttpAnswer Ask(const std::string& path,
                 std::vector<std::pair<std::string, std::string>> query = {}) {
    HttpRequest request;
    request.method = "GET";
    request.path = path;
    request.query = std::move(query);
    return page_->Answer(request);
  }
  template <typename Message>
  Message Json(const HttpAnswer& answer) {
    EXPECT_EQ(Header(answer, "Content-Type"), "application/json; charset=utf-8");
    Message message;
    const auto status = google::protobuf::util::JsonStringToMessage(answer.body, &message);
    EXPECT_TRUE(status.ok()) << status << "\n" << answer.body;
    return message;
  }
  page::ModelList List(std::vector<std::pair<std::string, std::string>> query = {}) {
    return Json<page::ModelList>(Ask("/api/models", std::move(query)));
  }
  page::ModelDetail Detail(const std::string& id,
                           std::vector<std::pair<std::string, std::string>> query = {}) {
    return Json<page::ModelDetail>(Ask("/api/models/" + id, std::move(query)));
  }
  static std::vector<std::string> Names(const page::ModelList& list) {
    std::vector<std::string> names;
    for (const auto& entry : list.models()) names.push_back(entry.model().name());
    return names;
  }

  const std::shared_ptr<Journal> journal_ = std::make_shared<MemoryJournal>();
  std::unique_ptr<Store> store_;
  std::function<bool()> draining_ = [] { return false; };
  std::unique_ptr<StatusPage> page_;
};

TEST_F(StatusPageTest, EveryPathIsOfTheRightKindAndTellsBrowsersToTrustNothingElse) {
  Create(DenseSettings("models/m", 2));
  const struct {
    const char* path;
    int status;
    const char* type;
  } cases[] = {{"/", 200, "text/html; charset=utf-8"},
               {"/models/m", 200, "text/html; charset=utf-8"},
               {"/models/none", 404, "text/html; charset=utf-8"},
               {"/models/", 400, "text/plain; charset=utf-8"},
               {"/models/-", 400, "text/plain; charset=utf-8"},
               {"/models/100%", 400, "text/plain; charset=utf-8"},
               {"/models/\xE0\xA4%A", 400, "text/plain; charset=utf-8"},
               {"/assets/page.css", 200, "text/css; charset=utf-8"},
               {"/assets/list.js", 200, "text/javascript; charset=utf-8"},
               {"/assets/names.js", 200, "text/javascript; charset=utf-8"},
               {"/assets/streak.js", 200, "text/javascript; charset=utf-8"},
               {"/assets/chart.js", 200, "text/javascript; charset=utf-8"},
               {"/assets/icon.svg", 200, "image/svg+xml"},
               {"/assets/chart.js-licence.txt", 200, "text/plain; charset=utf-8"},
               {"/api/models", 200, "application/json; charset=utf-8"},
               {"/api/models/m", 200, "application/json; charset=utf-8"},
               {"/api/models/none", 404, "application/json; charset=utf-8"},
               {"/api/models/-", 400, "application/json; charset=utf-8"},
               {"/api/models/a/b", 400, "application/json; charset=utf-8"},
               {"/api/", 404, "text/plain; charset=utf-8"},
               {"/assets/index.html", 404, "text/plain; charset=utf-8"},
               {"/assets/../page.css", 404, "text/plain; charset=utf-8"},
               {"/models", 404, "text/plain; charset=utf-8"},
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

// A site whose name leads to 127.0.0.1 would be of one origin with the page.
TEST_F(StatusPageTest, OnTheLoopbackNoOtherNameIsAnswered) {
  StatusPage elsewhere(*store_, draining_, /*loopback=*/false);
  HttpRequest request;
  request.method = "GET";
  for (const char* path : {"/", "/api/models", "/assets/page.css"}) {
    request.path = path;
    for (const char* host :
         {"evil.example", "evil.example:7601", "127.0.0.1.evil.example",
          "localhost.evil.example:7601", "[evil]:1", "[", "127.1.evil", ":7601"}) {
      request.host = host;
      EXPECT_EQ(page_->Answer(request).status, 403) << host;
      EXPECT_EQ(elsewhere.Answer(request).status, 200) << host;
    }
    for (const char* host :
         {"", "127.0.0.1", "127.0.0.1:7601", "localhost:1", "LocalHost", "[::1]:7601", "[::1]"}) {
      request.host = host;
      EXPECT_EQ(page_->Answer(request).status, 200) << host;
    }
  }
}

TEST_F(StatusPageTest, ABrowserThatHasAFileIsToldSoAndOneThatTakesGzipGetsIt) {
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
}

TEST_F(StatusPageTest, FiguresAreKeptByNobody) {
  for (int i = 0; i < 40; ++i) Create(DenseSettings(absl::StrCat("models/m", i), 2));
  HttpRequest request;
  request.method = "GET";
  request.path = "/api/models";
  const HttpAnswer plain = page_->Answer(request);
  EXPECT_EQ(Header(plain, "Cache-Control"), "no-store");
  request.accept_encoding = "gzip";
  const HttpAnswer packed = page_->Answer(request);
  EXPECT_EQ(Header(packed, "Content-Encoding"), "gzip");
  EXPECT_THAT(Unpack(packed.body), HasSubstr("\"name\":\"models/m1\""));
}

TEST_F(StatusPageTest, PagesHoldEveryModelOnceAndASearchThoseThatItIsOf) {
  std::vector<std::string> all;
  for (int i = 0; i < 50; ++i) {
    v1::Model settings = DenseSettings(absl::StrFormat("models/Model-%02d", i), 2);
    if (i % 10 == 3) settings.set_description("a <b>Needle</b>");
    all.push_back(settings.name());
    Create(settings);
  }
  std::vector<std::string> seen;
  std::string token;
  do {
    const page::ModelList list = List({{"page_size", "7"}, {"page_token", token}});
    EXPECT_LE(list.models_size(), 7);
    for (const std::string& name : Names(list)) seen.push_back(name);
    token = list.next_page_token();
  } while (!token.empty());
  EXPECT_EQ(seen, all);
  EXPECT_THAT(Names(List({{"search", "<B>nEEdle"}, {"page_size", "3"}})),
              ElementsAre(all[3], all[13], all[23]));
  EXPECT_THAT(Names(List({{"search", "model-4"}})).size(), 10);
  // In a name, not in what stands before each.
  EXPECT_THAT(Names(List({{"search", "models/"}})), IsEmpty());
  EXPECT_EQ(List({{"page_size", "100000"}}).models_size(), 50);
  EXPECT_EQ(List({{"page_size", "0"}}).models_size(), 1);
  for (const char* none : {"many", "", "-", "7.5", "0x10"})
    EXPECT_EQ(List({{"page_size", none}}).models_size(), 25) << none;
}

TEST_F(StatusPageTest, ANumberOutOfItsRangeIsTheNearestInIt) {
  for (int i = 0; i < 120; ++i) Create(DenseSettings(absl::StrCat("models/m", i), 2));
  for (const char* below : {"0", "-1", "-99999999999999999999"})
    EXPECT_EQ(List({{"page_size", below}}).models_size(), 1) << below;
  for (const char* above : {"101", "18446744073709551615", "99999999999999999999"})
    EXPECT_EQ(List({{"page_size", above}}).models_size(), 100) << above;
}

TEST_F(StatusPageTest, AnotherListsTokenIsRefusedWithWords) {
  for (int i = 0; i < 3; ++i) Create(DenseSettings(absl::StrCat("models/m", i), 2));
  const std::string token = List({{"page_size", "1"}}).next_page_token();
  const HttpAnswer answer = Ask("/api/models", {{"search", "m"}, {"page_token", token}});
  EXPECT_EQ(answer.status, 400);
  const auto status = Json<google::rpc::Status>(answer);
  EXPECT_THAT(status.message(), HasSubstr("page_token"));
}

TEST_F(StatusPageTest, AModelIsToldAsItStands) {
  v1::Model settings = DenseSettings("models/m", 2);
  settings.set_description("<script>alert(1)</script>");
  Create(settings);
  LearnNoise("models/m", 300);
  const page::ModelDetail detail = Detail("m");
  EXPECT_TRUE(detail.in_memory());
  EXPECT_EQ(detail.model().description(), "<script>alert(1)</script>");
  EXPECT_EQ(detail.model().report().examples(), 300U);
  EXPECT_EQ(detail.convergence(), "learning");
  const std::vector<std::string> lines = FormatReport(detail.model().report());
  EXPECT_EQ(std::vector<std::string>(detail.report().begin(), detail.report().end()), lines);
  const LearningCurve curves = store_->GetIfLoaded("models/m")->MakeLearningCurve();
  ASSERT_EQ(static_cast<size_t>(detail.model().history_size()), curves.points.size());
  for (size_t i = 0; i < curves.points.size(); ++i) {
    EXPECT_EQ(detail.model().history(static_cast<int>(i)).revision(),
              static_cast<int64_t>(curves.points[i].revision()));
  }
  EXPECT_FALSE(detail.has_heaviest_features());
  EXPECT_EQ(detail.server().models(), 1U);
  EXPECT_FALSE(detail.server().draining());
}

TEST_F(StatusPageTest, ACurveIsToldFromWhereItIsKnownAndAlwaysToThePresent) {
  Create(DenseSettings("models/m", 2));
  LearnNoise("models/m", 100);
  const page::ModelDetail whole = Detail("m");
  const int64_t last = whole.model().revision();
  const int present = whole.model().report().streak() > 0 ? 1 : 0;
  const page::ModelDetail rest = Detail("m", {{"after_revision", absl::StrCat(last - 5)}});
  ASSERT_EQ(rest.model().history_size(), 5 + present);
  EXPECT_EQ(rest.model().history(0).revision(), last - 4);
  for (const int64_t known : {last, last + 100}) {
    const page::ModelDetail present = Detail("m", {{"after_revision", absl::StrCat(known)}});
    ASSERT_EQ(present.model().history_size(), 1);
    EXPECT_EQ(present.model().history(0).revision(), last);
    EXPECT_EQ(present.model().history(0).examples(), 100U);
  }
}

// The page draws from the one to the other; and nothing is told twice.
TEST_F(StatusPageTest, ACurveHasTheLastUpdateAndThePresentBehindIt) {
  Create(DenseSettings("models/m", 2));
  LearnNoise("models/m", 50);
  const int64_t last = Detail("m").model().revision();
  for (int i = 0; Detail("m").model().report().streak() < 20; ++i) {
    ASSERT_LT(i, 1000);
    ASSERT_OK(
        testing::Send(*store_, "models/m", "p", Columns().AddDense({1, 1}, 1).batch()).status);
  }
  const v1::Model now = Detail("m").model();
  ASSERT_GE(now.history_size(), 2);
  const v1::HistoryPoint& present = now.history(now.history_size() - 1);
  const v1::HistoryPoint& updated = now.history(now.history_size() - 2);
  EXPECT_GE(now.revision(), last);
  EXPECT_EQ(updated.revision(), now.revision());
  EXPECT_EQ(present.revision(), now.revision());
  EXPECT_EQ(present.examples() - updated.examples(), now.report().streak());
  EXPECT_EQ(updated.weight_norm(), present.weight_norm());
  const page::ModelDetail rest =
      Detail("m", {{"after_revision", absl::StrCat(now.revision() - 1)}});
  EXPECT_EQ(rest.model().history_size(), 2);
  const page::ModelDetail known = Detail("m", {{"after_revision", absl::StrCat(now.revision())}});
  ASSERT_EQ(known.model().history_size(), 1);
  EXPECT_EQ(known.model().history(0).examples(), present.examples());
}

TEST_F(StatusPageTest, CurvesOfAListAreThinnedFromTheFirstPointToThePresent) {
  Create(DenseSettings("models/m", 2));
  LearnNoise("models/m", 400);
  const page::ModelDetail whole = Detail("m");
  ASSERT_GT(whole.model().history_size(), 100);
  for (const int points : {1, 2, 10, 64}) {
    const auto list = List({{"points", absl::StrCat(points)}});
    const auto& history = list.models(0).model().history();
    ASSERT_EQ(history.size(), points);
    EXPECT_EQ(history[points - 1].revision(), whole.model().revision());
    EXPECT_TRUE(points == 1 || history[0].revision() == whole.model().history(0).revision());
    for (int i = 1; i < points; ++i) EXPECT_GT(history[i].examples(), history[i - 1].examples());
  }
  EXPECT_EQ(List({{"points", "0"}}).models(0).model().history_size(), 0);
  EXPECT_EQ(List({{"points", "1000"}}).models(0).model().history_size(), 64);
}

TEST_F(StatusPageTest, FeaturesAreTheHeaviestAndWhyThereAreNone) {
  Create(testing::NamedSettings("models/named"));
  Create(DenseSettings("models/new", 2));
  v1::Model kernel = DenseSettings("models/kernel", 2);
  kernel.mutable_learner()->set_kind(v1::LEARNER_KIND_KERNEL_PERCEPTRON);
  Create(kernel);
  const testing::NamedColumns rows({testing::NamedExample{{{"light", 1}, {"heavy", 3}}, 1}},
                                   std::vector<std::string>{});
  ASSERT_OK(testing::Send(*store_, "models/named", "p", rows.batch()).status);
  const page::HeaviestFeatures all = Detail("named", {{"features", "10"}}).heaviest_features();
  ASSERT_EQ(all.lists_size(), 1);
  EXPECT_THAT(all.lists(0).weights().names(), ElementsAre("heavy", "light"));
  EXPECT_THAT(all.lists(0).weights().values(), ElementsAre(3, 1));
  EXPECT_EQ(all.first_revision(), 1);
  EXPECT_EQ(all.last_revision(), 1);
  EXPECT_EQ(all.absent(), "");
  const auto one = Detail("named", {{"features", "1"}}).heaviest_features();
  EXPECT_THAT(one.lists(0).weights().names(), ElementsAre("heavy"));
  const auto zero = Detail("new", {{"load", "true"}, {"features", "1"}}).heaviest_features();
  ASSERT_EQ(zero.lists_size(), 1);
  EXPECT_THAT(zero.lists(0).weights().values(), IsEmpty());
  const auto none = Detail("kernel", {{"load", "true"}, {"features", "1"}}).heaviest_features();
  EXPECT_EQ(none.lists_size(), 0);
  EXPECT_THAT(none.absent(), HasSubstr("kernel"));
}

TEST_F(StatusPageTest, AskingLoadsNothingUnlessItIsAskedTo) {
  Create(DenseSettings("models/m", 2));
  LearnNoise("models/m", 50);
  Open();
  const page::ModelList list = List();
  EXPECT_FALSE(list.models(0).in_memory());
  EXPECT_EQ(list.models(0).convergence(), "");
  EXPECT_EQ(list.models(0).model().history_size(), 0);
  const page::ModelDetail stored = Detail("m", {{"features", "5"}});
  EXPECT_FALSE(stored.in_memory());
  EXPECT_EQ(stored.model().report().examples(), 50U);
  EXPECT_FALSE(stored.has_heaviest_features());
  EXPECT_EQ(Ask("/models/m").status, 200);
  EXPECT_EQ(store_->stats().loads, 0U);
  const page::ModelDetail loaded = Detail("m", {{"load", "true"}});
  EXPECT_TRUE(loaded.in_memory());
  // The curve of what it learned before.
  EXPECT_GT(loaded.model().history_size(), 10);
  EXPECT_EQ(store_->stats().loads, 1U);
  EXPECT_EQ(Ask("/api/models/none", {{"load", "true"}}).status, 404);
}

TEST_F(StatusPageTest, ItAnswersWhileTheServerStops) {
  draining_ = [] { return true; };
  EXPECT_TRUE(List().server().draining());
}

TEST_F(StatusPageTest, BeyondSoManyAtOnceItSaysWhenToComeBack) {
  absl::Notification go;
  absl::BlockingCounter inside(StatusPage::kMostAtOnce);
  std::atomic<bool> hold = true;
  draining_ = [&] {
    if (hold) {
      inside.DecrementCount();
      go.WaitForNotification();
    }
    return false;
  };
  std::vector<std::thread> askers;
  for (int i = 0; i < StatusPage::kMostAtOnce; ++i)
    askers.emplace_back([this] { EXPECT_EQ(Ask("/api/models").status, 200); });
  inside.Wait();
  hold = false;
  const HttpAnswer row_errors = Ask("/api/models");
  EXPECT_EQ(row_errors.status, 503);
  EXPECT_EQ(Header(row_errors, "Retry-After"), "1");
  // Its own files are not held up.
  EXPECT_EQ(Ask("/assets/page.css").status, 200);
  go.Notify();
  for (std::thread& asker : askers) asker.join();
  EXPECT_EQ(Ask("/api/models").status, 200);
}

}  // namespace
}  // namespace perceptrond
