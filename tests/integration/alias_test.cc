// Aliases over a real connection: whatever reads a model, predicts or learns takes one; and moving it.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "inference/inference_service.grpc.pb.h"
#include "perceptron/v1/analysis_service.grpc.pb.h"
#include "perceptron/v1/history_service.grpc.pb.h"
#include "tests/integration/alias_fixture.h"
#include "tests/integration/fixture.h"
#include "tests/support/inference.h"

namespace perceptrond::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kNotFound = grpc::StatusCode::NOT_FOUND;

v1::Example Dense(int label, float x) {
  v1::Example example;
  example.set_label(label);
  example.mutable_dense()->add_values(x);
  return example;
}

// Models a and b, of one feature: a says +1 for a positive one, and b says -1.
class AliasTest : public ServerTest {
 protected:
  AliasTest() {
    Begin();
    for (const std::string id : {"a", "b"}) {
      CreateDense(id, 1);
      LearnRow(id, id == "a" ? 1 : -1, 1);
    }
  }

  void Begin() { aliases_ = v1::AliasService::NewStub(channel_); }
  void LearnRow(const std::string& id, int label, float x) {
    v1::LearnRequest learn;
    learn.set_model("models/" + id);
    *learn.add_examples() = Dense(label, x);
    const grpc::Status status = Learn(learn);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  grpc::Status Update(const v1::UpdateAliasRequest& request, v1::Alias* alias = nullptr) {
    grpc::ClientContext context;
    v1::Alias own;
    return aliases_->UpdateAlias(&context, request, alias == nullptr ? &own : alias);
  }
  void Set(const std::string& alias, const std::string& model) {
    const grpc::Status status = Update(Naming(alias, model));
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  grpc::Status DeleteAlias(const std::string& alias, const std::string& etag = "") {
    grpc::ClientContext context;
    v1::DeleteAliasRequest request;
    request.set_name("aliases/" + alias);
    request.set_etag(etag);
    google::protobuf::Empty nothing;
    return aliases_->DeleteAlias(&context, request, &nothing);
  }
  grpc::Status PredictBy(const std::string& model, int* label) {
    v1::PredictRequest request;
    request.set_model(model);
    *request.add_examples() = Dense(0, 1);
    v1::PredictResponse response;
    const grpc::Status status = Predict(request, &response);
    if (status.ok()) *label = response.predicted_labels(0);
    return status;
  }
  int LabelBy(const std::string& model) {
    int label = 0;
    const grpc::Status status = PredictBy(model, &label);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return label;
  }
  v1::ChallengeAliasResponse Challenge(const v1::ChallengeAliasRequest& request) {
    grpc::ClientContext context;
    v1::ChallengeAliasResponse response;
    const grpc::Status status = aliases_->ChallengeAlias(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  v1::Alias GetAlias(const std::string& alias) {
    grpc::ClientContext context;
    v1::GetAliasRequest request;
    request.set_name("aliases/" + alias);
    v1::Alias found;
    EXPECT_TRUE(aliases_->GetAlias(&context, request, &found).ok());
    return found;
  }

  std::unique_ptr<v1::AliasService::Stub> aliases_;
};

TEST_F(AliasTest, WhateverReadsAModelTakesOne) {
  Set("x", "a");
  EXPECT_EQ(LabelBy("aliases/x"), 1);
  v1::GetModelRequest get;
  get.set_name("aliases/x");
  get.set_view(v1::MODEL_VIEW_WEIGHTS);
  {
    grpc::ClientContext context;
    v1::Model model;
    ASSERT_TRUE(models_->GetModel(&context, get, &model).ok());
    EXPECT_EQ(model.name(), "models/a");
  }
  {
    grpc::ClientContext context;
    v1::ListWeightsRequest request;
    request.set_model("aliases/x");
    v1::ListWeightsResponse response;
    EXPECT_TRUE(models_->ListWeights(&context, request, &response).ok());
    EXPECT_EQ(response.revision(), 1);
  }
  {
    grpc::ClientContext context;
    v1::ExplainRequest request;
    request.set_model("aliases/x");
    *request.add_examples() = Dense(0, 1);
    v1::ExplainResponse response;
    EXPECT_TRUE(predictions_->Explain(&context, request, &response).ok());
  }
  {
    grpc::ClientContext context;
    v1::ListStoredExamplesRequest request;
    request.set_model("aliases/x");
    v1::ListStoredExamplesResponse response;
    EXPECT_TRUE(v1::AnalysisService::NewStub(channel_)
                    ->ListStoredExamples(&context, request, &response)
                    .ok());
    EXPECT_EQ(response.total_size(), 1);
  }
  {
    grpc::ClientContext context;
    v1::WatchModelRequest request;
    request.set_name("aliases/x");
    const auto watch = models_->WatchModel(&context, request);
    v1::WatchModelResponse response;
    ASSERT_TRUE(watch->Read(&response));
    EXPECT_EQ(response.model().name(), "models/a");
    context.TryCancel();
  }
  {
    oip::ModelInferRequest request;
    request.set_model_name("aliases/x");
    AddFloats(request, "features", {1, 1}, {1});
    grpc::ClientContext context;
    oip::ModelInferResponse response;
    const grpc::Status status =
        oip::GRPCInferenceService::NewStub(channel_)->ModelInfer(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.model_name(), "a");
  }
  v1::LearnRequest learn;
  learn.set_model("aliases/x");
  *learn.add_examples() = Dense(-1, 1);
  EXPECT_TRUE(Learn(learn).ok());
  EXPECT_EQ(Get("a").revision(), 2);
}

TEST_F(AliasTest, OneThatDoesNotExistIsNotFoundByName) {
  int label = 0;
  for (const bool any : {false, true}) {
    if (any) Set("other", "a");
    const grpc::Status status = PredictBy("aliases/x", &label);
    EXPECT_EQ(status.error_code(), kNotFound);
    EXPECT_EQ(Reason(status), "ALIAS_NOT_FOUND");
    RawLearnStream stream(*learning_, "");
    stream.first().set_model("aliases/x");
    stream.Send(stream.first());
    EXPECT_EQ(Reason(stream.Finish()), "ALIAS_NOT_FOUND");
  }
  EXPECT_EQ(PredictBy("aliases//", &label).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(AliasTest, WhatChangesAModelTakesNone) {
  Set("x", "a");
  grpc::ClientContext context;
  v1::DeleteModelRequest request;
  request.set_name("aliases/x");
  request.set_allow_missing(true);
  google::protobuf::Empty nothing;
  const grpc::Status status = models_->DeleteModel(&context, request, &nothing);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(BadField(status), "name");
}

TEST_F(AliasTest, AStreamOfPredictionsFollowsItAtTheNextMessage) {
  Set("x", "a");
  grpc::ClientContext context;
  const auto stream = predictions_->PredictStream(&context);
  v1::PredictRequest request;
  *request.add_examples() = Dense(0, 1);
  // The label, and the model if another answered before.
  const auto ask = [&](const std::string& model) {
    request.set_model(model);
    v1::PredictResponse response;
    EXPECT_TRUE(stream->Write(request) && stream->Read(&response));
    return absl::StrJoin(response.predicted_labels(), "") + response.model();
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
  ASSERT_TRUE(DeleteAlias("x").ok());
  request.clear_model();
  EXPECT_TRUE(stream->Write(request));
  v1::PredictResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(Reason(stream->Finish()), "ALIAS_NOT_FOUND");
}

TEST_F(AliasTest, IsMovedOnlyByWhoKnowsIt) {
  v1::Alias first;
  ASSERT_TRUE(Update(Naming("x", "a"), &first).ok());
  EXPECT_EQ(first.model(), "models/a");
  EXPECT_EQ(first.previous_model(), "");
  v1::UpdateAliasRequest move = Naming("x", "b");
  move.mutable_alias()->set_etag(first.etag());
  move.set_validate_only(true);
  ASSERT_TRUE(Update(move).ok());
  EXPECT_EQ(GetAlias("x").model(), "models/a");
  move.set_validate_only(false);
  v1::Alias second;
  ASSERT_TRUE(Update(move, &second).ok());
  EXPECT_EQ(second.previous_model(), "models/a");
  EXPECT_NE(second.etag(), first.etag());
  EXPECT_EQ(Reason(Update(move)), "ETAG_MISMATCH");
  EXPECT_EQ(Reason(DeleteAlias("x", first.etag())), "ETAG_MISMATCH");
  EXPECT_EQ(Reason(Update(Naming("x", "none"))), "MODEL_NOT_FOUND");
  v1::UpdateAliasRequest missing = Naming("y", "a");
  missing.set_allow_missing(false);
  EXPECT_EQ(Reason(Update(missing)), "ALIAS_NOT_FOUND");
  v1::UpdateAliasRequest described = Naming("x", "a");
  described.mutable_update_mask()->set_paths(0, "description");
  described.mutable_alias()->set_description("for the shop");
  ASSERT_TRUE(Update(described).ok());
  EXPECT_EQ(GetAlias("x").model(), "models/b");
  EXPECT_EQ(GetAlias("x").description(), "for the shop");
  described.mutable_update_mask()->set_paths(0, "etag");
  EXPECT_EQ(Reason(Update(described)), "IMMUTABLE_FIELD");
  described.mutable_update_mask()->set_paths(0, "color");
  EXPECT_EQ(Reason(Update(described)), "INVALID_FIELD");
}

TEST_F(AliasTest, IsThereAfterACrashAndKeepsItsModelFromBeingDeleted) {
  Set("x", "a");
  Set("y", "a");
  ASSERT_TRUE(DeleteAlias("y").ok());
  server_.Kill();
  Restart();
  Begin();
  EXPECT_EQ(LabelBy("aliases/x"), 1);
  grpc::ClientContext list_context;
  v1::ListAliasesResponse all;
  ASSERT_TRUE(aliases_->ListAliases(&list_context, {}, &all).ok());
  ASSERT_EQ(all.aliases_size(), 1);
  EXPECT_EQ(all.aliases(0).SerializeAsString(), GetAlias("x").SerializeAsString());
  grpc::ClientContext context;
  v1::DeleteModelRequest request;
  request.set_name("models/a");
  google::protobuf::Empty nothing;
  EXPECT_EQ(Reason(models_->DeleteModel(&context, request, &nothing)), "MODEL_IN_USE");
}

TEST_F(AliasTest, ListsAreInPages) {
  for (const char* name : {"x", "y", "z"}) Set(name, "a");
  std::vector<std::string> names;
  v1::ListAliasesRequest request;
  request.set_page_size(2);
  do {
    grpc::ClientContext context;
    v1::ListAliasesResponse page;
    ASSERT_TRUE(aliases_->ListAliases(&context, request, &page).ok());
    EXPECT_LE(page.aliases_size(), 2);
    for (const v1::Alias& alias : page.aliases()) names.push_back(alias.name());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(names, ElementsAre("aliases/x", "aliases/y", "aliases/z"));
}

TEST_F(AliasTest, MakesNoSeriesOfMetrics) {
  Set("prod-alias", "a");
  EXPECT_EQ(LabelBy("aliases/prod-alias"), 1);
  const std::string metrics =
      RunCommand("curl -sf http://127.0.0.1:" + std::to_string(server_.metrics_port()) + "/metrics")
          .out;
  EXPECT_THAT(metrics, HasSubstr("model_name=\"a\""));
  EXPECT_THAT(metrics, Not(HasSubstr("prod-alias")));
}

TEST_F(AliasTest, GoesToTheChallengerThatErrsLess) {
  // Of 200 examples a errs at the first, and b at every second one.
  for (int i = 0; i < 100; ++i) {
    LearnRow("a", 1, 1);
    LearnRow("a", 1, 1);
    LearnRow("b", 1, 1);
    LearnRow("b", -1, 1);
  }
  Set("x", "b");
  v1::ChallengeAliasRequest request;
  request.set_name("aliases/x");
  request.set_challenger("models/a");
  request.set_min_examples(1000);
  EXPECT_EQ(Challenge(request).outcome(), v1::CHALLENGE_OUTCOME_TOO_FEW_EXAMPLES);
  request.clear_min_examples();
  request.set_margin(0.999);
  EXPECT_EQ(Challenge(request).outcome(), v1::CHALLENGE_OUTCOME_CHAMPION_WON);
  request.set_margin(0.1);
  // The windows of both are kept.
  server_.Kill();
  Restart();
  Begin();
  request.set_validate_only(true);
  EXPECT_EQ(Challenge(request).outcome(), v1::CHALLENGE_OUTCOME_CHALLENGER_WON);
  EXPECT_EQ(GetAlias("x").model(), "models/b");
  request.set_validate_only(false);
  const v1::ChallengeAliasResponse won = Challenge(request);
  EXPECT_EQ(won.outcome(), v1::CHALLENGE_OUTCOME_CHALLENGER_WON);
  EXPECT_EQ(won.alias().model(), "models/a");
  EXPECT_EQ(won.alias().previous_model(), "models/b");
  EXPECT_EQ(won.champion().model(), "models/b");
  EXPECT_EQ(won.champion().error(), Get("b").report().window_error());
  EXPECT_EQ(won.challenger().error(), Get("a").report().window_error());
  EXPECT_EQ(won.challenger().examples(), 201);
  EXPECT_EQ(LabelBy("aliases/x"), 1);
  request.set_challenger("models/b");
  request.set_error(v1::COMPARED_ERROR_PROGRESSIVE);
  EXPECT_EQ(Challenge(request).outcome(), v1::CHALLENGE_OUTCOME_CHAMPION_WON);
  request.set_etag("stale");
  grpc::ClientContext context;
  v1::ChallengeAliasResponse response;
  EXPECT_EQ(Reason(aliases_->ChallengeAlias(&context, request, &response)), "ETAG_MISMATCH");
}

TEST_F(AliasTest, AModelThatWasRolledBackIsComparedByItsNewExamplesOnly) {
  const auto history = v1::HistoryService::NewStub(channel_);
  v1::CreateSnapshotRequest keep;
  keep.set_model("models/a");
  keep.set_snapshot_id("early");
  grpc::ClientContext keep_context;
  v1::Snapshot snapshot;
  ASSERT_TRUE(history->CreateSnapshot(&keep_context, keep, &snapshot).ok());
  for (int i = 0; i < 200; ++i) {
    LearnRow("a", -1, 1);
    LearnRow("b", i % 2 == 0 ? -1 : 1, 1);
  }
  Set("x", "b");
  v1::ChallengeAliasRequest request;
  request.set_name("aliases/x");
  request.set_challenger("models/a");
  request.set_validate_only(true);
  ASSERT_EQ(Challenge(request).outcome(), v1::CHALLENGE_OUTCOME_CHALLENGER_WON);
  v1::RollBackModelRequest back;
  back.set_model("models/a");
  back.set_snapshot_id("early");
  grpc::ClientContext back_context;
  v1::Model model;
  ASSERT_TRUE(history->RollBackModel(&back_context, back, &model).ok());
  EXPECT_EQ(model.report().window_examples(), 0U);
  EXPECT_EQ(Challenge(request).outcome(), v1::CHALLENGE_OUTCOME_TOO_FEW_EXAMPLES);
}

}  // namespace
}  // namespace perceptrond::testing
