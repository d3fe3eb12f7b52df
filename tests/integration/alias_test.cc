// Aliases over a real connection: what takes one, moving it, and streams that began by it.
#include "absl/strings/str_cat.h"
#include "client/connection.h"
#include "client/learn_stream.h"
#include "perceptron/v1/alias_service.pb.h"
#include "perceptron/v1/history_service.pb.h"
#include "tests/integration/fixture.h"
#include "tests/integration/methods.h"

namespace perceptrond::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Models a and b, of one feature: a says +1 for a positive one, and b says -1.
class AliasTest : public ServerTest {
 protected:
  AliasTest() {
    for (const std::string id : {"a", "b"}) {
      Create(id, "feature_space { dense { dimension: 1 } } stored_examples { max_sample: 10 }");
      Teach(id, Row(id == "a" ? 1 : -1));
    }
  }

  static std::string Row(int label) {
    return absl::StrCat(" examples { dense { values: 1 } label: ", label, " }");
  }
  std::string Update(const std::string& alias, const std::string& model,
                     const std::string& more = "allow_missing: true", v1::Alias* updated = nullptr,
                     const std::string& etag = "") {
    return Call("AliasService/UpdateAlias",
                absl::StrCat("alias { name: 'aliases/", alias, "' model: 'models/", model,
                             "' etag: '", etag, "' } update_mask { paths: 'model' } ", more),
                updated);
  }
  void Set(const std::string& alias, const std::string& model) {
    EXPECT_EQ(Update(alias, model), "OK");
  }
  std::string Delete(const std::string& alias, const std::string& etag = "") {
    return Call("AliasService/DeleteAlias",
                absl::StrCat("name: 'aliases/", alias, "' etag: '", etag, "'"));
  }
  v1::Alias GetAlias(const std::string& alias) {
    return AnswerOf<v1::Alias>("AliasService/GetAlias", "name: 'aliases/" + alias + "'");
  }
  int LabelBy(const std::string& model) {
    return AnswerOf<v1::PredictResponse>("PredictionService/Predict",
                                         absl::StrCat("model: '", model, "'", Row(0)))
        .predicted_labels(0);
  }
  v1::ChallengeAliasResponse Challenge(const std::string& request) {
    return AnswerOf<v1::ChallengeAliasResponse>("AliasService/ChallengeAlias",
                                                "name: 'aliases/x' " + request);
  }
};

TEST_F(AliasTest, WhatReadsOrTeachesAModelTakesOneAndWhatChangesItDoesNot) {
  Set("x", "a");
  for (const ApiMethod& method : kApiMethods) {
    // It would not end.
    if (!method.NamesModel() || method.path == std::string("ModelService/WatchModel")) continue;
    SCOPED_TRACE(method.path);
    if (!method.takes_alias) {
      EXPECT_THAT(Call(method.path, method.Request("aliases/x")),
                  HasSubstr("INVALID_ARGUMENT INVALID_FIELD"));
      continue;
    }
    const std::string by_alias = Call(method.path, method.Request("aliases/x"));
    EXPECT_EQ(by_alias, Call(method.path, method.Request("models/a")));
    EXPECT_THAT(by_alias, Not(HasSubstr("NOT_FOUND")));
    EXPECT_EQ(Call(method.path, method.Request("aliases/none")), kNoAlias);
  }
  EXPECT_EQ(LabelBy("aliases/x"), 1);
  EXPECT_EQ(AnswerOf<v1::Model>("ModelService/GetModel", "name: 'aliases/x'").name(), "models/a");
  grpc::ClientContext context;
  const auto watch =
      models_->WatchModel(&context, FromText<v1::WatchModelRequest>("name: 'aliases/x'"));
  v1::WatchModelResponse watched;
  ASSERT_TRUE(watch->Read(&watched));
  EXPECT_EQ(watched.model().name(), "models/a");
  context.TryCancel();
  // It makes no series of metrics.
  const std::string metrics = MetricsPage(server_);
  EXPECT_THAT(metrics, HasSubstr("model_name=\"a\""));
  EXPECT_THAT(metrics, Not(HasSubstr("model_name=\"x\"")));
}

TEST_F(AliasTest, AStreamOfPredictionsFollowsItAtTheNextMessage) {
  Set("x", "a");
  grpc::ClientContext context;
  const auto stream = predictions_->PredictStream(&context);
  // The label, and the model if another answered before.
  const auto ask = [&](const std::string& model) {
    v1::PredictResponse response;
    EXPECT_TRUE(
        stream->Write(FromText<v1::PredictRequest>(absl::StrCat("model: '", model, "'", Row(0)))) &&
        stream->Read(&response));
    return absl::StrCat(response.predicted_labels(0), response.model());
  };
  EXPECT_EQ(ask("aliases/x"), "1models/a");
  EXPECT_EQ(ask(""), "1");
  Set("x", "b");
  EXPECT_EQ(ask(""), "-1models/b");
  Set("x", "a");
  EXPECT_EQ(ask("aliases/x"), "1models/a");
  // From a model of its own on it follows no more.
  EXPECT_EQ(ask("models/b"), "-1models/b");
  Set("x", "b");
  Set("x", "a");
  EXPECT_EQ(ask(""), "-1");
  EXPECT_EQ(ask("aliases/x"), "1models/a");
  EXPECT_EQ(Delete("x"), "OK");
  v1::PredictResponse response;
  EXPECT_TRUE(stream->Write({}));
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(Outcome(stream->Finish()), kNoAlias);
}

TEST_F(AliasTest, AStreamThatLearnsStaysOnItsModelAlsoWhenItReconnects) {
  Set("x", "a");
  RawLearnStream stream(*learning_, "", "p");
  stream.first().set_model("aliases/x");
  const v1::StreamOpened opened = stream.Open();
  EXPECT_EQ(opened.model(), "models/a");
  client::LearnOptions options;
  options.rows_per_message = 1;
  auto reconnecting =
      client::LearnStream::Open(client::MakeConnection(server_.address()), "aliases/x", options);
  ASSERT_TRUE(reconnecting.ok()) << reconnecting.status();
  client::Row row;
  row.indices = {0};
  row.values = {1};
  row.label = 1;
  ASSERT_TRUE((*reconnecting)->Push(row).ok());
  ASSERT_TRUE((*reconnecting)->MarkPass().ok());
  Set("x", "b");
  for (const char* model : {"", "aliases/x", "models/a"})
    EXPECT_EQ(Outcome(stream.Ask(absl::StrCat("model: '", model, "'", Row(1)))), "OK");
  EXPECT_EQ(Delete("x"), "OK");
  EXPECT_EQ(Outcome(stream.Ask("model: 'aliases/x'" + Row(1))), "OK");
  EXPECT_TRUE(stream.Finish().ok());
  Set("x", "b");
  ASSERT_EQ(server_.Terminate(), 0);
  Restart();
  ASSERT_TRUE((*reconnecting)->Push(row).ok());
  const auto totals = (*reconnecting)->Finish();
  ASSERT_TRUE(totals.ok()) << totals.status();
  EXPECT_EQ(Get("a").report().examples(), 7);
  EXPECT_EQ(Get("b").report().examples(), 1);
  // A claim of the model that it named before.
  RawLearnStream claiming(*learning_, "", "p");
  claiming.first().set_model("aliases/x");
  claiming.With("producer { resume { model_uid: '" + opened.model_uid() + "' } }");
  EXPECT_EQ(claiming.Refusal(), "FAILED_PRECONDITION MODEL_REPLACED");
}

TEST_F(AliasTest, IsMovedOnlyByWhoKnowsIt) {
  v1::Alias first;
  ASSERT_EQ(Update("x", "a", "allow_missing: true", &first), "OK");
  EXPECT_EQ(first.model(), "models/a");
  EXPECT_EQ(first.previous_model(), "");
  ASSERT_EQ(Update("x", "b", "validate_only: true", nullptr, first.etag()), "OK");
  EXPECT_EQ(GetAlias("x").model(), "models/a");
  v1::Alias second;
  ASSERT_EQ(Update("x", "b", "", &second, first.etag()), "OK");
  EXPECT_EQ(second.previous_model(), "models/a");
  EXPECT_NE(second.etag(), first.etag());
  EXPECT_EQ(Update("x", "a", "", nullptr, first.etag()), "ABORTED ETAG_MISMATCH");
  EXPECT_EQ(Delete("x", first.etag()), "ABORTED ETAG_MISMATCH");
  const std::string described =
      "alias { name: 'aliases/x' model: 'models/a' description: 'shop' } ";
  for (const auto& [path, outcome] : {std::pair{"description", "OK"},
                                      {"etag", "INVALID_ARGUMENT IMMUTABLE_FIELD update_mask"},
                                      {"color", "INVALID_ARGUMENT INVALID_FIELD update_mask"}}) {
    EXPECT_EQ(Call("AliasService/UpdateAlias",
                   absl::StrCat(described, "update_mask { paths: '", path, "' }")),
              outcome);
  }
  EXPECT_EQ(GetAlias("x").model(), "models/b");
  EXPECT_EQ(GetAlias("x").description(), "shop");
}

TEST_F(AliasTest, AliasesAreListedAfterAKillAndKeepTheirModelsFromBeingDeleted) {
  for (const char* name : {"x", "y", "z", "none"}) Set(name, "a");
  EXPECT_EQ(Delete("none"), "OK");
  server_.Kill();
  Restart();
  EXPECT_EQ(LabelBy("aliases/x"), 1);
  std::vector<std::string> names;
  std::string token;
  do {
    const auto page = AnswerOf<v1::ListAliasesResponse>(
        "AliasService/ListAliases", absl::StrCat("page_size: 2 page_token: '", token, "'"));
    EXPECT_LE(page.aliases_size(), 2);
    for (const v1::Alias& alias : page.aliases()) names.push_back(alias.name());
    token = page.next_page_token();
  } while (!token.empty());
  EXPECT_THAT(names, ElementsAre("aliases/x", "aliases/y", "aliases/z"));
  EXPECT_THAT(Call("ModelService/DeleteModel", "name: 'models/a'"), HasSubstr("MODEL_IN_USE"));
}

TEST_F(AliasTest, GoesToTheChallengerThatErrsLess) {
  // Model a errs at the first of 200 examples, and b at every second one.
  for (int i = 0; i < 100; ++i) {
    for (const int label : {1, 1}) Teach("a", Row(label));
    for (const int label : {1, -1}) Teach("b", Row(label));
  }
  Set("x", "b");
  const std::string a = "challenger: 'models/a' ";
  EXPECT_EQ(Challenge(a + "min_examples: 1000").outcome(), v1::CHALLENGE_OUTCOME_TOO_FEW_EXAMPLES);
  EXPECT_EQ(Challenge(a + "margin: 0.999").outcome(), v1::CHALLENGE_OUTCOME_CHAMPION_WON);
  // The windows of both are kept.
  ASSERT_EQ(server_.Terminate(), 0);
  Restart();
  EXPECT_EQ(Challenge(a + "margin: 0.1 validate_only: true").outcome(),
            v1::CHALLENGE_OUTCOME_CHALLENGER_WON);
  EXPECT_EQ(GetAlias("x").model(), "models/b");
  const v1::ChallengeAliasResponse won = Challenge(a + "margin: 0.1");
  EXPECT_EQ(won.outcome(), v1::CHALLENGE_OUTCOME_CHALLENGER_WON);
  EXPECT_EQ(won.alias().model(), "models/a");
  EXPECT_EQ(won.alias().previous_model(), "models/b");
  EXPECT_EQ(won.champion().model(), "models/b");
  EXPECT_EQ(won.champion().error(), Get("b").report().window_error());
  EXPECT_EQ(won.challenger().error(), Get("a").report().window_error());
  EXPECT_EQ(won.challenger().examples(), 201);
  EXPECT_EQ(LabelBy("aliases/x"), 1);
  EXPECT_EQ(Challenge("challenger: 'models/b' error: COMPARED_ERROR_PROGRESSIVE").outcome(),
            v1::CHALLENGE_OUTCOME_CHAMPION_WON);
  EXPECT_EQ(
      Call("AliasService/ChallengeAlias", "name: 'aliases/x' challenger: 'models/b' etag: 'stale'"),
      "ABORTED ETAG_MISMATCH");
  // A model that was rolled back is compared by its new examples alone.
  EXPECT_EQ(Call("HistoryService/CreateSnapshot", "model: 'models/b' snapshot_id: 'now'"), "OK");
  Teach("b", Row(-1));
  Teach("b", Row(-1));
  EXPECT_EQ(Call("HistoryService/RollBackModel", "model: 'models/b' snapshot_id: 'now'"), "OK");
  EXPECT_EQ(Get("b").report().window_examples(), 0U);
  EXPECT_EQ(Challenge("challenger: 'models/b'").outcome(), v1::CHALLENGE_OUTCOME_TOO_FEW_EXAMPLES);
}

}  // namespace
}  // namespace perceptrond::testing
