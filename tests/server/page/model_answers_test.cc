// The data of the status page: lists, searches, curves and top features of models.
#include "server/page/model_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/model/views.h"
#include "core/report/format.h"
#include "google/rpc/status.pb.h"
#include "tests/server/page/status_page_fixture.h"
#include "tests/support/traffic.h"

namespace perceptrond {
namespace {

using ::perceptrond::testing::StatusPageTest;
using testing::Columns;
using testing::DenseSettings;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace v1 = ::perceptron::v1;
namespace page = ::perceptron::page::v1;

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

}  // namespace
}  // namespace perceptrond
