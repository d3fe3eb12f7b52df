// An analysis takes seconds of a processor; predictions and learning do not wait for it.
#include <atomic>
#include <random>
#include <thread>

#include "perceptron/v1/analysis_service.grpc.pb.h"
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

// Random labels on random rows: nothing separates them, and the proof takes seconds.
v1::LearnRequest RandomLabels(const std::string& model, int rows, int dimension) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  v1::LearnRequest request;
  request.set_model("models/" + model);
  for (int n = 0; n < rows; ++n) {
    v1::Example& example = *request.add_examples();
    example.set_label(random() % 2 == 0 ? 1 : -1);
    for (int i = 0; i < dimension; ++i) example.mutable_dense()->add_values(normal(random));
  }
  return request;
}

TEST_F(ServerTest, PredictionsAndLearningAreAnsweredWhileAnAnalysisOfTheirModelRuns) {
  constexpr int kDimension = 450;
  constexpr int kCalls = 100;
  v1::Model settings;
  settings.mutable_feature_space()->mutable_dense()->set_dimension(kDimension);
  settings.mutable_stored_examples()->set_max_sample(100'000);
  Create("m", settings);
  const v1::LearnRequest rows = RandomLabels("m", 1350, kDimension);
  ASSERT_TRUE(Learn(rows).ok());

  const auto analysis = v1::AnalysisService::NewStub(channel_);
  grpc::ClientContext context;
  v1::AnalyzeRequest request;
  request.set_name("models/m");
  const auto stream = analysis->Analyze(&context, request);
  v1::AnalyzeResponse response;
  // It is under way once it says that it solves.
  do {
    ASSERT_TRUE(stream->Read(&response));
    ASSERT_TRUE(response.has_progress()) << "it ended before it was seen under way";
  } while (response.progress().stage() <= v1::ANALYSIS_STAGE_WAITING);
  std::atomic<bool> ended = false;
  std::thread reader([&] {
    while (stream->Read(&response)) {
      if (response.has_result()) ended = true;
    }
  });

  v1::PredictRequest predict;
  predict.set_model("models/m");
  *predict.add_examples() = rows.examples(0);
  v1::LearnRequest learn;
  learn.set_model("models/m");
  *learn.add_examples() = rows.examples(0);
  for (int call = 0; call < kCalls; ++call) {
    v1::PredictResponse answer;
    EXPECT_TRUE(Predict(predict, &answer).ok());
    EXPECT_TRUE(Learn(learn).ok());
  }
  EXPECT_FALSE(ended) << kCalls << " calls took as long as the analysis";
  context.TryCancel();
  reader.join();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

}  // namespace
}  // namespace perceptrond::testing
