// Messages of a few kilobytes that would take half a minute of a processor: they end with their
// calls, and the server serves, is managed, and stops meanwhile.
#include <atomic>
#include <chrono>
#include <optional>
#include <random>
#include <thread>

#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr int kSlowCalls = 5;
// For a call that others do not delay. A slow one takes several times as long.
constexpr seconds kSoon(20);

enum class Kind { kFourier, kPolynomial, kKernel };

v1::Model SettingsOf(Kind kind) {
  v1::Model settings;
  settings.mutable_feature_space()->mutable_named();
  v1::FeatureMap& map = *settings.mutable_feature_space()->mutable_map();
  if (kind == Kind::kFourier) {
    map.mutable_fourier()->set_dimension(1 << 20);
    map.mutable_fourier()->set_gamma(1);
  } else if (kind == Kind::kPolynomial) {
    map.mutable_polynomial()->set_degree(4);
  } else {
    settings.mutable_feature_space()->clear_map();
    settings.mutable_learner()->mutable_kernel_perceptron()->set_budget(5000);
  }
  return settings;
}

// `rows` rows of `features` of `names` names.
v1::ExampleColumns Rows(int rows, uint32_t features, uint32_t names) {
  std::mt19937 random(1);
  v1::ExampleColumns columns;
  for (uint32_t i = 0; i < names; ++i) {
    const std::string name = "n" + std::to_string(i);
    columns.mutable_feature_names()->mutable_text()->append(name);
    columns.mutable_feature_names()->add_lengths(static_cast<uint32_t>(name.size()));
  }
  for (int row = 0; row < rows; ++row) {
    const uint32_t step = names / features;
    for (uint32_t i = 0; i < features; ++i) columns.add_indices(i * step + random() % step);
    columns.add_row_ends(static_cast<uint32_t>(columns.indices_size()));
    columns.add_labels(random() % 2 == 0 ? 1 : -1);
  }
  return columns;
}

class SlowCallsTest : public ServerTest, public ::testing::WithParamInterface<Kind> {
 protected:
  // Without a limit to what a message costs.
  SlowCallsTest()
      : ServerTest({"--max-message-cost", "1000000000000000", "--drain-timeout", "1s"}) {
    Create("slow", SettingsOf(GetParam()));
    CreateDense("plain", 2);
    if (GetParam() == Kind::kKernel) {
      v1::LearnRequest request;
      request.set_model("models/slow");
      *request.mutable_columns() = Rows(10'000, 20, 200);
      EXPECT_TRUE(Learn(request).ok());
    }
  }
  ~SlowCallsTest() override { End(); }

  static v1::PredictRequest SlowRequest() {
    v1::PredictRequest request;
    request.set_model("models/slow");
    if (GetParam() == Kind::kFourier) *request.mutable_columns() = Rows(1, 700, 700);
    if (GetParam() == Kind::kPolynomial) *request.mutable_columns() = Rows(200, 60, 60);
    if (GetParam() == Kind::kKernel) *request.mutable_columns() = Rows(60'000, 20, 200);
    return request;
  }
  // Returns once the server has them all, or the time that they may take is over.
  void BeginSlowCalls(std::optional<seconds> time = std::nullopt) {
    for (int i = 0; i < kSlowCalls; ++i) {
      contexts_.push_back(std::make_unique<grpc::ClientContext>());
      threads_.emplace_back([this, i, time] {
        const v1::PredictRequest request = SlowRequest();
        v1::PredictResponse response;
        if (time) contexts_[i]->set_deadline(std::chrono::system_clock::now() + *time);
        statuses_[i] = predictions_->Predict(contexts_[i].get(), request, &response);
        ++ended_;
      });
    }
    while (StartedCalls(server_.metrics_port(), "Predict") < kSlowCalls && ended_ < kSlowCalls)
      std::this_thread::yield();
  }
  void Cancel() {
    for (const auto& context : contexts_) context->TryCancel();
  }
  void End() {
    Cancel();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  static void SetDeadline(grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() + kSoon);
  }
  // Calls of every kind are answered soon.
  void ExpectServed() {
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(CallRaw("/grpc.health.v1.Health/Check", {""}).ok());
      grpc::ClientContext get;
      SetDeadline(get);
      v1::GetModelRequest request;
      request.set_name("models/plain");
      v1::Model model;
      EXPECT_TRUE(models_->GetModel(&get, request, &model).ok());
      grpc::ClientContext create;
      SetDeadline(create);
      v1::CreateModelRequest another;
      another.set_model_id("another" + std::to_string(i));
      another.mutable_model()->mutable_feature_space()->mutable_dense()->set_dimension(2);
      EXPECT_TRUE(models_->CreateModel(&create, another, &model).ok());
      // More than a polling thread answers.
      grpc::ClientContext predict;
      SetDeadline(predict);
      v1::PredictRequest rows;
      rows.set_model("models/plain");
      rows.mutable_columns()->set_dense_width(2);
      for (int k = 0; k < 10'000; ++k) rows.mutable_columns()->add_values(1);
      v1::PredictResponse scores;
      EXPECT_TRUE(predictions_->Predict(&predict, rows, &scores).ok());
    }
  }

  std::vector<std::unique_ptr<grpc::ClientContext>> contexts_;
  std::vector<std::thread> threads_;
  grpc::Status statuses_[kSlowCalls];
  std::atomic<int> ended_ = 0;
};

TEST_P(SlowCallsTest, OthersAreServedMeanwhileAndThreadsAreFreeOnceTheyAreCancelled) {
  BeginSlowCalls();
  ExpectServed();
  End();
  for (const grpc::Status& status : statuses_)
    EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED) << status.error_message();
  // Such a call needs a thread that the slow ones had.
  grpc::ClientContext context;
  SetDeadline(context);
  v1::PredictRequest request;
  request.set_model("models/slow");
  *request.mutable_columns() = Rows(1, 1, 1);
  v1::PredictResponse response;
  const grpc::Status status = predictions_->Predict(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_P(SlowCallsTest, DeadlinesEndThem) {
  BeginSlowCalls(seconds(3));
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  for (const grpc::Status& status : statuses_)
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << status.error_message();
  ExpectServed();
}

TEST_P(SlowCallsTest, TheServerStopsSoonAfterItsDrainTimeout) {
  BeginSlowCalls();
  const auto began = steady_clock::now();
  EXPECT_EQ(server_.Terminate(), 0);
  EXPECT_LT(steady_clock::now() - began, kSoon);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  for (const grpc::Status& status : statuses_)
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
}

std::string KindName(const ::testing::TestParamInfo<Kind>& info) {
  const std::vector<std::string> names = {"Fourier", "Polynomial", "Kernel"};
  return names[static_cast<size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Each, SlowCallsTest,
                         ::testing::Values(Kind::kFourier, Kind::kPolynomial, Kind::kKernel),
                         KindName);

class CostTest : public ServerTest {};

TEST_F(CostTest, AMessageThatWouldHoldAThreadForLongIsRefusedOnEachPath) {
  Create("slow", SettingsOf(Kind::kFourier));
  v1::PredictRequest predict;
  predict.set_model("models/slow");
  *predict.mutable_columns() = Rows(1, 700, 700);
  v1::PredictResponse response;
  const grpc::Status status = Predict(predict, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Reason(status), "MESSAGE_TOO_COSTLY");
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("--max-message-cost"));
  v1::LearnRequest learn;
  learn.set_model("models/slow");
  *learn.mutable_columns() = predict.columns();
  EXPECT_EQ(Reason(Learn(learn)), "MESSAGE_TOO_COSTLY");
  // A stream goes on.
  RawLearnStream stream(*learning_, "slow");
  stream.Open();
  v1::LearnStreamRequest message;
  *message.mutable_columns() = predict.columns();
  EXPECT_EQ(Reason(stream.Ask(message).error()), "MESSAGE_TOO_COSTLY");
  *message.mutable_columns() = Rows(1, 1, 1);
  EXPECT_FALSE(stream.Ask(message).has_error());
  EXPECT_TRUE(stream.Finish().ok());
}

}  // namespace
}  // namespace perceptrond::testing
