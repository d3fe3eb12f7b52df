// Managing models over a real connection: every row of the error table, paging, etags, masks, what
// survives a restart.
#include "core/report/learner_text.h"
#include "tests/integration/fixture.h"
#include "tests/support/learners.h"

namespace perceptrond::testing {
namespace {

class ModelServiceTest : public ServerTest {
 protected:
  static v1::Model Dense(uint32_t dimension) {
    v1::Model model;
    model.mutable_feature_space()->mutable_dense()->set_dimension(dimension);
    return model;
  }
  grpc::Status TryCreate(const std::string& id, const v1::Model& settings,
                         v1::Model* created = nullptr, const std::string& request_id = "",
                         bool validate_only = false) {
    grpc::ClientContext context;
    v1::CreateModelRequest request;
    request.set_model_id(id);
    *request.mutable_model() = settings;
    request.set_request_id(request_id);
    request.set_validate_only(validate_only);
    v1::Model ignored;
    return models_->CreateModel(&context, request, created == nullptr ? &ignored : created);
  }
  grpc::Status TryGet(const std::string& name) {
    grpc::ClientContext context;
    v1::GetModelRequest request;
    request.set_name(name);
    v1::Model model;
    return models_->GetModel(&context, request, &model);
  }
  grpc::Status Update(const v1::Model& model, std::initializer_list<const char*> mask,
                      v1::Model* updated = nullptr) {
    grpc::ClientContext context;
    v1::UpdateModelRequest request;
    *request.mutable_model() = model;
    for (const char* path : mask) request.mutable_update_mask()->add_paths(path);
    v1::Model ignored;
    return models_->UpdateModel(&context, request, updated == nullptr ? &ignored : updated);
  }
  grpc::Status Delete(const std::string& name, const std::string& etag = "") {
    grpc::ClientContext context;
    v1::DeleteModelRequest request;
    request.set_name(name);
    request.set_etag(etag);
    google::protobuf::Empty empty;
    return models_->DeleteModel(&context, request, &empty);
  }
};

TEST_F(ModelServiceTest, ACreatedModelSaysAllItsDefaults) {
  const v1::Model model = Create("spam", Dense(3));
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

TEST_F(ModelServiceTest, ANameIsTakenOnceAndARequestMayBeRepeated) {
  v1::Model first;
  ASSERT_TRUE(TryCreate("spam", Dense(3), &first, "request-1").ok());
  const grpc::Status again = TryCreate("spam", Dense(3));
  EXPECT_EQ(again.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(Reason(again), "MODEL_EXISTS");
  v1::Model repeated;
  ASSERT_TRUE(TryCreate("spam", Dense(3), &repeated, "request-1").ok());
  EXPECT_EQ(repeated.uid(), first.uid());
  EXPECT_EQ(Reason(TryCreate("spam", Dense(3), nullptr, "request-2")), "MODEL_EXISTS");
}

TEST_F(ModelServiceTest, ValidateOnlyCreatesNothing) {
  v1::Model would_be;
  ASSERT_TRUE(TryCreate("spam", Dense(3), &would_be, "", true).ok());
  EXPECT_EQ(would_be.name(), "models/spam");
  EXPECT_EQ(would_be.learner().perceptron().step_size(), 1);
  EXPECT_EQ(TryGet("models/spam").error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ModelServiceTest, SettingsOutOfRangeNameTheirField) {
  const auto refuses = [&](const std::string& field, const std::function<void(v1::Model&)>& change,
                           const std::string& reason = "INVALID_FIELD") {
    v1::Model model = Dense(3);
    change(model);
    const grpc::Status status = TryCreate("m", model);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << field;
    EXPECT_EQ(Reason(status), reason) << field;
    EXPECT_EQ(BadField(status), field);
  };
  refuses("model.feature_space", [](v1::Model& m) { m.clear_feature_space(); });
  refuses("model.feature_space.dense.dimension",
          [](v1::Model& m) { m.mutable_feature_space()->mutable_dense()->set_dimension(0); });
  refuses("model.feature_space.hashed.bits",
          [](v1::Model& m) { m.mutable_feature_space()->mutable_hashed()->set_bits(29); });
  refuses("model.learner.perceptron.step_size",
          [](v1::Model& m) { testing::SetNumber(*m.mutable_learner(), "step_size", 0); });
  refuses("model.learner.perceptron.step_size",
          [](v1::Model& m) { testing::SetNumber(*m.mutable_learner(), "step_size", NAN); });
  refuses("model.learner.bias_input",
          [](v1::Model& m) { m.mutable_learner()->set_bias_input(-1); });
  refuses("model.learner.voted",
          [](v1::Model& m) { testing::SetLearner(*m.mutable_learner(), "voted-arow"); });
  refuses(
      "model.learner.tie_rule",
      [](v1::Model& m) { m.mutable_learner()->set_tie_rule(v1::TIE_RULE_CORRECT); }, "ZERO_START");
  refuses("model.label_names", [](v1::Model& m) { m.add_label_names("only"); });
  refuses("model.margin_of_interest", [](v1::Model& m) { m.set_margin_of_interest(-1); });
  refuses("model.learner.starting_weights", [](v1::Model& m) {
    testing::StartingVector(*m.mutable_learner()).add_indices(3);
    testing::StartingVector(*m.mutable_learner()).add_values(1);
  });
  const grpc::Status bad_name = TryCreate("no spaces", Dense(3));
  EXPECT_EQ(BadField(bad_name), "model_id");
}

TEST_F(ModelServiceTest, BytesThatAreNoRequestOrTooManyGetDetailsFromEveryMethod) {
  for (const char* method :
       {"ModelService/CreateModel", "ModelService/GetModel", "ModelService/ListModels",
        "ModelService/UpdateModel", "ModelService/DeleteModel", "ModelService/FreezeModel",
        "ModelService/UnfreezeModel", "LearningService/Learn", "PredictionService/Predict",
        "PredictionService/Explain", "ModelService/WatchModel"}) {
    const std::string path = std::string("/perceptron.v1.") + method;
    const grpc::Status malformed = CallRaw(path, {"\xff\xff\xff"});
    EXPECT_EQ(malformed.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method;
    EXPECT_EQ(Reason(malformed), "MALFORMED_MESSAGE") << method;
    EXPECT_THAT(BadField(malformed), ::testing::StartsWith("perceptron.v1.")) << method;
    const grpc::Status large = CallRaw(path, {std::string((16 << 20) + 1, 'x')});
    EXPECT_EQ(large.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << method;
    EXPECT_EQ(Reason(large), "MESSAGE_TOO_LARGE") << method;
  }
}

TEST_F(ModelServiceTest, AViewThatIsNoneIsRefused) {
  Create("m", Dense(1));
  grpc::ClientContext context;
  v1::GetModelRequest request;
  request.set_name("models/m");
  request.set_view(static_cast<v1::ModelView>(77));
  v1::Model model;
  const grpc::Status status = models_->GetModel(&context, request, &model);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(BadField(status), "view");
}

TEST_F(ModelServiceTest, UnknownModelsAreNotFoundByEveryMethod) {
  for (const grpc::Status& status : {TryGet("models/none"), Delete("models/none")}) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(Reason(status), "MODEL_NOT_FOUND");
  }
  v1::Model model;
  model.set_name("models/none");
  EXPECT_EQ(Reason(Update(model, {})), "MODEL_NOT_FOUND");
  EXPECT_EQ(TryGet("none").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ModelServiceTest, UpdateTakesTheMaskedFieldsAndRefusesImmutableOnes) {
  const v1::Model created = Create("spam", Dense(3));
  v1::Model change;
  change.set_name("models/spam");
  change.set_description("mail");
  change.set_margin_of_interest(0.5);
  v1::Model updated;
  ASSERT_TRUE(Update(change, {"description"}, &updated).ok());
  EXPECT_EQ(updated.description(), "mail");
  EXPECT_EQ(updated.margin_of_interest(), 0);
  EXPECT_NE(updated.etag(), created.etag());
  EXPECT_EQ(Reason(Update(change, {"learner"})), "IMMUTABLE_FIELD");
  EXPECT_EQ(Reason(Update(change, {"colour"})), "INVALID_FIELD");
  ASSERT_TRUE(Update(change, {"*"}, &updated).ok());
  EXPECT_EQ(updated.margin_of_interest(), 0.5);
  EXPECT_TRUE(updated.report().has_margin_refuted());
}

TEST_F(ModelServiceTest, AnOldEtagAbortsAndChangesNothing) {
  const v1::Model created = Create("spam", Dense(3));
  v1::Model change;
  change.set_name("models/spam");
  change.set_description("first");
  ASSERT_TRUE(Update(change, {}).ok());
  change.set_description("second");
  change.set_etag(created.etag());
  const grpc::Status status = Update(change, {});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(Reason(status), "ETAG_MISMATCH");
  EXPECT_EQ(Get("spam").description(), "first");
  EXPECT_EQ(Reason(Delete("models/spam", created.etag())), "ETAG_MISMATCH");
  EXPECT_TRUE(Delete("models/spam", Get("spam").etag()).ok());
}

TEST_F(ModelServiceTest, PagesHoldEveryModelOnceInTheOrderOfTheirNames) {
  std::vector<std::string> expected;
  for (int i = 0; i < 25; ++i) {
    const std::string id = "m" + std::to_string(100 + i);
    Create(id, Dense(1));
    expected.push_back("models/" + id);
  }
  std::vector<std::string> listed;
  v1::ListModelsRequest request;
  request.set_page_size(10);
  int pages = 0;
  do {
    grpc::ClientContext context;
    v1::ListModelsResponse response;
    ASSERT_TRUE(models_->ListModels(&context, request, &response).ok());
    for (const v1::Model& model : response.models()) listed.push_back(model.name());
    request.set_page_token(response.next_page_token());
    ++pages;
  } while (!request.page_token().empty());
  EXPECT_EQ(listed, expected);
  EXPECT_EQ(pages, 3);
}

TEST_F(ModelServiceTest, APageTokenThatWasNotGivenOutIsRefusedByName) {
  for (const char* id : {"a", "b", "c"}) Create(id, Dense(1));
  v1::ListModelsRequest request;
  request.set_page_size(1);
  v1::ListModelsResponse response;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(models_->ListModels(&context, request, &response).ok());
  }
  const std::string given = response.next_page_token();
  std::string spoilt = given;
  spoilt.back() = spoilt.back() == 'A' ? 'B' : 'A';
  // "models/b", as a token once was.
  for (const std::string& token :
       {std::string("forged"), std::string("bW9kZWxzL2I"), spoilt, given + "A", given.substr(1),
        std::string("models/b"), std::string("*/\n")}) {
    request.set_page_token(token);
    grpc::ClientContext context;
    const grpc::Status status = models_->ListModels(&context, request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << token;
    EXPECT_EQ(Reason(status), "INVALID_FIELD");
    EXPECT_EQ(BadField(status), "page_token");
    if (token == spoilt) {
      EXPECT_THAT(status.error_message(), ::testing::HasSubstr(spoilt));
    }
  }
  // One that was is good after a restart, too.
  server_.Kill();
  Restart();
  request.set_page_token(given);
  grpc::ClientContext context;
  ASSERT_TRUE(models_->ListModels(&context, request, &response).ok());
  EXPECT_EQ(response.models(0).name(), "models/b");
}

TEST_F(ModelServiceTest, AStepSizeBeyondFloatsRangeIsRefused) {
  for (const double step_size : {1e-39, 1e-300, 1e39}) {
    v1::CreateModelRequest request;
    request.set_model_id("m");
    *request.mutable_model() = Dense(2);
    testing::SetNumber(*request.mutable_model()->mutable_learner(), "step_size", step_size);
    grpc::ClientContext context;
    v1::Model created;
    const grpc::Status status = models_->CreateModel(&context, request, &created);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << step_size;
    EXPECT_EQ(BadField(status), "model.learner.perceptron.step_size");
    EXPECT_THAT(status.error_message(), ::testing::HasSubstr("3.4028235e38"));
  }
  v1::Model least = Dense(2);
  testing::SetNumber(*least.mutable_learner(), "step_size", 1.1754944e-38);
  Create("least", least);
}

// Description and margin of interest may have been updated since: a request that comes again must
// not fail for that.
TEST_F(ModelServiceTest, ACreationThatComesAgainIsAnsweredWithTheModelAsItIs) {
  v1::CreateModelRequest request;
  request.set_model_id("m");
  request.set_request_id("1");
  *request.mutable_model() = Dense(2);
  request.mutable_model()->set_description("first");
  const auto create = [&](v1::Model* created) {
    grpc::ClientContext context;
    return models_->CreateModel(&context, request, created);
  };
  v1::Model first;
  ASSERT_TRUE(create(&first).ok());
  v1::Model change = first;
  change.clear_etag();
  change.set_description("second");
  ASSERT_TRUE(Update(change, {"description"}).ok());
  v1::Model again;
  ASSERT_TRUE(create(&again).ok());
  EXPECT_EQ(again.uid(), first.uid());
  EXPECT_EQ(again.description(), "second");
  *request.mutable_model() = Dense(3);
  EXPECT_EQ(Reason(create(&again)), "MODEL_EXISTS");
}

TEST_F(ModelServiceTest, SettingsAndStateSurviveASigkill) {
  v1::Model settings = Dense(3);
  settings.add_label_names("ham");
  settings.add_label_names("spam");
  settings.mutable_learner()->set_bias_input(0.25);
  Create("spam", settings);
  grpc::ClientContext context;
  v1::FreezeModelRequest freeze;
  freeze.set_name("models/spam");
  v1::Model frozen;
  ASSERT_TRUE(models_->FreezeModel(&context, freeze, &frozen).ok());
  server_.Kill();
  Restart();
  EXPECT_EQ(Get("spam", v1::MODEL_VIEW_BASIC).DebugString(), frozen.DebugString());
}

TEST_F(ModelServiceTest, AModelOfTheSameNameStartsAnew) {
  const v1::Model first = Create("m", Dense(1));
  v1::LearnRequest learn;
  learn.set_model("models/m");
  *learn.add_examples() = SparseExample(1, {{0, 1}});
  ASSERT_TRUE(Learn(learn).ok());
  ASSERT_TRUE(Delete("models/m").ok());
  const v1::Model second = Create("m", Dense(2));
  EXPECT_NE(first.uid(), second.uid());
  EXPECT_EQ(Get("m").revision(), 0);
  EXPECT_EQ(Get("m").weights().vectors(0).values_size(), 0);
}

// A request whose answer got lost is sent again; what others changed meanwhile stays.
TEST_F(ModelServiceTest, AChangeSentAgainUnderItsIdIsMadeOnce) {
  Create("m", Dense(2));
  const auto freeze = [this](const std::string& id) {
    grpc::ClientContext context;
    v1::FreezeModelRequest request;
    request.set_name("models/m");
    request.set_request_id(id);
    v1::Model model;
    EXPECT_TRUE(models_->FreezeModel(&context, request, &model).ok());
    return model;
  };
  const v1::Model frozen = freeze("a");
  EXPECT_EQ(frozen.state(), v1::MODEL_STATE_FROZEN);
  EXPECT_EQ(freeze("a").etag(), frozen.etag());
  // The same id in another method is another request.
  grpc::ClientContext context;
  v1::UnfreezeModelRequest request;
  request.set_name("models/m");
  request.set_request_id("a");
  v1::Model active;
  ASSERT_TRUE(models_->UnfreezeModel(&context, request, &active).ok());
  EXPECT_EQ(active.state(), v1::MODEL_STATE_ACTIVE);
  // A request without an effect has its id, too.
  grpc::ClientContext again;
  ASSERT_TRUE(models_->UnfreezeModel(&again, request, &active).ok());
  EXPECT_EQ(active.state(), v1::MODEL_STATE_ACTIVE);
}

TEST_F(ModelServiceTest, ValidatingAFreezeChangesNothing) {
  Create("m", Dense(2));
  grpc::ClientContext context;
  v1::FreezeModelRequest request;
  request.set_name("models/m");
  request.set_validate_only(true);
  v1::Model would_be;
  ASSERT_TRUE(models_->FreezeModel(&context, request, &would_be).ok());
  EXPECT_EQ(would_be.state(), v1::MODEL_STATE_FROZEN);
  EXPECT_EQ(Get("m").state(), v1::MODEL_STATE_ACTIVE);
}

TEST_F(ModelServiceTest, DeletingWhatIsMissingMaySucceed) {
  grpc::ClientContext context;
  v1::DeleteModelRequest request;
  request.set_name("models/none");
  request.set_allow_missing(true);
  google::protobuf::Empty empty;
  EXPECT_TRUE(models_->DeleteModel(&context, request, &empty).ok());
}

}  // namespace
}  // namespace perceptrond::testing
