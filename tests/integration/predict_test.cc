// Predicting over a real connection: the textbook's numbers, revisions, compositions, streams.
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "tests/integration/predict_fixture.h"

namespace perceptrond::testing {
namespace {

TEST_F(PredictTest, ScoresAndDistancesAreTheTextbooks) {
  v1::PredictResponse response;
  ASSERT_TRUE(Predict(ThreePoints(), &response).ok());
  EXPECT_THAT(response.scores(), ::testing::ElementsAre(-1, 2, -2));
  EXPECT_THAT(response.predicted_labels(), ::testing::ElementsAre(-1, 1, -1));
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
    const auto stub = v1::PredictionService::NewStub(
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
        // The back-off itself: a draining server still answers callers that come back after it.
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
  ASSERT_TRUE(predictions_->Explain(&context, explain, &explained).ok());
  EXPECT_THAT(explained.component_revisions(), ::testing::ElementsAre(1, 0));
}

TEST_F(PredictTest, PredictingChangesNothing) {
  const std::string before = Get("plane").SerializeAsString();
  v1::PredictResponse response;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Predict(ThreePoints(), &response).ok());
  EXPECT_EQ(Get("plane").SerializeAsString(), before);
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
  const grpc::Status status = Predict(request, &response);
  EXPECT_EQ(Reason(status), "WRONG_DIMENSION");
  EXPECT_EQ(BadField(status), "examples[1].dense.values");

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

TEST_F(PredictTest, ANameWithoutAWeightIsRefusedOnRequest) {
  v1::Model settings;
  settings.mutable_feature_space()->mutable_named();
  Create("words", settings);
  v1::LearnRequest learn;
  learn.set_model("models/words");
  *learn.add_examples() = NamedExample("", {{"ape", 1}, {"mule", 1}});
  learn.mutable_examples(0)->set_label(1);
  ASSERT_TRUE(Learn(learn).ok());
  v1::Model over;
  over.mutable_feature_space()->mutable_composition()->add_inputs()->set_model("models/words");
  Create("over", over);
  for (const char* model : {"models/words", "models/over"}) {
    v1::PredictRequest request;
    request.set_model(model);
    *request.add_examples() = NamedExample("", {{"ape", 1}});
    *request.add_examples() = NamedExample("", {{"mule", 1}, {"zebra", 1}});
    v1::PredictResponse response;
    EXPECT_TRUE(Predict(request, &response).ok());
    request.set_unknown_features(v1::UNKNOWN_FEATURES_REFUSE);
    const grpc::Status status = Predict(request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(Reason(status), "UNKNOWN_FEATURE");
    EXPECT_EQ(BadField(status), "examples[1].named.names[1]");
    EXPECT_THAT(status.error_message(), ::testing::HasSubstr("zebra"));
    v1::PredictRequest packed;
    packed.set_model(model);
    packed.set_unknown_features(v1::UNKNOWN_FEATURES_REFUSE);
    v1::ExampleColumns& columns = *packed.mutable_columns();
    columns.mutable_feature_names()->set_text("apezebramule");
    for (const uint32_t length : {3U, 5U, 4U}) columns.mutable_feature_names()->add_lengths(length);
    for (const uint32_t end : {1U, 3U}) columns.add_row_ends(end);
    for (const uint32_t index : {0U, 1U, 2U}) columns.add_indices(index);
    EXPECT_EQ(BadField(Predict(packed, &response)), "columns.indices[1]");
    grpc::ClientContext context;
    const auto stream = predictions_->PredictStream(&context);
    ASSERT_TRUE(stream->Write(request));
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.scores_size(), 2);
    ASSERT_EQ(response.row_errors_size(), 1);
    EXPECT_EQ(response.row_errors(0).row(), 1);
    EXPECT_EQ(Reason(response.row_errors(0).status()), "UNKNOWN_FEATURE");
    stream->WritesDone();
    EXPECT_TRUE(stream->Finish().ok());
    request.mutable_examples()->RemoveLast();
    EXPECT_TRUE(Predict(request, &response).ok());
  }
}

TEST_F(PredictTest, SlotsOfAHashedModelAreNeverUnknown) {
  v1::Model settings;
  settings.mutable_feature_space()->mutable_hashed()->set_bits(8);
  Create("hashed", settings);
  v1::PredictRequest request;
  request.set_model("models/hashed");
  request.set_unknown_features(v1::UNKNOWN_FEATURES_REFUSE);
  *request.add_examples() = NamedExample("", {{"zebra", 1}});
  v1::PredictResponse response;
  EXPECT_TRUE(Predict(request, &response).ok());
  request.mutable_examples(0)->mutable_sparse()->add_indices(256);
  EXPECT_EQ(Reason(Predict(request, &response)), "INDEX_OUT_OF_RANGE");
}

TEST_F(PredictTest, AnOlderStateThanAskedForIsNotAnswered) {
  v1::PredictRequest request = ThreePoints();
  request.set_min_revision(1);
  v1::PredictResponse response;
  const grpc::Status status = Predict(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(Reason(status), "REVISION_TOO_OLD");
}

TEST_F(PredictTest, AStreamAnswersEachMessageInOrderAndBadOnesInBand) {
  grpc::ClientContext context;
  const auto stream = predictions_->PredictStream(&context);
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
  EXPECT_THAT(response.predicted_labels(), ::testing::ElementsAre(-1, 1, -1));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_THAT(response.predicted_labels(), ::testing::ElementsAre(-1, 0, -1));
  ASSERT_EQ(response.row_errors_size(), 1);
  EXPECT_EQ(response.row_errors(0).row(), 1);
  EXPECT_EQ(Reason(response.row_errors(0).status()), "NON_FINITE_VALUE");
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(Reason(response.error()), "BOTH_FORMS");
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

}  // namespace
}  // namespace perceptrond::testing
