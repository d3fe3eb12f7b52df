// At more load than the server can take, what it accepts is answered, the rest is refused early with
// the time to wait, and management and health answer. How long calls may wait is in
// tests/server/rpc/workers_test.cc.
#include <atomic>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

class OverloadTest : public ServerTest {
 protected:
  OverloadTest() : ServerTest({"--max-queued-calls", "8"}) {
    v1::Model settings;
    settings.mutable_feature_space()->mutable_dense()->set_dimension(1);
    auto& fourier = *settings.mutable_feature_space()->mutable_map()->mutable_fourier();
    fourier.set_dimension(200'000);
    fourier.set_gamma(1);
    Create("m", settings);
  }
  ~OverloadTest() override { End(); }

  // Some milliseconds of a processor.
  static v1::PredictRequest Request() {
    v1::PredictRequest request;
    request.set_model("models/m");
    request.mutable_columns()->set_dense_width(1);
    request.mutable_columns()->add_values(1);
    return request;
  }
  // Runs `ask` again and again on so many threads until End.
  template <typename Ask>
  void Load(int clients, Ask ask) {
    for (int i = 0; i < clients; ++i) {
      clients_.emplace_back([this, ask] {
        while (!end_) ask();
      });
    }
  }
  void End() {
    end_ = true;
    for (std::thread& client : clients_) client.join();
    clients_.clear();
  }
  void ExpectManaged() {
    EXPECT_TRUE(CallRaw("/grpc.health.v1.Health/Check", {""}).ok());
    EXPECT_EQ(Get("m", v1::MODEL_VIEW_BASIC).revision(), 0);
  }

  std::atomic<bool> end_ = false;
  std::vector<std::thread> clients_;
};

TEST_F(OverloadTest, CallsAreAnsweredOrRefusedWithTheTimeToWaitAndManagementAnswers) {
  std::atomic<int> accepted = 0;
  std::atomic<int> refused = 0;
  Load(48, [&] {
    v1::PredictResponse response;
    const grpc::Status status = Predict(Request(), &response);
    if (status.ok()) {
      ++accepted;
    } else {
      EXPECT_EQ(Reason(status), "SERVER_BUSY") << status.error_message();
      EXPECT_TRUE(RetryDelay(status).has_value());
      ++refused;
      // Far sooner than it was told to.
      absl::SleepFor(absl::Milliseconds(10));
    }
  });
  for (int i = 0; i < 20 || accepted < 20 || refused < 20; ++i) ExpectManaged();
}

// More streams than there are processors, each with work at all times.
TEST_F(OverloadTest, StreamsLeaveCallsTheirShare) {
  std::atomic<int> answers = 0;
  Load(16, [&] {
    grpc::ClientContext context;
    const auto stream = predictions_->PredictStream(&context);
    v1::PredictResponse response;
    while (!end_ && stream->Write(Request()) && stream->Read(&response)) ++answers;
    stream->WritesDone();
    EXPECT_TRUE(stream->Finish().ok());
  });
  for (int i = 0; i < 20 || answers < 20; ++i) {
    v1::PredictResponse response;
    const grpc::Status status = Predict(Request(), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    ExpectManaged();
  }
}

}  // namespace
}  // namespace perceptrond::testing
