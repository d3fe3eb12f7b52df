// Each limit refuses what is beyond it, with words that name the flag, and nothing before it.
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::HasSubstr;

void ExpectRefused(const grpc::Status& status, const char* reason, const char* flag) {
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Reason(status), reason) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr(flag));
}

class LimitsTest : public ServerTest {
 protected:
  LimitsTest()
      : ServerTest({"--max-models=2", "--max-model-features=100", "--max-producers=1",
                    "--max-example-features=4", "--max-message-bytes=64KiB"}) {}

  grpc::Status TryCreate(const std::string& id, uint32_t dimension) {
    grpc::ClientContext context;
    v1::CreateModelRequest request;
    request.set_model_id(id);
    request.mutable_model()->mutable_feature_space()->mutable_dense()->set_dimension(dimension);
    v1::Model model;
    return models_->CreateModel(&context, request, &model);
  }
  static v1::LearnRequest Request(const std::string& producer = "") {
    v1::LearnRequest request;
    request.set_model("models/m");
    if (!producer.empty()) {
      request.set_producer_id(producer);
      request.set_first_offset(0);
    }
    *request.add_examples() = SparseExample(1, {{0, 1}});
    return request;
  }
};

TEST_F(LimitsTest, ModelsAndTheirFeatures) {
  ExpectRefused(TryCreate("large", 101), "MODEL_TOO_LARGE", "--max-model-features");
  EXPECT_TRUE(TryCreate("a", 100).ok());
  EXPECT_TRUE(TryCreate("b", 100).ok());
  ExpectRefused(TryCreate("c", 100), "MODEL_LIMIT", "--max-models");
}

TEST_F(LimitsTest, Producers) {
  CreateDense("m", 2);
  EXPECT_TRUE(Learn(Request("first")).ok());
  ExpectRefused(Learn(Request("second")), "PRODUCER_LIMIT", "--max-producers");
  EXPECT_TRUE(Learn(Request("first")).ok());
  EXPECT_TRUE(Learn(Request()).ok());
}

TEST_F(LimitsTest, FeaturesOfAnExample) {
  CreateDense("m", 5);
  v1::LearnRequest request = Request();
  *request.add_examples() = SparseExample(1, {{0, 1}, {1, 1}, {2, 1}, {3, 1}});
  EXPECT_TRUE(Learn(request).ok());
  *request.add_examples() = SparseExample(1, {{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}});
  ExpectRefused(Learn(request), "TOO_MANY_FEATURES", "--max-example-features");
}

TEST_F(LimitsTest, BytesOfAMessage) {
  CreateDense("m", 4);
  v1::PredictRequest request;
  request.set_model("models/m");
  request.mutable_columns()->set_dense_width(4);
  v1::PredictResponse response;
  for (int i = 0; i < 16'000; ++i) request.mutable_columns()->add_values(1);
  EXPECT_TRUE(Predict(request, &response).ok());
  for (int i = 0; i < 4'000; ++i) request.mutable_columns()->add_values(1);
  ExpectRefused(Predict(request, &response), "MESSAGE_TOO_LARGE", "--max-message-bytes");
}

class CostLimitTest : public ServerTest {
 protected:
  CostLimitTest() : ServerTest({"--max-message-cost=1000000"}) {}
};

TEST_F(CostLimitTest, AMessageIsRefusedOnEachPathAndTheStreamGoesOn) {
  v1::Model settings;
  settings.mutable_feature_space()->mutable_dense()->set_dimension(4);
  settings.mutable_feature_space()->mutable_map()->mutable_fourier()->set_dimension(100);
  settings.mutable_feature_space()->mutable_map()->mutable_fourier()->set_gamma(1);
  Create("m", settings);
  v1::PredictRequest predict;
  predict.set_model("models/m");
  predict.mutable_columns()->set_dense_width(4);
  // 3,500 rows of 100 mapped features, each of which is a sum of four products.
  predict.mutable_columns()->mutable_values()->Resize(14'000, 1);
  v1::PredictResponse response;
  ExpectRefused(Predict(predict, &response), "MESSAGE_TOO_COSTLY", "--max-message-cost");
  v1::LearnRequest learn;
  learn.set_model("models/m");
  *learn.mutable_columns() = predict.columns();
  learn.mutable_columns()->mutable_labels()->Resize(3'500, 1);
  ExpectRefused(Learn(learn), "MESSAGE_TOO_COSTLY", "--max-message-cost");
  RawLearnStream stream(*learning_, "m");
  stream.Open();
  v1::LearnStreamRequest message;
  *message.mutable_columns() = learn.columns();
  EXPECT_EQ(Reason(stream.Ask(message).error()), "MESSAGE_TOO_COSTLY");
  message.mutable_columns()->mutable_values()->Truncate(4);
  message.mutable_columns()->mutable_labels()->Truncate(1);
  EXPECT_FALSE(stream.Ask(message).has_error());
  EXPECT_TRUE(stream.Finish().ok());
}

// The flag.
class StreamLimitsTest : public ServerTest, public ::testing::WithParamInterface<std::string> {
 protected:
  StreamLimitsTest() : ServerTest({GetParam() + "=2"}) {}
};

TEST_P(StreamLimitsTest, AnotherCallIsRefusedUntilOneEndsButManagementIsNot) {
  CreateDense("m", 2);
  RawLearnStream one(*learning_, "m");
  one.Open();
  RawLearnStream two(*learning_, "m");
  two.Open();
  v1::PredictRequest request;
  request.set_model("models/m");
  v1::PredictResponse response;
  const grpc::Status status = Predict(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Reason(status), "TOO_MANY_STREAMS");
  EXPECT_THAT(status.error_message(), HasSubstr(GetParam()));
  grpc::ClientContext context;
  v1::ListModelsResponse models;
  EXPECT_TRUE(models_->ListModels(&context, {}, &models).ok());
  EXPECT_TRUE(one.Finish().ok());
  grpc::Status later;
  do {
    later = Predict(request, &response);
  } while (Reason(later) == "TOO_MANY_STREAMS");
  EXPECT_TRUE(later.ok());
}

INSTANTIATE_TEST_SUITE_P(Flags, StreamLimitsTest,
                         ::testing::Values("--max-streams-per-connection", "--max-streams"),
                         [](const auto& flag) {
                           return flag.param == "--max-streams" ? "InAll" : "PerConnection";
                         });

}  // namespace
}  // namespace perceptrond::testing
