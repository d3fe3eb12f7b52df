// WatchModel over a real connection: reports as they change, until the model is deleted.
#include "tests/integration/predict_fixture.h"

namespace perceptrond::testing {
namespace {

class WatchModelTest : public PredictTest {};

TEST_F(WatchModelTest, AWatcherSeesTheReportChangeAndTheModelGo) {
  grpc::ClientContext context;
  v1::WatchModelRequest request;
  request.set_name("models/plane");
  request.mutable_min_interval()->set_nanos(50'000'000);
  const auto watch = models_->WatchModel(&context, request);
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

TEST_F(WatchModelTest, AWatcherDoesNotGoOnToAnotherModelOfTheSameName) {
  grpc::ClientContext context;
  v1::WatchModelRequest request;
  request.set_name("models/plane");
  request.mutable_min_interval()->set_seconds(1);
  const auto watch = models_->WatchModel(&context, request);
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

TEST_F(WatchModelTest, AWatchEndsWithItsModelHoweverLongItWouldHaveWaited) {
  grpc::ClientContext context;
  v1::WatchModelRequest request;
  request.set_name("models/plane");
  request.mutable_min_interval()->set_seconds(86400);
  const auto watch = models_->WatchModel(&context, request);
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

}  // namespace
}  // namespace perceptrond::testing
