// Managing models over a real connection: validation, masks, etags, page tokens, requests that come again, and watching.
#include "absl/strings/str_cat.h"
#include "core/report/learner_text.h"
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

class ModelServiceTest : public ServerTest {
 protected:
  v1::Model Update(const std::string& request) {
    return AnswerOf<v1::Model>("ModelService/UpdateModel", request);
  }
};

TEST_F(ModelServiceTest, ValidatingChangesNothing) {
  const auto would_be = AnswerOf<v1::Model>(
      "ModelService/CreateModel",
      "model_id: 'spam' validate_only: true model { feature_space { dense { dimension: 3 } } }");
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

// A request whose answer got lost is sent again; what others changed meanwhile stays.
TEST_F(ModelServiceTest, AChangeSentAgainUnderItsIdIsMadeOnce) {
  CreateDense("m", 2);
  const std::string request = "name: 'models/m' request_id: 'a'";
  const auto frozen = AnswerOf<v1::Model>("ModelService/FreezeModel", request);
  EXPECT_EQ(frozen.state(), v1::MODEL_STATE_FROZEN);
  EXPECT_EQ(AnswerOf<v1::Model>("ModelService/FreezeModel", request).etag(), frozen.etag());
  // In another method the id is another request's; a change without an effect has its id, too.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(AnswerOf<v1::Model>("ModelService/UnfreezeModel", request).state(),
              v1::MODEL_STATE_ACTIVE);
  }
}

TEST_F(ModelServiceTest, AWatcherSeesTheReportChangeAndTheModelReplacedHoweverLongItWouldWait) {
  for (const char* interval : {"nanos: 50000000", "seconds: 86400"}) {
    CreateDense("m", 1);
    grpc::ClientContext context;
    const auto watch =
        models_->WatchModel(&context, FromText<v1::WatchModelRequest>(absl::StrCat(
                                          "name: 'models/m' min_interval { ", interval, " }")));
    v1::WatchModelResponse response;
    ASSERT_TRUE(watch->Read(&response));
    EXPECT_EQ(response.model().revision(), 0);
    if (interval[0] == 'n') {
      EXPECT_EQ(Call("LearningService/Learn",
                     "model: 'models/m' examples { dense { values: 1 } label: 1 }"),
                "OK");
      ASSERT_TRUE(watch->Read(&response));
      EXPECT_EQ(response.model().revision(), 1);
      EXPECT_EQ(response.model().report().examples(), 1);
    }
    EXPECT_EQ(Call("ModelService/DeleteModel", "name: 'models/m'"), "OK");
    EXPECT_FALSE(watch->Read(&response));
    EXPECT_EQ(Outcome(watch->Finish()), "NOT_FOUND MODEL_NOT_FOUND");
  }
}

}  // namespace
}  // namespace perceptrond::testing
