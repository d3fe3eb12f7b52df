// The status page without HTTP: its paths, methods and headers; that requests change nothing; and its data, lists, searches,
// curves and top features of models. Its index of models: orders, conditions, rates, and how often all models are read.
#include "server/page/status_page.h"

#include <gmock/gmock.h>
#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "core/journal/memory_journal.h"
#include "core/model/views.h"
#include "core/report/format.h"
#include "google/rpc/status.pb.h"
#include "server/page/model_answers.h"
#include "server/page/model_index.h"
#include "tests/support/journal_decorator.h"
#include "tests/support/status.h"
#include "tests/support/traffic.h"

namespace perceptrond {
namespace {

using testing::Columns;
using testing::DenseSettings;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Optional;
namespace v1 = ::perceptron::v1;
namespace page = ::perceptron::page::v1;

std::string Header(const HttpAnswer& answer, const std::string& name) {
  for (const auto& [key, value] : answer.headers) {
    if (key == name) return value;
  }
  return "";
}

class StatusPageTest : public ::testing::Test {
 protected:
  StatusPageTest() { Open(); }

  void Open() {
    page_.reset();
    store_.reset();
    store_ = std::make_unique<Store>(std::make_unique<testing::JournalDecorator>(journal_),
                                     Store::Options());
    page_ = std::make_unique<StatusPage>(*store_, [this] { return draining_(); });
  }
  void Create(v1::Model settings) {
    ASSERT_OK(store_->Create(std::move(settings), "", false).status());
  }
  // Learns random labels: updates never end.
  void LearnNoise(const std::string& name, int examples) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (int i = 0; i < examples; ++i) {
      const Columns row =
          Columns().AddDense({normal(random), normal(random)}, random() % 2 == 0 ? 1 : -1);
      ASSERT_OK(testing::Send(*store_, name, "p", row.batch()).status);
    }
  }

  using Query = std::vector<std::pair<std::string, std::string>>;

  HttpAnswer Ask(const std::string& path, Query query = {}) {
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
  page::ModelList List(Query query = {}) {
    return Json<page::ModelList>(Ask("/api/models", std::move(query)));
  }
  page::ModelDetail Detail(const std::string& id, Query query = {}) {
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

TEST_F(StatusPageTest, PagesHoldEveryModelOnceAndASearchThoseThatItIsOf) {
  std::vector<std::string> all;
  for (int i = 0; i < 50; ++i) {
    v1::Model settings = DenseSettings(absl::StrFormat("models/Model-%02d", i), 2);
    if (i % 10 == 3) settings.set_description("a <b>Needle</b>");
    all.push_back(settings.name());
    Create(settings);
  }
  std::vector<std::string> seen;
  for (int number = 1; number <= 8; ++number) {
    const page::ModelList list = List({{"page_size", "7"}, {"page", absl::StrCat(number)}});
    EXPECT_EQ(list.models_size(), number < 8 ? 7 : 1);
    EXPECT_EQ(list.matches(), 50U);
    for (const std::string& name : Names(list)) seen.push_back(name);
  }
  EXPECT_EQ(seen, all);
  EXPECT_THAT(Names(List({{"page", "18446744073709551615"}})), IsEmpty());
  EXPECT_EQ(Names(List({{"page", "-3"}, {"page_size", "1"}})), std::vector{all[0]});
  EXPECT_THAT(Names(List({{"search", "<B>nEEdle"}, {"page_size", "3"}})),
              ElementsAre(all[3], all[13], all[23]));
  EXPECT_THAT(Names(List({{"search", "model-4"}})).size(), 10);
  // In a name, not in what stands before each.
  EXPECT_THAT(Names(List({{"search", "models/"}})), IsEmpty());
  // A number out of its range is the nearest in it.
  for (const auto& [size, models] :
       {std::pair{"", 25}, {"-99999999999999999999", 1}, {"18446744073709551615", 50}})
    EXPECT_EQ(List({{"page_size", size}}).models_size(), models) << size;
}

TEST_F(StatusPageTest, AReaderSeesTheModelsThatItMayReadAndNothingOfTheRest) {
  for (const char* name : {"models/a", "models/b1", "models/b2", "models/b3", "models/c"})
    Create(DenseSettings(name, 2));
  HttpRequest request;
  request.method = "GET";
  request.host = "localhost";
  request.readable = std::vector<std::string>{"models/b"};
  const auto ask = [&](const std::string& path) {
    request.path = path;
    return page_->Answer(request);
  };
  request.query = {{"page_size", "3"}};
  const auto list = Json<page::ModelList>(ask("/api/models"));
  EXPECT_THAT(Names(list), ElementsAre("models/b1", "models/b2", "models/b3"));
  EXPECT_EQ(list.matches(), 3U);
  EXPECT_EQ(list.server().models(), 0);
  request.query = {{"search", "a"}};
  EXPECT_THAT(Names(Json<page::ModelList>(ask("/api/models"))), IsEmpty());
  request.query.clear();
  EXPECT_EQ(ask("/api/models/b1").status, 200);
  EXPECT_EQ(ask("/models/b1").status, 200);
  for (const char* path : {"/api/models/a", "/models/c", "/api/models/absent", "/models/absent"})
    EXPECT_EQ(ask(path).status, 404) << path;
}

TEST_F(StatusPageTest, TheRequestSaysWhichModelsAreListedInWhichOrder) {
  for (const char* name : {"models/few", "models/many", "models/none"})
    Create(DenseSettings(name, 2));
  LearnNoise("models/few", 50);
  LearnNoise("models/many", 100);
  // Loaded, so that its state is known.
  ASSERT_OK(store_->Acquire("models/none").status());
  EXPECT_THAT(Names(List({{"order_by", "examples desc"}})),
              ElementsAre("models/many", "models/few", "models/none"));
  EXPECT_THAT(Names(List({{"state", "no examples"}})), ElementsAre("models/none"));
  EXPECT_THAT(Names(List({{"min_error", "0.05"}})), ElementsAre("models/few", "models/many"));
  EXPECT_THAT(Names(List({{"min_error", "1.01"}})), IsEmpty());
  EXPECT_THAT(Names(List({{"active", "true"}})), IsEmpty());
  for (const char* none : {"", "0"}) EXPECT_EQ(List({{"min_error", none}}).matches(), 3U) << none;
}

TEST_F(StatusPageTest, AParameterThatIsUnknownOrMalformedIsRefusedWithWords) {
  Create(DenseSettings("models/m", 2));
  const auto expect_refused = [&](const std::string& path, const std::string& name,
                                  const std::string& value) {
    const HttpAnswer answer = Ask(path, {{name, value}});
    EXPECT_EQ(answer.status, 400) << path << " " << name << " " << value;
    EXPECT_THAT(Json<google::rpc::Status>(answer).message(), HasSubstr(name));
  };
  for (const char* value : {"x", "\xFF<b>", "-", " ", "1x", "nan"}) {
    for (const char* name :
         {"order_by", "state", "active", "min_error", "page", "page_size", "points", "min_eror"})
      expect_refused("/api/models", name, value);
    for (const char* name : {"load", "after_revision", "features", "search"})
      expect_refused("/api/models/m", name, value);
  }
  for (const char* value : {"-1", "inf", "1e999"})
    expect_refused("/api/models", "min_error", value);
  for (const char* value : {"7.5", "0x10"}) expect_refused("/api/models", "page_size", value);
  const HttpAnswer answer = Ask("/api/models", {{"\xFF<b>", ""}});
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(Json<google::rpc::Status>(answer).message(), HasSubstr("order_by"));
}

TEST_F(StatusPageTest, AModelHasItsCurrentSettingsReportAndState) {
  v1::Model settings = DenseSettings("models/m", 2);
  settings.set_description("<script>alert(1)</script>");
  for (const char* label : {"ham", "spam"}) settings.add_label_names(label);
  Create(settings);
  LearnNoise("models/m", 300);
  const page::ModelDetail detail = Detail("m");
  EXPECT_TRUE(detail.in_memory());
  EXPECT_EQ(detail.model().description(), "<script>alert(1)</script>");
  EXPECT_EQ(detail.model().report().examples(), 300U);
  EXPECT_EQ(detail.convergence(), "learning");
  const std::vector<std::string> lines = FormatReport(detail.model().report());
  EXPECT_EQ(std::vector<std::string>(detail.report().begin(), detail.report().end()), lines);
  const LearningCurve curves = MakeLearningCurve(*store_->GetIfLoaded("models/m"));
  ASSERT_EQ(static_cast<size_t>(detail.model().learning_curve_size()), curves.points.size());
  for (size_t i = 0; i < curves.points.size(); ++i) {
    EXPECT_EQ(detail.model().learning_curve(static_cast<int>(i)).revision(),
              curves.points[i].revision());
  }
  EXPECT_FALSE(detail.has_top_features());
  EXPECT_THAT(detail.model().label_names(), ElementsAre("ham", "spam"));
  Open();
  EXPECT_THAT(Detail("m").model().label_names(), ElementsAre("ham", "spam"));
  EXPECT_EQ(detail.server().models(), 1U);
  EXPECT_FALSE(detail.server().draining());
}

// core/model/history_test.cc has the curve. The page asks for its points after a revision, and a list thins it out.
TEST_F(StatusPageTest, ACurveIsSentFromTheRevisionOnThatIsAskedForAndThinnedInAList) {
  Create(DenseSettings("models/m", 2));
  LearnNoise("models/m", 400);
  const v1::Model whole = Detail("m").model();
  ASSERT_GT(whole.learning_curve_size(), 100);
  for (const auto& [after, revisions] :
       {std::pair{whole.revision() - 1, 2}, {whole.revision(), 1}}) {
    const v1::Model rest = Detail("m", {{"after_revision", absl::StrCat(after)}}).model();
    EXPECT_LE(rest.learning_curve_size(), revisions);
    EXPECT_EQ(rest.learning_curve().rbegin()->examples(), whole.report().examples());
  }
  for (const int points : {0, 2, 64, 1000}) {
    const auto list = List({{"points", absl::StrCat(points)}});
    const auto& curve = list.models(0).model().learning_curve();
    ASSERT_EQ(curve.size(), std::min(points, 64));
    if (points == 0) continue;
    EXPECT_EQ(curve.begin()->revision(), whole.learning_curve(0).revision());
    EXPECT_EQ(curve.rbegin()->revision(), whole.revision());
  }
}

TEST_F(StatusPageTest, TopFeaturesAreListedOrTheirAbsenceExplained) {
  Create(testing::NamedSettings("models/named"));
  Create(DenseSettings("models/new", 2));
  v1::Model kernel = DenseSettings("models/kernel", 2);
  kernel.mutable_learner()->mutable_kernel_perceptron();
  Create(kernel);
  const testing::NamedColumns rows({testing::NamedExample{{{"light", 1}, {"heavy", 3}}, 1}},
                                   std::vector<std::string>{});
  ASSERT_OK(testing::Send(*store_, "models/named", "p", rows.batch()).status);
  const page::TopFeatures all = Detail("named", {{"features", "10"}}).top_features();
  ASSERT_EQ(all.lists_size(), 1);
  EXPECT_THAT(all.lists(0).weights().names(), ElementsAre("heavy", "light"));
  EXPECT_THAT(all.lists(0).weights().values(), ElementsAre(3, 1));
  EXPECT_EQ(all.first_revision(), 1);
  EXPECT_EQ(all.last_revision(), 1);
  EXPECT_EQ(all.absent(), "");
  const auto one = Detail("named", {{"features", "1"}}).top_features();
  EXPECT_THAT(one.lists(0).weights().names(), ElementsAre("heavy"));
  const auto zero = Detail("new", {{"load", "true"}, {"features", "1"}}).top_features();
  ASSERT_EQ(zero.lists_size(), 1);
  EXPECT_THAT(zero.lists(0).weights().values(), IsEmpty());
  const auto none = Detail("kernel", {{"load", "true"}, {"features", "1"}}).top_features();
  EXPECT_EQ(none.lists_size(), 0);
  EXPECT_THAT(none.absent(), HasSubstr("kernel"));
}

ModelFilter Where(std::string ModelFilter::*field, std::string value) {
  ModelFilter filter;
  filter.*field = std::move(value);
  return filter;
}

class ModelIndexTest : public ::testing::Test {
 protected:
  void Create(const std::string& id, const std::string& description = "") {
    v1::Model settings = DenseSettings("models/" + id, 1);
    settings.set_description(description);
    ASSERT_OK(store_.Create(std::move(settings), "", false).status());
    // Loaded, so that its state is known.
    ASSERT_OK(store_.Acquire("models/" + id).status());
  }
  // Learns `same` examples of one point and label, of which only the first can be a mistake, and then
  // `contrary` ones of labels that change each time, which all are. Its value is no whole number, or
  // the model would be proven not to be separable.
  void Learn(const std::string& id, int same, int contrary = 0) {
    for (int i = 0; i < same + contrary; ++i) {
      const int label = i < same || (i - same) % 2 == 1 ? 1 : -1;
      ASSERT_OK(
          testing::Send(store_, "models/" + id, "p", Columns().AddDense({0.7f}, label).batch())
              .status);
    }
  }
  void MarkPass(const std::string& id, int64_t number) {
    ASSERT_OK(
        testing::Send(store_, "models/" + id, "p", Columns().batch(), std::nullopt, number).status);
  }
  void Freeze(const std::string& id) {
    ASSERT_OK(store_
                  .Change("models/" + id, {},
                          [](v1::Model& model) {
                            model.set_state(v1::MODEL_STATE_FROZEN);
                            return absl::OkStatus();
                          })
                  .status());
  }
  void Pass(absl::Duration time) { now_ += time; }

  std::vector<std::string> Ids(const ModelFilter& filter, size_t skip = 0, size_t limit = 100) {
    const absl::StatusOr<ModelIndex::Found> found = index_.Find(filter, skip, limit);
    EXPECT_OK(found.status());
    std::vector<std::string> ids;
    for (const ModelRow& row : found->rows) ids.push_back(row.name.substr(strlen("models/")));
    return ids;
  }
  std::vector<std::string> Ordered(const std::string& order) {
    return Ids(Where(&ModelFilter::order_by, order));
  }
  std::optional<double> Rate(const std::string& id) {
    return index_.Find(Where(&ModelFilter::search, id), 0, 1)->rows.at(0).rate;
  }

  Store store_{std::make_unique<MemoryJournal>(), Store::Options()};
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  ModelIndex index_{store_, [this] { return now_; }};
};

TEST_F(ModelIndexTest, ModelsAreInTheirNamesOrderOrTheOrderOfAFigureWithEqualOnesByName) {
  for (const char* id : {"a", "b", "c", "d"}) Create(id);
  Learn("a", 10, 5);
  Learn("b", 30);
  Learn("c", 10);
  EXPECT_THAT(Ordered(""), ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(Ordered("name desc"), ElementsAre("d", "c", "b", "a"));
  EXPECT_THAT(Ordered("examples desc"), ElementsAre("b", "a", "c", "d"));
  EXPECT_THAT(Ordered("examples"), ElementsAre("d", "c", "a", "b"));
  EXPECT_THAT(Ordered("updates desc"), ElementsAre("a", "b", "c", "d"));
  // The error of a model that has seen nothing is not known: it comes last both ways.
  EXPECT_THAT(Ordered("error"), ElementsAre("b", "c", "a", "d"));
  EXPECT_THAT(Ordered("window_error desc"), ElementsAre("a", "c", "b", "d"));
}

TEST_F(ModelIndexTest, StatesAreInTheOrderInWhichTheyCallForAttention) {
  for (const char* id : {"converged", "drifting", "learning", "new"}) Create(id);
  Learn("converged", 5);
  MarkPass("converged", 1);
  Learn("converged", 5);
  MarkPass("converged", 2);
  Learn("drifting", 3000, 200);
  Learn("learning", 5);
  EXPECT_THAT(Ordered("state"), ElementsAre("drifting", "learning", "converged", "new"));
  EXPECT_THAT(Ordered("state desc"), ElementsAre("new", "converged", "learning", "drifting"));
  for (const char* state : {"converged", "drifting", "learning"})
    EXPECT_THAT(Ids(Where(&ModelFilter::state, state)), ElementsAre(state));
  EXPECT_THAT(Ids(Where(&ModelFilter::state, "no examples")), ElementsAre("new"));
  EXPECT_THAT(Ids(Where(&ModelFilter::state, "refuted")), IsEmpty());
}

TEST_F(ModelIndexTest, AFrozenModelHasItsStateAndIsFoundByBoth) {
  Create("frozen");
  Create("other");
  Learn("frozen", 3);
  Freeze("frozen");
  EXPECT_THAT(Ids(Where(&ModelFilter::state, "frozen")), ElementsAre("frozen"));
  EXPECT_THAT(Ids(Where(&ModelFilter::state, "learning")), ElementsAre("frozen"));
}

TEST_F(ModelIndexTest, ConditionsHoldTogetherAndAllThatMatchAreCounted) {
  for (int i = 0; i < 30; ++i) {
    const std::string id = absl::StrFormat("m%02d", i);
    Create(id, i % 2 == 0 ? "an Even one" : "");
    Learn(id, 10, i % 3 == 0 ? 10 : 0);
  }
  ModelFilter filter = Where(&ModelFilter::search, "EVEN");
  filter.min_error = 0.3;
  EXPECT_THAT(Ids(filter), ElementsAre("m00", "m06", "m12", "m18", "m24"));
  EXPECT_THAT(Ids(filter, 3, 100), ElementsAre("m18", "m24"));
  EXPECT_THAT(Ids(filter, 1, 2), ElementsAre("m06", "m12"));
  EXPECT_THAT(Ids(filter, 5, 2), IsEmpty());
  EXPECT_THAT(Ids(filter, 50, 2), IsEmpty());
  EXPECT_EQ(index_.Find(filter, 1, 2)->matches, 5U);
}

TEST_F(ModelIndexTest, RatesAreExamplesPerSecondBetweenTwoReadingsAndActiveAreThoseThatHaveOne) {
  for (const char* id : {"busy", "idle", "slow"}) Create(id);
  Learn("idle", 50);
  EXPECT_EQ(Rate("busy"), std::nullopt);
  ModelFilter active = Where(&ModelFilter::order_by, "rate desc");
  active.active = true;
  EXPECT_THAT(Ids(active), IsEmpty());
  Learn("busy", 40);
  Learn("slow", 4);
  Pass(absl::Seconds(2));
  EXPECT_THAT(Rate("busy"), Optional(20));
  EXPECT_THAT(Rate("slow"), Optional(2));
  EXPECT_THAT(Rate("idle"), Optional(0));
  EXPECT_THAT(Ids(active), ElementsAre("busy", "slow"));
  // Too soon for new rates: these stay.
  Learn("idle", 10);
  Pass(absl::Seconds(1));
  EXPECT_THAT(Rate("busy"), Optional(20));
  Pass(absl::Seconds(1));
  EXPECT_THAT(Rate("busy"), Optional(0));
  EXPECT_THAT(Rate("idle"), Optional(5));
  // Nor over a time at which nobody asked.
  Learn("busy", 100);
  Pass(absl::Hours(1));
  EXPECT_EQ(Rate("busy"), std::nullopt);
}

TEST_F(ModelIndexTest, FiguresAreReadAgainAfterASecondAndModelsAtOnce) {
  Create("a");
  EXPECT_THAT(Ids(Where(&ModelFilter::state, "no examples")), ElementsAre("a"));
  Learn("a", 1);
  EXPECT_THAT(Ids(Where(&ModelFilter::state, "no examples")), ElementsAre("a"));
  Pass(absl::Seconds(1));
  EXPECT_THAT(Ids(Where(&ModelFilter::state, "no examples")), IsEmpty());
  Create("b");
  EXPECT_THAT(Ordered(""), ElementsAre("a", "b"));
  ASSERT_OK(store_.Delete("models/a", "", false));
  EXPECT_THAT(Ordered(""), ElementsAre("b"));
  // A clock that was set back does not stop it.
  Learn("b", 1);
  Pass(-absl::Hours(1));
  EXPECT_THAT(Ids(Where(&ModelFilter::state, "no examples")), IsEmpty());
}

}  // namespace
}  // namespace perceptrond
