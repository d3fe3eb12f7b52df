// WatchModel over a real connection: reports as they change, until the model is deleted.
#include <memory>

#include "absl/time/time.h"
#include "tests/integration/predict_fixture.h"

namespace perceptrond::testing {
namespace {

using Watch = std::unique_ptr<grpc::ClientReader<v1::WatchModelResponse>>;

class WatchModelTest : public PredictTest {
 protected:
  // Watches "plane" and reads the first report, of an empty model.
  Watch BeginWatch(absl::Duration min_interval) {
    v1::WatchModelRequest request;
    request.set_name("models/plane");
    request.mutable_min_interval()->set_seconds(min_interval / absl::Seconds(1));
    request.mutable_min_interval()->set_nanos(
        static_cast<int32_t>((min_interval % absl::Seconds(1)) / absl::Nanoseconds(1)));
    Watch watch = models_->WatchModel(&context_, request);
    v1::WatchModelResponse response;
    EXPECT_TRUE(watch->Read(&response));
    EXPECT_EQ(response.model().revision(), 0);
    return watch;
  }

  void DeletePlane() {
    grpc::ClientContext context;
    v1::DeleteModelRequest request;
    request.set_name("models/plane");
    google::protobuf::Empty empty;
    ASSERT_TRUE(models_->DeleteModel(&context, request, &empty).ok());
  }

  void ExpectEnd(const Watch& watch) {
    v1::WatchModelResponse response;
    EXPECT_FALSE(watch->Read(&response));
    EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
  }

 private:
  grpc::ClientContext context_;
};

TEST_F(WatchModelTest, AWatcherSeesTheReportChangeAndTheModelGo) {
  const Watch watch = BeginWatch(absl::Milliseconds(50));
  v1::LearnRequest learn;
  learn.set_model("models/plane");
  *learn.add_examples() = SparseExample(-1, {{0, 5}});
  ASSERT_TRUE(Learn(learn).ok());
  v1::WatchModelResponse response;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.model().revision(), 1);
  EXPECT_EQ(response.model().report().examples(), 1);
  DeletePlane();
  ExpectEnd(watch);
}

TEST_F(WatchModelTest, AWatcherDoesNotGoOnToAnotherModelOfTheSameName) {
  const Watch watch = BeginWatch(absl::Seconds(1));
  DeletePlane();
  CreateDense("plane", 2);
  ExpectEnd(watch);
}

TEST_F(WatchModelTest, AWatchEndsWithItsModelHoweverLongItWouldHaveWaited) {
  const Watch watch = BeginWatch(absl::Hours(24));
  DeletePlane();
  ExpectEnd(watch);
}

}  // namespace
}  // namespace perceptrond::testing
