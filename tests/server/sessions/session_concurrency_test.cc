// Eight learning sessions and two predicting ones on one model, without the transport, so that
// ThreadSanitizer sees every hand-over: nothing is lost, and the sessions together keep to the
// bound of one perceptron.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "core/journal/memory_journal.h"
#include "core/store/store.h"
#include "server/sessions/learn_session.h"
#include "server/sessions/predict_session.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

constexpr int kSessions = 8;
constexpr int kMessages = 60;
constexpr int kRows = 20;
constexpr int kWidth = 8;
constexpr double kMargin = 0.1;

// Rows on either side of the plane x_0 = 0, at least kMargin away; none longer than sqrt(kWidth).
v1::ExampleColumns Separable(std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  v1::ExampleColumns columns;
  columns.set_dense_width(kWidth);
  while (columns.labels_size() < kRows) {
    const float side = uniform(random);
    if (std::abs(side) < kMargin) continue;
    columns.add_labels(side > 0 ? 1 : -1);
    columns.add_values(side);
    for (int i = 1; i < kWidth; ++i) columns.add_values(uniform(random));
  }
  return columns;
}

// Learns kMessages, and returns the updates.
uint64_t LearnAll(Store& store, int seed) {
  auto session = std::make_shared<LearnSession>(store, StreamLimits{8, 1 << 20});
  Mutex mutex;
  int64_t results = 0;
  uint64_t updates = 0;
  session->OnReady([&] {
    MutexLock lock(&mutex);
    v1::LearnStreamResponse response;
    while (session->Poll(&response).has_response) {
      for (const v1::LearnResult& result : response.results()) {
        EXPECT_EQ(result.message_number(), results++);
        EXPECT_EQ(result.examples(), kRows);
        updates += result.updates();
      }
    }
  });
  std::mt19937 random(seed);
  const auto has_room = [&] { return !session->Poll(nullptr).Full(); };
  const auto is_idle = [&] { return session->Poll(nullptr).idle; };
  for (int i = 0; i < kMessages; ++i) {
    LearnSession::Request learn;
    v1::LearnStreamRequest& request = learn.message;
    if (i == 0) request.set_model("models/m");
    if (i == 0) request.mutable_producer()->set_id("p" + std::to_string(seed));
    *request.mutable_columns() = Separable(random);
    {
      MutexLock lock(&mutex);
      mutex.Await(absl::Condition(&has_room));
    }
    EXPECT_TRUE(session->Accept(learn, request.ByteSizeLong()).ok());
  }
  MutexLock lock(&mutex);
  mutex.Await(absl::Condition(&is_idle));
  EXPECT_EQ(results, kMessages);
  return updates;
}

TEST(SessionConcurrency, EightSessionsLoseNothingAndKeepToTheBoundWhileOthersPredict) {
  Store::Options options;
  options.snapshot_bytes = 4096;
  Store store(std::make_unique<MemoryJournal>(), options);
  v1::Model settings;
  settings.set_name("models/m");
  settings.mutable_feature_space()->mutable_dense()->set_dimension(kWidth);
  settings.mutable_learner()->set_bias_input(0);
  ASSERT_TRUE(store.Create(settings, "", false).ok());

  std::atomic<uint64_t> updates = 0;
  std::atomic<bool> done = false;
  std::vector<std::thread> learners;
  for (int i = 0; i < kSessions; ++i)
    learners.emplace_back([&, i] { updates += LearnAll(store, i); });
  std::vector<std::thread> predictors;
  for (int i = 0; i < 2; ++i) {
    predictors.emplace_back([&, i] {
      PredictSession session(store, StreamLimits());
      std::mt19937 random(100 + i);
      int64_t last = 0;
      while (!done) {
        PredictSession::Request predict;
        v1::PredictRequest& request = predict.message;
        request.set_model("models/m");
        *request.mutable_columns() = Separable(random);
        EXPECT_TRUE(session.Accept(predict, 1).ok());
        v1::PredictResponse response;
        EXPECT_TRUE(session.Poll(&response).has_response);
        EXPECT_EQ(response.scores_size(), kRows);
        EXPECT_GE(response.revision(), last);
        last = response.revision();
      }
    });
  }
  for (std::thread& learner : learners) learner.join();
  done = true;
  for (std::thread& predictor : predictors) predictor.join();

  const absl::StatusOr<ModelSummary> model = store.Get("models/m");
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->report.examples(), kSessions * kMessages * kRows);
  EXPECT_EQ(model->report.updates(), updates);
  EXPECT_LE(static_cast<double>(updates), kWidth / (kMargin * kMargin));
  EXPECT_GE(model->report.margin_ceiling(), kMargin);
}

}  // namespace
}  // namespace perceptrond
