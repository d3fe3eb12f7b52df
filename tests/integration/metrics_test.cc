// /metrics of the real server: models' series come and go with the models.
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ServerMetricsTest : public ServerTest {
 protected:
  ServerMetricsTest() : ServerTest({"--metrics-max-models", "2"}) {}
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

}  // namespace
}  // namespace perceptrond::testing
