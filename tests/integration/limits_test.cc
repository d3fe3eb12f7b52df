// The limits of a server are those of its options. What each refuses, and what not, the tests of the store and of
// connections have.
#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"
#include "tests/support/wait_until.h"

namespace perceptrond::testing {
namespace {

class LimitsTest : public ServerTest {
 protected:
  LimitsTest()
      : ServerTest({"--max-model-features=100", "--max-producers=1", "--max-message-cost=1000000",
                    "--max-streams=2"}) {}
};

TEST_F(LimitsTest, AreThoseOfTheOptions) {
  const auto create = [this](int features) {
    return Call(
        "ModelService/CreateModel",
        absl::StrCat("model_id: 'm' model { feature_space { dense { dimension: 4 } map { fourier { "
                     "dimension: ",
                     features, " gamma: 1 } } } }"));
  };
  EXPECT_EQ(create(101), "RESOURCE_EXHAUSTED MODEL_TOO_LARGE");
  EXPECT_EQ(create(100), "OK");
  {
    RawLearnStream streams[] = {{*learning_, "m"}, {*learning_, "m"}};
    for (RawLearnStream& stream : streams) stream.Open();
    EXPECT_EQ(Call("PredictionService/Predict", "model: 'models/m'"),
              "RESOURCE_EXHAUSTED TOO_MANY_STREAMS");
    EXPECT_EQ(Call("ModelService/ListModels", ""), "OK");
    for (RawLearnStream& stream : streams) EXPECT_TRUE(stream.Finish().ok());
  }
  WaitUntil([&] { return Call("PredictionService/Predict", "model: 'models/m'") == "OK"; });
  for (const auto& [producer, outcome] :
       {std::pair{"first", "OK"}, {"second", "RESOURCE_EXHAUSTED PRODUCER_LIMIT"}}) {
    EXPECT_EQ(
        Call("LearningService/Learn", absl::StrCat("model: 'models/m' producer_id: '", producer,
                                                   "' first_offset: 0 examples { label: 1 }")),
        outcome);
  }
  // Rows of 100 mapped features, each of which is a sum of four products.
  v1::PredictRequest costly;
  costly.set_model("models/m");
  costly.mutable_columns()->set_dense_width(4);
  costly.mutable_columns()->mutable_values()->Resize(14'000, 1);
  EXPECT_EQ(Call("PredictionService/Predict", costly.ShortDebugString()),
            "RESOURCE_EXHAUSTED MESSAGE_TOO_COSTLY");
}

}  // namespace
}  // namespace perceptrond::testing
