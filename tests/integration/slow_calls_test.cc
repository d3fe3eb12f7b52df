// Messages of a few kilobytes that would take half a minute of a processor each: while they run, the
// server serves, is managed, and stops; tests/core/model/cancellation_test.cc has what ends them.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

constexpr int kSlowCalls = 5;

class SlowCallsTest : public ServerTest {
 protected:
  // Without a limit to what a message costs.
  SlowCallsTest()
      : ServerTest({"--max-message-cost", "1000000000000000", "--drain-timeout", "1s"}) {
    v1::Model settings;
    settings.mutable_feature_space()->mutable_named();
    auto& fourier = *settings.mutable_feature_space()->mutable_map()->mutable_fourier();
    fourier.set_dimension(1 << 20);
    fourier.set_gamma(1);
    Create("slow", settings);
    CreateDense("plain", 2);
  }
  ~SlowCallsTest() override { End(grpc::StatusCode::CANCELLED); }

  static v1::PredictRequest Request(int names) {
    v1::PredictRequest request;
    request.set_model("models/slow");
    v1::NamedFeatures& named = *request.add_examples()->mutable_named();
    for (int i = 0; i < names; ++i) named.add_names("n" + std::to_string(i));
    return request;
  }
  // Returns once the server has them all.
  void BeginSlowCalls() {
    for (int i = 0; i < kSlowCalls; ++i) {
      contexts_.push_back(std::make_unique<grpc::ClientContext>());
      threads_.emplace_back([this, i] {
        v1::PredictResponse response;
        statuses_[i] = predictions_->Predict(contexts_[i].get(), Request(700), &response);
      });
    }
    while (StartedCalls(server_.metrics_port(), "Predict") < kSlowCalls) std::this_thread::yield();
  }
  void End(grpc::StatusCode code) {
    for (const auto& context : contexts_) context->TryCancel();
    for (std::thread& thread : threads_) thread.join();
    if (!threads_.empty()) {
      for (const grpc::Status& status : statuses_)
        EXPECT_EQ(status.error_code(), code) << status.error_message();
    }
    threads_.clear();
  }

  std::vector<std::unique_ptr<grpc::ClientContext>> contexts_;
  std::vector<std::thread> threads_;
  grpc::Status statuses_[kSlowCalls];
};

TEST_F(SlowCallsTest, OthersAreServedMeanwhileAndThreadsAreFreeOnceTheyAreCancelled) {
  BeginSlowCalls();
  EXPECT_TRUE(CallRaw("/grpc.health.v1.Health/Check", {""}).ok());
  EXPECT_EQ(Get("plain", v1::MODEL_VIEW_BASIC).revision(), 0);
  CreateDense("another", 2);
  // More than a polling thread answers.
  v1::PredictRequest rows;
  rows.set_model("models/plain");
  rows.mutable_columns()->set_dense_width(2);
  rows.mutable_columns()->mutable_values()->Resize(10'000, 1);
  v1::PredictResponse response;
  EXPECT_TRUE(Predict(rows, &response).ok());
  End(grpc::StatusCode::CANCELLED);
  // Such a call needs a thread that the slow ones had.
  EXPECT_TRUE(Predict(Request(1), &response).ok());
}

TEST_F(SlowCallsTest, TheServerStopsAfterItsDrainTimeout) {
  BeginSlowCalls();
  EXPECT_EQ(server_.Terminate(), 0);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  for (const grpc::Status& status : statuses_)
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
}

}  // namespace
}  // namespace perceptrond::testing
