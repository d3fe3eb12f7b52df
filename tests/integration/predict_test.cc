// Unary learning and predicting over a real connection: the textbook's numbers, all or nothing,
// revisions, feature spaces.
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

class PredictTest : public ServerTest {
 protected:
  PredictTest() {
    // Seed 000: theta = (1, -1), theta_0 = 1.
    v1::Model settings;
    settings.mutable_feature_space()->mutable_dense()->set_dimension(2);
    v1::Weights& start = *settings.mutable_learner()->mutable_starting_weights();
    start.add_indices(0);
    start.add_values(1);
    start.add_indices(1);
    start.add_values(-1);
    start.set_offset(1);
    Create("plane", settings);
  }
  static v1::PredictRequest ThreePoints() {
    v1::PredictRequest request;
    request.set_model("models/plane");
    for (const auto& [x, y] : {std::pair{1.0F, 3.0F}, {2.5F, 1.5F}, {-1.5F, 1.5F}}) {
      v1::DenseFeatures& dense = *request.add_examples()->mutable_dense();
      dense.add_values(x);
      dense.add_values(y);
    }
    return request;
  }
};

TEST_F(PredictTest, ScoresAndDistancesAreTheTextbooks) {
  v1::PredictResponse response;
  ASSERT_TRUE(Predict(ThreePoints(), &response).ok());
  EXPECT_THAT(response.scores(), ::testing::ElementsAre(-1, 2, -2));
  EXPECT_THAT(response.labels(), ::testing::ElementsAre(-1, 1, -1));
  // Times the labels + + -: margins of -sqrt(2)/2, sqrt(2), sqrt(2).
  EXPECT_NEAR(response.distances(0), -std::sqrt(2) / 2, 1e-6);
  EXPECT_NEAR(response.distances(1), std::sqrt(2), 1e-6);
  EXPECT_NEAR(response.distances(2), -std::sqrt(2), 1e-6);
}

// Callers that wait before they ask again, longer each time, as gRPC's own retries and the clients
// here do.
TEST_F(PredictTest, AStoppingServerTellsCallersSoAndCancelsNone) {
  constexpr int kCallers = 4;
  std::atomic<int> answered = 0;
  std::atomic<int> draining = 0;
  const auto call_until_away = [&] {
    grpc::ChannelArguments alone;
    alone.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub = v1::LearningService::NewStub(
        grpc::CreateCustomChannel(server_.address(), grpc::InsecureChannelCredentials(), alone));
    std::chrono::milliseconds wait(75);
    for (grpc::Status status; status.ok() || Reason(status) == "DRAINING";) {
      grpc::ClientContext context;
      v1::PredictResponse response;
      status = stub->Predict(&context, ThreePoints(), &response);
      if (status.ok()) {
        ++answered;
      } else {
        EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
        if (Reason(status) == "DRAINING") ++draining;
        std::this_thread::sleep_for(wait);
        wait *= 2;
      }
    }
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) callers.emplace_back(call_until_away);
  while (answered < 100 * kCallers) std::this_thread::yield();
  EXPECT_EQ(server_.Terminate(), 0);
  for (std::thread& caller : callers) caller.join();
  EXPECT_GE(draining, kCallers);
}

TEST_F(PredictTest, AnswersOfACompositionNameTheRevisionsOfItsComponents) {
  CreateDense("other", 2);
  v1::LearnRequest teach;
  teach.set_model("models/other");
  *teach.add_examples() = SparseExample(1, {{0, 1}});
  ASSERT_TRUE(Learn(teach).ok());
  v1::Model settings;
  for (const char* input : {"models/other", "models/plane"})
    settings.mutable_feature_space()->mutable_composition()->add_inputs()->set_model(input);
  Create("both", settings);
  v1::PredictRequest request = ThreePoints();
  v1::PredictResponse response;
  ASSERT_TRUE(Predict(request, &response).ok());
  EXPECT_EQ(response.component_revisions_size(), 0);
  request.set_model("models/both");
  ASSERT_TRUE(Predict(request, &response).ok());
  EXPECT_THAT(response.component_revisions(), ::testing::ElementsAre(1, 0));
  EXPECT_EQ(response.revision(), 0);

  teach.set_model("models/both");
  v1::LearnResult result;
  ASSERT_TRUE(Learn(teach, &result).ok());
  EXPECT_THAT(result.component_revisions(), ::testing::ElementsAre(1, 0));
  RawLearnStream stream(*learning_, "both");
  stream.Open();
  v1::LearnStreamRequest message;
  *message.add_examples() = teach.examples(0);
  EXPECT_THAT(stream.Ask(message).component_revisions(), ::testing::ElementsAre(1, 0));
  EXPECT_TRUE(stream.Finish().ok());

  v1::ExplainRequest explain;
  explain.set_model("models/both");
  *explain.add_examples() = teach.examples(0);
  v1::ExplainResponse explained;
  grpc::ClientContext context;
  ASSERT_TRUE(learning_->Explain(&context, explain, &explained).ok());
  EXPECT_THAT(explained.component_revisions(), ::testing::ElementsAre(1, 0));
}

TEST_F(PredictTest, PredictingChangesNothing) {
  const std::string before = Get("plane").SerializeAsString();
  v1::PredictResponse response;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Predict(ThreePoints(), &response).ok());
  EXPECT_EQ(Get("plane").SerializeAsString(), before);
}

TEST_F(PredictTest, LearningMovesTheBoundaryAsInTheTextbookAndTheReportDoesNotApplyTheTheorem) {
  v1::LearnRequest learn;
  learn.set_model("models/plane");
  v1::Example& example = *learn.add_examples();
  example.set_label(1);
  example.mutable_dense()->add_values(1);
  example.mutable_dense()->add_values(3);
  v1::LearnResult result;
  ASSERT_TRUE(Learn(learn, &result).ok());
  EXPECT_THAT(result.scores(), ::testing::ElementsAre(-1));
  EXPECT_EQ(result.updates(), 1);
  const v1::Model model = Get("plane");
  EXPECT_THAT(model.weights().values(), ::testing::ElementsAre(2, 2));
  EXPECT_EQ(model.weights().offset(), 2);
  EXPECT_EQ(model.revision(), 1);
  EXPECT_FALSE(model.report().has_margin_ceiling());
}

TEST_F(PredictTest, ACompositionTakesTheExamplesOfItsComponentsWhateverTheirNumber) {
  CreateDense("wide", 3);
  v1::Model over_dense;
  over_dense.mutable_feature_space()->mutable_composition()->add_inputs()->set_model("models/wide");
  Create("over-dense", over_dense);
  v1::PredictRequest request;
  request.set_model("models/over-dense");
  for (const float value : {1.0F, 2.0F, 3.0F})
    request.mutable_examples()->Add()->mutable_dense()->mutable_values()->Resize(3, value);
  v1::PredictResponse response;
  EXPECT_TRUE(Predict(request, &response).ok());
  EXPECT_EQ(response.scores_size(), 3);
  request.mutable_examples(1)->mutable_dense()->add_values(0);
  const grpc::Status row_errors = Predict(request, &response);
  EXPECT_EQ(Reason(row_errors), "WRONG_DIMENSION");
  EXPECT_EQ(BadField(row_errors), "examples[1].dense.values");

  v1::Model named;
  named.mutable_feature_space()->mutable_named();
  Create("words", named);
  v1::Model over_named;
  over_named.mutable_feature_space()->mutable_composition()->add_inputs()->set_model(
      "models/words");
  Create("over-named", over_named);
  v1::LearnRequest learn;
  learn.set_model("models/over-named");
  v1::Example& example = *learn.add_examples();
  example.set_label(1);
  example.mutable_named()->add_names("win");
  v1::LearnResult result;
  EXPECT_TRUE(Learn(learn, &result).ok());
  EXPECT_EQ(result.examples(), 1);
}

TEST_F(PredictTest, ABadRowRefusesAUnaryBatchWhole) {
  v1::LearnRequest learn;
  learn.set_model("models/plane");
  *learn.add_examples() = SparseExample(-1, {{0, 5}});
  *learn.add_examples() = SparseExample(1, {{0, INFINITY}});
  const grpc::Status status = Learn(learn);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Reason(status), "NON_FINITE_VALUE");
  EXPECT_EQ(BadField(status), "examples[1].sparse.values[0]");
  EXPECT_EQ(Get("plane").report().examples(), 0);
  v1::PredictRequest predict = ThreePoints();
  predict.mutable_examples(1)->mutable_dense()->add_values(0);
  v1::PredictResponse response;
  const grpc::Status row_errors = Predict(predict, &response);
  EXPECT_EQ(Reason(row_errors), "WRONG_DIMENSION");
  EXPECT_EQ(BadField(row_errors), "examples[1].dense.values");
}

TEST_F(PredictTest, ARowThatOverflowsWhenItsTurnComesIsRefusedAlone) {
  CreateDense("far", 2);
  v1::LearnRequest learn;
  learn.set_model("models/far");
  *learn.add_examples() = SparseExample(1, {{0, 1}, {1, 1}});
  *learn.add_examples() = SparseExample(-1, {{0, 3e38F}});
  *learn.add_examples() = SparseExample(-1, {{0, -1e38F}, {1, -3e38F}});
  // Only what the rows before it taught makes this one too large.
  *learn.add_examples() = SparseExample(1, {{0, 2e38F}, {1, 1e38F}});
  v1::LearnResult result;
  EXPECT_TRUE(Learn(learn, &result).ok());
  EXPECT_EQ(result.updates(), 3);
  ASSERT_EQ(result.errors_size(), 1);
  EXPECT_EQ(result.errors(0).row(), 3);
  EXPECT_EQ(Reason(result.errors(0).status()), "WEIGHT_OVERFLOW");
}

TEST_F(PredictTest, HashedNamesThatAddUpToNoNumberRefuseAUnaryBatchWhole) {
  v1::Model settings;
  settings.mutable_feature_space()->mutable_hashed()->set_bits(1);
  Create("tiny", settings);
  v1::LearnRequest learn;
  learn.set_model("models/tiny");
  learn.add_examples()->set_label(1);
  learn.add_examples()->set_label(1);
  for (const char* name : {"a", "b", "c", "d"}) {
    learn.mutable_examples(1)->mutable_named()->add_names(name);
    learn.mutable_examples(1)->mutable_named()->add_values(3e38F);
  }
  EXPECT_EQ(Reason(Learn(learn)), "NON_FINITE_VALUE");
  EXPECT_EQ(Get("tiny").report().examples(), 0);
}

TEST_F(PredictTest, ReplayedUnaryBatchesAreAcknowledgedByAFrozenModel) {
  v1::LearnRequest learn;
  learn.set_model("models/plane");
  learn.set_producer_id("p");
  *learn.add_examples() = SparseExample(-1, {{0, 5}});
  ASSERT_TRUE(Learn(learn).ok());
  v1::FreezeModelRequest freeze;
  freeze.set_name("models/plane");
  grpc::ClientContext context;
  v1::Model frozen;
  ASSERT_TRUE(models_->FreezeModel(&context, freeze, &frozen).ok());
  v1::LearnResult result;
  ASSERT_TRUE(Learn(learn, &result).ok());
  EXPECT_EQ(result.duplicates(), 1);
  EXPECT_EQ(result.acknowledged_through(), 0);
  *learn.add_examples() = SparseExample(-1, {{0, 5}});
  EXPECT_EQ(Reason(Learn(learn)), "MODEL_FROZEN");
  EXPECT_EQ(Get("plane").report().examples(), 1);
}

TEST_F(PredictTest, RefusedCallsLeaveRoomForProducers) {
  v1::LearnRequest learn;
  learn.set_model("models/plane");
  *learn.add_examples() = SparseExample(-1, {{0, NAN}});
  for (int i = 0; i <= 10'000; ++i) {
    learn.set_producer_id(std::to_string(i));
    ASSERT_EQ(Reason(Learn(learn)), "NON_FINITE_VALUE");
  }
  *learn.mutable_examples(0) = SparseExample(-1, {{0, 5}});
  EXPECT_TRUE(Learn(learn).ok());
}

TEST_F(PredictTest, AWatcherDoesNotGoOnToAnotherModelOfTheSameName) {
  grpc::ClientContext context;
  v1::WatchModelRequest request;
  request.set_name("models/plane");
  request.mutable_min_interval()->set_seconds(1);
  const auto watch = learning_->WatchModel(&context, request);
  v1::WatchModelResponse response;
  ASSERT_TRUE(watch->Read(&response));
  grpc::ClientContext deleting;
  v1::DeleteModelRequest remove;
  remove.set_name("models/plane");
  google::protobuf::Empty empty;
  ASSERT_TRUE(models_->DeleteModel(&deleting, remove, &empty).ok());
  CreateDense("plane", 2);
  EXPECT_FALSE(watch->Read(&response));
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(PredictTest, AWatchEndsWithItsModelHoweverLongItWouldHaveWaited) {
  grpc::ClientContext context;
  v1::WatchModelRequest request;
  request.set_name("models/plane");
  request.mutable_min_interval()->set_seconds(86400);
  const auto watch = learning_->WatchModel(&context, request);
  v1::WatchModelResponse response;
  ASSERT_TRUE(watch->Read(&response));
  grpc::ClientContext deleting;
  v1::DeleteModelRequest remove;
  remove.set_name("models/plane");
  google::protobuf::Empty empty;
  ASSERT_TRUE(models_->DeleteModel(&deleting, remove, &empty).ok());
  EXPECT_FALSE(watch->Read(&response));
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(PredictTest, ABadValueOfANameIsNamedWhereTheSenderPutIt) {
  v1::Model settings;
  settings.mutable_feature_space()->mutable_named()->set_max_features(3);
  Create("words", settings);
  v1::PredictRequest request;
  request.set_model("models/words");
  *request.add_examples() = NamedExample("", {{"zebra", 1}, {"mule", NAN}, {"ape", 1}});
  v1::PredictResponse response;
  const grpc::Status status = Predict(request, &response);
  EXPECT_EQ(Reason(status), "NON_FINITE_VALUE");
  EXPECT_EQ(BadField(status), "examples[0].named.values[1]");
}

TEST_F(PredictTest, AnOlderStateThanAskedForIsNotAnswered) {
  v1::PredictRequest request = ThreePoints();
  request.set_min_revision(1);
  v1::PredictResponse response;
  const grpc::Status status = Predict(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(Reason(status), "REVISION_TOO_OLD");
}

TEST_F(PredictTest, NumberedUnaryBatchesAreLearnedOnce) {
  v1::LearnRequest learn;
  learn.set_model("models/plane");
  learn.set_producer_id("p");
  *learn.add_examples() = SparseExample(-1, {{0, 5}});
  v1::LearnResult result;
  ASSERT_TRUE(Learn(learn, &result).ok());
  EXPECT_EQ(result.updates(), 1);
  ASSERT_TRUE(Learn(learn, &result).ok());
  EXPECT_EQ(result.duplicates(), 1);
  learn.set_first_offset(5);
  const grpc::Status gap = Learn(learn);
  EXPECT_EQ(gap.error_code(), grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(Reason(gap), "OFFSET_GAP");
  EXPECT_EQ(Get("plane").revision(), 1);
}

TEST_F(PredictTest, NamesOfANamedSpaceGetWeightsWithTheirFirstUpdate) {
  v1::Model settings;
  settings.mutable_feature_space()->mutable_named()->set_max_features(3);
  settings.add_label_names("ham");
  settings.add_label_names("spam");
  Create("mail", settings);
  v1::LearnRequest learn;
  learn.set_model("models/mail");
  *learn.add_examples() = NamedExample("spam", {{"win", 2}, {"free", 1}});
  // Right already (s = 3): "win" and "free" are known, "cash" is not and gets nothing.
  *learn.add_examples() = NamedExample("spam", {{"free", 1}, {"cash", 1}});
  v1::LearnResult result;
  ASSERT_TRUE(Learn(learn, &result).ok());
  EXPECT_THAT(result.scores(), ::testing::ElementsAre(0, 2));
  v1::Model model = Get("mail");
  EXPECT_THAT(model.weights().names(), ::testing::UnorderedElementsAre("free", "win"));
  // Two more names than fit.
  learn.clear_examples();
  *learn.add_examples() = NamedExample("ham", {{"win", 1}, {"see", 1}, {"you", 1}});
  *learn.add_examples() = NamedExample("ham", {{"win", 1}, {"see", 1}});
  ASSERT_TRUE(Learn(learn, &result).ok());
  ASSERT_EQ(result.errors_size(), 1);
  EXPECT_EQ(result.errors(0).row(), 0);
  EXPECT_EQ(result.errors(0).status().code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Reason(result.errors(0).status()), "FEATURE_CAP");
  EXPECT_EQ(result.updates(), 1);
  model = Get("mail");
  EXPECT_THAT(model.weights().names(), ::testing::UnorderedElementsAre("free", "see", "win"));
  // The same after a crash, name for name and bit for bit.
  const std::string before = model.weights().SerializeAsString();
  server_.Kill();
  Restart();
  EXPECT_EQ(Get("mail").weights().SerializeAsString(), before);
  v1::PredictRequest predict;
  predict.set_model("models/mail");
  *predict.add_examples() = NamedExample("ham", {{"never", 1}, {"seen", 1}});
  v1::PredictResponse response;
  ASSERT_TRUE(Predict(predict, &response).ok());
  EXPECT_EQ(response.scores(0), model.weights().offset());
}

TEST_F(PredictTest, HashedNamesThatShareASlotAddUp) {
  v1::Model settings;
  settings.mutable_feature_space()->mutable_hashed()->set_bits(1);
  Create("tiny", settings);
  v1::LearnRequest learn;
  learn.set_model("models/tiny");
  v1::Example& example = *learn.add_examples();
  example.set_label(1);
  for (const char* name : {"a", "b", "c", "d", "e"}) example.mutable_named()->add_names(name);
  ASSERT_TRUE(Learn(learn).ok());
  float total = 0;
  const v1::Model tiny = Get("tiny");
  for (const float weight : tiny.weights().values()) total += weight;
  EXPECT_EQ(total, 5);
  example.mutable_named()->add_names("a");
  EXPECT_EQ(Reason(Learn(learn)), "REPEATED_NAME");
}

TEST_F(PredictTest, AStreamAnswersEachMessageInOrderAndBadOnesInBand) {
  grpc::ClientContext context;
  const auto stream = learning_->PredictStream(&context);
  v1::PredictRequest request = ThreePoints();
  ASSERT_TRUE(stream->Write(request));
  request.clear_model();
  request.mutable_examples(1)->mutable_dense()->set_values(0, NAN);
  ASSERT_TRUE(stream->Write(request));
  request.mutable_columns()->add_row_ends(0);
  ASSERT_TRUE(stream->Write(request));
  stream->WritesDone();
  v1::PredictResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_THAT(response.labels(), ::testing::ElementsAre(-1, 1, -1));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_THAT(response.labels(), ::testing::ElementsAre(-1, 0, -1));
  ASSERT_EQ(response.errors_size(), 1);
  EXPECT_EQ(response.errors(0).row(), 1);
  EXPECT_EQ(Reason(response.errors(0).status()), "NON_FINITE_VALUE");
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(Reason(response.error()), "BOTH_FORMS");
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(PredictTest, AWatcherSeesTheReportChangeAndTheModelGo) {
  grpc::ClientContext context;
  v1::WatchModelRequest request;
  request.set_name("models/plane");
  request.mutable_min_interval()->set_nanos(50'000'000);
  const auto watch = learning_->WatchModel(&context, request);
  v1::WatchModelResponse response;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.model().revision(), 0);
  v1::LearnRequest learn;
  learn.set_model("models/plane");
  *learn.add_examples() = SparseExample(-1, {{0, 5}});
  ASSERT_TRUE(Learn(learn).ok());
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.model().revision(), 1);
  EXPECT_EQ(response.model().report().examples(), 1);
  grpc::ClientContext deleting;
  v1::DeleteModelRequest remove;
  remove.set_name("models/plane");
  google::protobuf::Empty empty;
  ASSERT_TRUE(models_->DeleteModel(&deleting, remove, &empty).ok());
  EXPECT_FALSE(watch->Read(&response));
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace perceptrond::testing
