// Each limit refuses what is beyond it, with words that name the flag, and nothing before it.
#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"
#include "tests/support/eventually.h"

namespace perceptrond::testing {
namespace {

class LimitsTest : public ServerTest {
 protected:
  explicit LimitsTest(const std::vector<std::string>& flags = {"--max-models=2",
                                                               "--max-model-features=100",
                                                               "--max-producers=1",
                                                               "--max-example-features=4",
                                                               "--max-message-bytes=64KiB"})
      : ServerTest(flags) {}
  // Refused, with the flag in words.
  void ExpectRefused(const std::string& method, const std::string& request, const char* reason,
                     const char* flag) {
    const grpc::Status status = Send(method, request);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << request;
    EXPECT_EQ(Reason(status), reason);
    EXPECT_THAT(status.error_message(), ::testing::HasSubstr(flag));
  }
};

TEST_F(LimitsTest, EachRefusesWhatIsBeyondItAndNothingBeforeIt) {
  const std::string create = "ModelService/CreateModel";
  const auto model = [](const char* id, int dimension) {
    return absl::StrCat("model_id: '", id,
                        "' model { feature_space { dense { dimension: ", dimension, " } } }");
  };
  ExpectRefused(create, model("large", 101), "MODEL_TOO_LARGE", "--max-model-features");
  for (const char* id : {"m", "n"}) EXPECT_EQ(Call(create, model(id, 100)), "OK");
  ExpectRefused(create, model("c", 100), "MODEL_LIMIT", "--max-models");

  const std::string learn = "LearningService/Learn";
  const std::string row = "model: 'models/m' examples { sparse { indices: 0 } label: 1 } ";
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(Call(learn, row + "producer_id: 'first' first_offset: 0"), "OK");
    ExpectRefused(learn, row + "producer_id: 'second' first_offset: 0", "PRODUCER_LIMIT",
                  "--max-producers");
  }
  EXPECT_EQ(Call(learn, row + "examples { sparse { indices: [1, 2, 3, 4] } label: 1 }"), "OK");
  ExpectRefused(learn, row + "examples { sparse { indices: [1, 2, 3, 4, 5] } label: 1 }",
                "TOO_MANY_FEATURES", "--max-example-features");

  v1::PredictRequest predict;
  predict.set_model("models/m");
  predict.mutable_columns()->mutable_row_ends()->Resize(60'000, 0);
  EXPECT_EQ(Call("PredictionService/Predict", predict.ShortDebugString()), "OK");
  predict.mutable_columns()->mutable_row_ends()->Resize(66'000, 0);
  ExpectRefused("PredictionService/Predict", predict.ShortDebugString(), "MESSAGE_TOO_LARGE",
                "--max-message-bytes");
}

class CostLimitTest : public LimitsTest {
 protected:
  CostLimitTest() : LimitsTest({"--max-message-cost=1000000"}) {}
};

TEST_F(CostLimitTest, AMessageIsRefusedOnEachPathAndTheStreamGoesOn) {
  Create("costly",
         "feature_space { dense { dimension: 4 } map { fourier { dimension: 100 gamma: 1 } } }");
  // Rows of 100 mapped features, each of which is a sum of four products.
  v1::LearnRequest costly;
  costly.set_model("models/costly");
  costly.mutable_columns()->set_dense_width(4);
  costly.mutable_columns()->mutable_values()->Resize(14'000, 1);
  ExpectRefused("PredictionService/Predict", costly.ShortDebugString(), "MESSAGE_TOO_COSTLY",
                "--max-message-cost");
  costly.mutable_columns()->mutable_labels()->Resize(3'500, 1);
  ExpectRefused("LearningService/Learn", costly.ShortDebugString(), "MESSAGE_TOO_COSTLY",
                "--max-message-cost");
  RawLearnStream stream(*learning_, "costly");
  stream.Open();
  v1::LearnStreamRequest message;
  *message.mutable_columns() = costly.columns();
  EXPECT_EQ(Reason(stream.Ask(message).error()), "MESSAGE_TOO_COSTLY");
  EXPECT_EQ(stream.Ask("examples { dense { values: [1, 1, 1, 1] } label: 1 }").examples(), 1U);
  EXPECT_TRUE(stream.Finish().ok());
}

class StreamLimitTest : public LimitsTest {
 protected:
  StreamLimitTest() : LimitsTest({"--max-streams=2"}) {}
};

TEST_F(StreamLimitTest, AnotherCallIsRefusedUntilOneEndsButManagementIsNot) {
  CreateDense("m", 2);
  RawLearnStream one(*learning_, "m");
  one.Open();
  RawLearnStream two(*learning_, "m");
  two.Open();
  ExpectRefused("PredictionService/Predict", "model: 'models/m'", "TOO_MANY_STREAMS",
                "--max-streams");
  EXPECT_EQ(Call("ModelService/ListModels", ""), "OK");
  EXPECT_TRUE(one.Finish().ok());
  EXPECT_TRUE(
      Eventually([&] { return Call("PredictionService/Predict", "model: 'models/m'") == "OK"; }));
}

}  // namespace
}  // namespace perceptrond::testing
