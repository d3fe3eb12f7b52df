// Unary learning over a real connection: the textbook's numbers, all or nothing, numbered batches.
#include <cmath>
#include <string>

#include "tests/integration/predict_fixture.h"

namespace perceptrond::testing {
namespace {

class LearnTest : public PredictTest {};

TEST_F(LearnTest, LearningMovesTheBoundaryAsInTheTextbookAndTheReportDoesNotApplyTheTheorem) {
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
  EXPECT_THAT(model.weights().vectors(0).values(), ::testing::ElementsAre(2, 2));
  EXPECT_EQ(model.weights().vectors(0).bias(), 2);
  EXPECT_EQ(model.revision(), 1);
  EXPECT_FALSE(model.report().has_margin_ceiling());
}

TEST_F(LearnTest, ABadRowRefusesAUnaryBatchWhole) {
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
  const grpc::Status predicted = Predict(predict, &response);
  EXPECT_EQ(Reason(predicted), "WRONG_DIMENSION");
  EXPECT_EQ(BadField(predicted), "examples[1].dense.values");
}

TEST_F(LearnTest, ARowThatOverflowsWhenItsTurnComesIsRefusedAlone) {
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
  ASSERT_EQ(result.row_errors_size(), 1);
  EXPECT_EQ(result.row_errors(0).row(), 3);
  EXPECT_EQ(Reason(result.row_errors(0).status()), "WEIGHT_OVERFLOW");
}

TEST_F(LearnTest, HashedNamesThatAddUpToNoNumberRefuseAUnaryBatchWhole) {
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

TEST_F(LearnTest, ReplayedUnaryBatchesAreAcknowledgedByAFrozenModel) {
  v1::LearnRequest learn;
  learn.set_model("models/plane");
  learn.set_producer_id("p");
  learn.set_first_offset(0);
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
  EXPECT_EQ(result.acknowledged_offset(), 0);
  *learn.add_examples() = SparseExample(-1, {{0, 5}});
  EXPECT_EQ(Reason(Learn(learn)), "MODEL_FROZEN");
  EXPECT_EQ(Get("plane").report().examples(), 1);
}

TEST_F(LearnTest, RefusedCallsLeaveRoomForProducers) {
  v1::LearnRequest learn;
  learn.set_model("models/plane");
  *learn.add_examples() = SparseExample(-1, {{0, NAN}});
  learn.set_first_offset(0);
  for (int i = 0; i <= 10'000; ++i) {
    learn.set_producer_id(std::to_string(i));
    ASSERT_EQ(Reason(Learn(learn)), "NON_FINITE_VALUE");
  }
  *learn.mutable_examples(0) = SparseExample(-1, {{0, 5}});
  EXPECT_TRUE(Learn(learn).ok());
}

TEST_F(LearnTest, NumberedUnaryBatchesAreLearnedOnce) {
  v1::LearnRequest learn;
  learn.set_model("models/plane");
  learn.set_producer_id("p");
  learn.set_first_offset(0);
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

// Without an offset a second batch would be taken for the first one sent again.
TEST_F(LearnTest, AProducersBatchNeedsItsOffsetAndAnOffsetItsProducer) {
  v1::LearnRequest learn;
  learn.set_model("models/plane");
  *learn.add_examples() = SparseExample(-1, {{0, 5}});
  learn.set_producer_id("p");
  const grpc::Status no_offset = Learn(learn);
  EXPECT_EQ(Reason(no_offset), "INVALID_FIELD");
  EXPECT_EQ(BadField(no_offset), "first_offset");
  learn.clear_producer_id();
  learn.set_first_offset(0);
  const grpc::Status no_producer = Learn(learn);
  EXPECT_EQ(Reason(no_producer), "INVALID_FIELD");
  EXPECT_EQ(BadField(no_producer), "first_offset");
  EXPECT_EQ(Get("plane").report().examples(), 0);
}

TEST_F(LearnTest, NamesOfANamedSpaceGetWeightsWithTheirFirstUpdate) {
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
  EXPECT_THAT(model.weights().vectors(0).names(), ::testing::UnorderedElementsAre("free", "win"));
  // Two more names than fit.
  learn.clear_examples();
  *learn.add_examples() = NamedExample("ham", {{"win", 1}, {"see", 1}, {"you", 1}});
  *learn.add_examples() = NamedExample("ham", {{"win", 1}, {"see", 1}});
  ASSERT_TRUE(Learn(learn, &result).ok());
  ASSERT_EQ(result.row_errors_size(), 1);
  EXPECT_EQ(result.row_errors(0).row(), 0);
  EXPECT_EQ(result.row_errors(0).status().code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Reason(result.row_errors(0).status()), "FEATURE_CAP");
  EXPECT_EQ(result.updates(), 1);
  model = Get("mail");
  EXPECT_THAT(model.weights().vectors(0).names(),
              ::testing::UnorderedElementsAre("free", "see", "win"));
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
  EXPECT_EQ(response.scores(0), model.weights().vectors(0).bias());
}

TEST_F(LearnTest, HashedNamesThatShareASlotAddUp) {
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
  for (const float weight : tiny.weights().vectors(0).values()) total += weight;
  EXPECT_EQ(total, 5);
  example.mutable_named()->add_names("a");
  EXPECT_EQ(Reason(Learn(learn)), "REPEATED_NAME");
}

}  // namespace
}  // namespace perceptrond::testing
