// Managing models over a real connection: defaults, masks, etags, pages, requests that come again,
// what survives a kill, and watching.
#include "absl/strings/str_cat.h"
#include "core/report/learner_text.h"
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

constexpr char kCreate[] = "ModelService/CreateModel";

class ModelServiceTest : public ServerTest {
 protected:
  static std::string Dense(int dimension, const std::string& more = "") {
    return absl::StrCat("model { feature_space { dense { dimension: ", dimension, " } } ", more,
                        " } ");
  }
  v1::Model Update(const std::string& request) {
    return AnswerOf<v1::Model>("ModelService/UpdateModel", request);
  }
};

TEST_F(ModelServiceTest, ACreatedModelSaysAllItsDefaults) {
  const v1::Model model = CreateDense("spam", 3);
  EXPECT_EQ(model.name(), "models/spam");
  EXPECT_EQ(LearnerName(model.learner()), "perceptron");
  EXPECT_EQ(model.learner().tie_rule(), v1::TIE_RULE_MISTAKE);
  EXPECT_EQ(model.learner().perceptron().step_size(), 1);
  EXPECT_EQ(model.learner().bias_input(), 1);
  EXPECT_EQ(model.state(), v1::MODEL_STATE_ACTIVE);
  EXPECT_EQ(model.revision(), 0);
  EXPECT_FALSE(model.uid().empty());
  EXPECT_FALSE(model.etag().empty());
  EXPECT_GT(model.create_time().seconds(), 0);
  // Nothing seen: nothing known.
  EXPECT_FALSE(model.report().has_progressive_error());
  EXPECT_FALSE(model.report().has_margin_ceiling());
}

TEST_F(ModelServiceTest, ValidatingChangesNothing) {
  const auto would_be =
      AnswerOf<v1::Model>(kCreate, "model_id: 'spam' validate_only: true " + Dense(3));
  EXPECT_EQ(would_be.name(), "models/spam");
  EXPECT_EQ(would_be.learner().perceptron().step_size(), 1);
  EXPECT_EQ(Call("ModelService/GetModel", "name: 'models/spam'"), "NOT_FOUND MODEL_NOT_FOUND");
  CreateDense("m", 2);
  EXPECT_EQ(AnswerOf<v1::Model>("ModelService/FreezeModel", "name: 'models/m' validate_only: true")
                .state(),
            v1::MODEL_STATE_FROZEN);
  EXPECT_EQ(Get("m").state(), v1::MODEL_STATE_ACTIVE);
  EXPECT_EQ(Call("ModelService/DeleteModel", "name: 'models/m' validate_only: true"), "OK");
  EXPECT_EQ(Get("m").name(), "models/m");
  EXPECT_EQ(Call("ModelService/DeleteModel", "name: 'models/none' allow_missing: true"), "OK");
}

// Description and margin of interest may have been updated since: a request that comes again must
// not fail for that.
TEST_F(ModelServiceTest, ACreationThatComesAgainIsAnsweredWithTheModelAsItIs) {
  const std::string request = "model_id: 'm' request_id: '1' " + Dense(2, "description: 'first'");
  const auto first = AnswerOf<v1::Model>(kCreate, request);
  Update("model { name: 'models/m' description: 'second' } update_mask { paths: 'description' }");
  const auto again = AnswerOf<v1::Model>(kCreate, request);
  EXPECT_EQ(again.uid(), first.uid());
  EXPECT_EQ(again.description(), "second");
  for (const std::string& other :
       {"model_id: 'm' request_id: '1' " + Dense(3), "model_id: 'm' request_id: '2' " + Dense(2),
        "model_id: 'm' " + Dense(2)})
    EXPECT_EQ(Call(kCreate, other), "ALREADY_EXISTS MODEL_EXISTS");
}

TEST_F(ModelServiceTest, UpdateTakesTheMaskedFieldsAndAnOldEtagChangesNothing) {
  const v1::Model created = CreateDense("spam", 3);
  const std::string change =
      "model { name: 'models/spam' description: 'mail' margin_of_interest: 0.5 } ";
  v1::Model updated = Update(change + "update_mask { paths: 'description' }");
  EXPECT_EQ(updated.description(), "mail");
  EXPECT_EQ(updated.margin_of_interest(), 0);
  EXPECT_NE(updated.etag(), created.etag());
  updated = Update(change + "update_mask { paths: '*' }");
  EXPECT_EQ(updated.margin_of_interest(), 0.5);
  EXPECT_TRUE(updated.report().has_margin_refuted());
  EXPECT_EQ(Call("ModelService/UpdateModel",
                 absl::StrCat("model { name: 'models/spam' description: 'other' etag: '",
                              created.etag(), "' }")),
            "ABORTED ETAG_MISMATCH");
  EXPECT_EQ(Get("spam").description(), "mail");
  EXPECT_EQ(Call("ModelService/DeleteModel",
                 absl::StrCat("name: 'models/spam' etag: '", updated.etag(), "'")),
            "OK");
}

TEST_F(ModelServiceTest, PagesHoldEveryModelOnceInTheOrderOfTheirNames) {
  std::vector<std::string> expected;
  for (int i = 0; i < 25; ++i) {
    CreateDense(absl::StrCat("m", 100 + i), 1);
    expected.push_back(absl::StrCat("models/m", 100 + i));
  }
  std::vector<std::string> listed;
  std::string token;
  int pages = 0;
  do {
    const auto page = AnswerOf<v1::ListModelsResponse>(
        "ModelService/ListModels", absl::StrCat("page_size: 10 page_token: '", token, "'"));
    for (const v1::Model& model : page.models()) listed.push_back(model.name());
    token = page.next_page_token();
    ++pages;
  } while (!token.empty());
  EXPECT_EQ(listed, expected);
  EXPECT_EQ(pages, 3);
}

TEST_F(ModelServiceTest, APageTokenThatWasNotGivenOutIsRefusedAndOneThatWasIsGoodAfterAKill) {
  for (const char* id : {"a", "b", "c"}) CreateDense(id, 1);
  const auto list = [](const std::string& token) {
    return "page_size: 1 page_token: '" + token + "'";
  };
  const std::string given =
      AnswerOf<v1::ListModelsResponse>("ModelService/ListModels", list("")).next_page_token();
  std::string spoilt = given;
  spoilt.back() = spoilt.back() == 'A' ? 'B' : 'A';
  // "models/b", as a token once was.
  for (const std::string& token : {std::string("bW9kZWxzL2I"), spoilt, given + "A", given.substr(1),
                                   std::string("models/b"), std::string("*/\\n")}) {
    EXPECT_EQ(Call("ModelService/ListModels", list(token)),
              "INVALID_ARGUMENT INVALID_FIELD page_token")
        << token;
  }
  server_.Kill();
  Restart();
  const auto next = AnswerOf<v1::ListModelsResponse>("ModelService/ListModels", list(given));
  EXPECT_EQ(next.models(0).name(), "models/b");
}

TEST_F(ModelServiceTest, WeightsAreListedInPages) {
  CreateDense("m", 5);
  EXPECT_EQ(Call("LearningService/Learn",
                 "model: 'models/m' examples { dense { values: [1, 2, 3, 4, 5] } label: 1 }"),
            "OK");
  std::vector<float> weights;
  std::string token;
  do {
    const auto page = AnswerOf<v1::ListWeightsResponse>(
        "ModelService/ListWeights",
        absl::StrCat("model: 'models/m' page_size: 2 page_token: '", token, "'"));
    EXPECT_EQ(page.revision(), 1);
    for (const v1::WeightVector& vector : page.weights().vectors())
      weights.insert(weights.end(), vector.values().begin(), vector.values().end());
    token = page.next_page_token();
  } while (!token.empty());
  EXPECT_THAT(weights, ::testing::ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(ModelServiceTest, SettingsAndStateSurviveAKillAndADeletedModelsNameStartsAnew) {
  Create("spam",
         "feature_space { dense { dimension: 3 } } learner { bias_input: 0.25 } "
         "label_names: ['ham', 'spam']");
  const auto frozen = AnswerOf<v1::Model>("ModelService/FreezeModel", "name: 'models/spam'");
  CreateDense("m", 1);
  EXPECT_EQ(
      Call("LearningService/Learn", "model: 'models/m' examples { dense { values: 1 } label: 1 }"),
      "OK");
  const std::string uid = Get("m").uid();
  EXPECT_EQ(Call("ModelService/DeleteModel", "name: 'models/m'"), "OK");
  EXPECT_NE(CreateDense("m", 2).uid(), uid);
  server_.Kill();
  Restart();
  EXPECT_EQ(Get("spam", v1::MODEL_VIEW_BASIC).DebugString(), frozen.DebugString());
  EXPECT_EQ(Get("m").revision(), 0);
  EXPECT_EQ(Get("m").weights().vectors(0).values_size(), 0);
}

// A request whose answer got lost is sent again; what others changed meanwhile stays.
TEST_F(ModelServiceTest, AChangeSentAgainUnderItsIdIsMadeOnce) {
  CreateDense("m", 2);
  const std::string request = "name: 'models/m' request_id: 'a'";
  const auto frozen = AnswerOf<v1::Model>("ModelService/FreezeModel", request);
  EXPECT_EQ(frozen.state(), v1::MODEL_STATE_FROZEN);
  EXPECT_EQ(AnswerOf<v1::Model>("ModelService/FreezeModel", request).etag(), frozen.etag());
  // The same id in another method is another request; one without an effect has its id, too.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(AnswerOf<v1::Model>("ModelService/UnfreezeModel", request).state(),
              v1::MODEL_STATE_ACTIVE);
  }
}

class WatchModelTest : public ServerTest {
 protected:
  WatchModelTest() { CreateDense("m", 1); }
  // Watches and reads the first report, of an empty model.
  void Begin(const std::string& min_interval) {
    watch_ = models_->WatchModel(
        &context_,
        FromText<v1::WatchModelRequest>("name: 'models/m' min_interval { " + min_interval + " }"));
    EXPECT_TRUE(watch_->Read(&response_));
    EXPECT_EQ(response_.model().revision(), 0);
  }
  void DeleteAndExpectTheEnd() {
    EXPECT_EQ(Call("ModelService/DeleteModel", "name: 'models/m'"), "OK");
    CreateDense("m", 1);
    EXPECT_FALSE(watch_->Read(&response_));
    EXPECT_EQ(Outcome(watch_->Finish()), "NOT_FOUND MODEL_NOT_FOUND");
  }

  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::WatchModelResponse>> watch_;
  v1::WatchModelResponse response_;
};

TEST_F(WatchModelTest, AWatcherSeesTheReportChangeAndTheModelReplaced) {
  Begin("nanos: 50000000");
  EXPECT_EQ(
      Call("LearningService/Learn", "model: 'models/m' examples { dense { values: 1 } label: 1 }"),
      "OK");
  ASSERT_TRUE(watch_->Read(&response_));
  EXPECT_EQ(response_.model().revision(), 1);
  EXPECT_EQ(response_.model().report().examples(), 1);
  DeleteAndExpectTheEnd();
}

TEST_F(WatchModelTest, AWatchEndsWithItsModelHoweverLongItWouldHaveWaited) {
  Begin("seconds: 86400");
  DeleteAndExpectTheEnd();
}

}  // namespace
}  // namespace perceptrond::testing
