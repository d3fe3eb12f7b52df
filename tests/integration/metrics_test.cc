// /metrics of the real server: models' series come and go with the models.
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

class ServerMetricsTest : public ServerTest {
 protected:
  ServerMetricsTest() : ServerTest({"--metrics-max-models", "2"}) {}
  std::string Scrape() {
    return RunCommand("curl -sf http://127.0.0.1:" + std::to_string(server_.metrics_port()) +
                      "/metrics")
        .out;
  }
  void LearnOne(const std::string& id) {
    v1::LearnRequest learn;
    learn.set_model("models/" + id);
    *learn.add_examples() = SparseExample(1, {{0, 1}});
    ASSERT_TRUE(Learn(learn).ok());
  }
};

TEST_F(ServerMetricsTest, CountsOfAModelAreItsReports) {
  CreateDense("a", 1);
  LearnOne("a");
  LearnOne("a");
  const std::string text = Scrape();
  EXPECT_THAT(text, ::testing::HasSubstr("perceptrond_model_examples_total{model_name=\"a\"} 2"));
  EXPECT_THAT(text, ::testing::HasSubstr("perceptrond_model_mistakes_total{model_name=\"a\"} 1"));
  EXPECT_THAT(text, ::testing::HasSubstr("perceptrond_model_updates_total{model_name=\"a\"} 1"));
  EXPECT_THAT(text, ::testing::HasSubstr("grpc_method=\"Learn\""));
  EXPECT_THAT(text, ::testing::HasSubstr("grpc_server_handling_seconds_bucket"));
  EXPECT_THAT(text, ::testing::HasSubstr("process_resident_memory_bytes"));
  EXPECT_THAT(text, ::testing::HasSubstr("perceptrond_build_info"));
}

TEST_F(ServerMetricsTest, RequestsForUnknownModelsMakeNoSeriesAndTheNumberOfModelsIsCapped) {
  for (const char* id : {"a", "b", "c"}) CreateDense(id, 1);
  v1::PredictRequest predict;
  predict.set_model("models/invented");
  v1::PredictResponse response;
  EXPECT_FALSE(Predict(predict, &response).ok());
  const std::string text = Scrape();
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("invented")));
  EXPECT_THAT(text, ::testing::HasSubstr("model_name=\"b\""));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("model_name=\"c\"")));
  grpc::ClientContext context;
  v1::DeleteModelRequest request;
  request.set_name("models/b");
  google::protobuf::Empty empty;
  ASSERT_TRUE(models_->DeleteModel(&context, request, &empty).ok());
  EXPECT_THAT(Scrape(), ::testing::AllOf(::testing::Not(::testing::HasSubstr("model_name=\"b\"")),
                                         ::testing::HasSubstr("model_name=\"c\"")));
}

TEST_F(ServerMetricsTest, WhatIsOnlyKnownOfALoadedModelIsAbsentUntilItIsLoaded) {
  CreateDense("a", 1);
  LearnOne("a");
  const auto known = ::testing::AllOf(::testing::HasSubstr("perceptrond_model_weight_norm"),
                                      ::testing::HasSubstr("perceptrond_model_journal_bytes"),
                                      ::testing::HasSubstr("perceptrond_model_state"));
  const auto unknown =
      ::testing::AllOf(::testing::Not(::testing::HasSubstr("perceptrond_model_weight_norm")),
                       ::testing::Not(::testing::HasSubstr("perceptrond_model_journal_bytes")),
                       ::testing::Not(::testing::HasSubstr("perceptrond_model_state")));
  EXPECT_THAT(Scrape(), known);
  server_.Kill();
  Restart();
  EXPECT_THAT(Scrape(), unknown);
  // Counts go on.
  EXPECT_THAT(Scrape(),
              ::testing::HasSubstr("perceptrond_model_examples_total{model_name=\"a\"} 1"));
  grpc::ClientContext context;
  v1::ListModelsResponse list;
  ASSERT_TRUE(models_->ListModels(&context, v1::ListModelsRequest(), &list).ok());
  EXPECT_FALSE(list.models(0).report().has_weight_norm());
  EXPECT_EQ(list.models(0).report().state(), v1::CONVERGENCE_STATE_LEARNING);
  EXPECT_EQ(list.models(0).report().window_examples(), 1U);
  EXPECT_GT(Get("a", v1::MODEL_VIEW_BASIC).report().weight_norm(), 0);
  EXPECT_THAT(Scrape(), known);
}

}  // namespace
}  // namespace perceptrond::testing
