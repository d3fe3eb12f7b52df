// /metrics of the real server: models' series come and go with the models.
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ServerMetricsTest : public ServerTest {
 protected:
  ServerMetricsTest() : ServerTest({"--metrics-max-models", "2"}) {}
  std::string OfA(const std::string& family) {
    return Metric(server_, "perceptrond_model_" + family + "{model_name=\"a\"}");
  }
};

TEST_F(ServerMetricsTest, RequestsForUnknownModelsMakeNoSeriesAndTheNumberOfModelsIsCapped) {
  for (const char* id : {"a", "b", "c"}) CreateDense(id, 1);
  EXPECT_EQ(Call("PredictionService/Predict", "model: 'models/invented'"),
            "NOT_FOUND MODEL_NOT_FOUND");
  const std::string page = MetricsPage(server_);
  EXPECT_THAT(page, Not(HasSubstr("invented")));
  EXPECT_THAT(page, HasSubstr("model_name=\"b\""));
  EXPECT_THAT(page, Not(HasSubstr("model_name=\"c\"")));
  EXPECT_THAT(page, HasSubstr("grpc_service=\"perceptron.v1.PredictionService\",grpc_method="
                              "\"Predict\",grpc_code=\"NotFound\"} 1"));
  EXPECT_EQ(Call("ModelService/DeleteModel", "name: 'models/b'"), "OK");
  EXPECT_THAT(MetricsPage(server_),
              ::testing::AllOf(Not(HasSubstr("model_name=\"b\"")), HasSubstr("model_name=\"c\"")));
}

TEST_F(ServerMetricsTest, FiguresOfALoadedModelAreAbsentUntilItIsLoadedAndCountsGoOn) {
  CreateDense("a", 1);
  EXPECT_EQ(
      Call("LearningService/Learn", "model: 'models/a' examples { dense { values: 1 } label: 1 }"),
      "OK");
  for (const bool loaded : {true, false, true}) {
    if (!loaded) {
      server_.Kill();
      Restart();
      const auto list = AnswerOf<v1::ListModelsResponse>("ModelService/ListModels", "");
      EXPECT_FALSE(list.models(0).report().has_weight_norm());
      EXPECT_EQ(list.models(0).report().window_examples(), 1U);
    } else {
      EXPECT_GT(Get("a", v1::MODEL_VIEW_BASIC).report().weight_norm(), 0);
    }
    for (const char* family : {"weight_norm", "journal_bytes"})
      EXPECT_EQ(OfA(family) != "", loaded) << family;
    EXPECT_EQ(OfA("examples_total"), "1");
  }
}

}  // namespace
}  // namespace perceptrond::testing
