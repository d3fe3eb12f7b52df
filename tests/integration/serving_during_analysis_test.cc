// An analysis takes seconds of a processor; predictions and learning do not wait for it.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <random>
#include <thread>
#include <vector>

#include "perceptron/v1/analysis_service.grpc.pb.h"
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

constexpr uint32_t kDimension = 450;
constexpr int kRows = 1350;
constexpr size_t kCalls = 300;
// What a busy machine's scheduler and disk may add to a latency, in milliseconds: to one in a
// hundred, and to the largest. A call that waits for the analysis takes seconds.
constexpr double kP99Slack = 50;
constexpr double kMaxSlack = 1000;

// Latencies in milliseconds.
class Latencies {
 public:
  template <typename Call>
  void Measure(const Call& call) {
    const auto start = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    all_.insert(std::upper_bound(all_.begin(), all_.end(), took.count()), took.count());
  }
  size_t count() const { return all_.size(); }
  double P99() const { return all_[all_.size() * 99 / 100]; }
  double Max() const { return all_.back(); }

 private:
  // Ascending.
  std::vector<double> all_;
};

struct Served {
  Latencies predictions;
  Latencies learning;
};

class ServingDuringAnalysisTest : public ServerTest {
 protected:
  ServingDuringAnalysisTest() : rows_(RandomLabels()) {
    v1::Model settings;
    settings.mutable_feature_space()->mutable_dense()->set_dimension(kDimension);
    settings.mutable_stored_examples()->set_max_sample(100'000);
    Create("m", settings);
    EXPECT_TRUE(Learn(rows_).ok());
  }

  // Random labels on random rows: nothing separates them, and the proof takes seconds.
  static v1::LearnRequest RandomLabels() {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    v1::LearnRequest request;
    request.set_model("models/m");
    for (int n = 0; n < kRows; ++n) {
      v1::Example& example = *request.add_examples();
      example.set_label(random() % 2 == 0 ? 1 : -1);
      for (uint32_t i = 0; i < kDimension; ++i) example.mutable_dense()->add_values(normal(random));
    }
    return request;
  }

  // Predicts and then learns one row after the other, correct ones and mistakes, until `ended`; at
  // least one.
  Served Serve(const std::atomic<bool>& ended) {
    Served served;
    v1::PredictRequest predict;
    predict.set_model("models/m");
    predict.add_examples();
    v1::LearnRequest learn;
    learn.set_model("models/m");
    learn.add_examples();
    for (size_t call = 0; call < kCalls && (call == 0 || !ended); ++call) {
      *predict.mutable_examples(0) = rows_.examples(static_cast<int>(call));
      *learn.mutable_examples(0) = rows_.examples(static_cast<int>(call));
      v1::PredictResponse answer;
      served.predictions.Measure([&] { EXPECT_TRUE(Predict(predict, &answer).ok()); });
      served.learning.Measure([&] { EXPECT_TRUE(Learn(learn).ok()); });
    }
    return served;
  }

  const v1::LearnRequest rows_;
};

void ExpectSimilar(const std::string& what, const Latencies& quiet, const Latencies& busy) {
  std::printf("%s: p99 %.2f ms and largest %.2f ms; during the analysis %.2f ms and %.2f ms\n",
              what.c_str(), quiet.P99(), quiet.Max(), busy.P99(), busy.Max());
  EXPECT_LT(busy.P99(), quiet.P99() + kP99Slack) << what;
  EXPECT_LT(busy.Max(), quiet.Max() + kMaxSlack) << what;
}

TEST_F(ServingDuringAnalysisTest, PredictionsAndLearningAreAnsweredAsSoonAsWithoutAnAnalysis) {
  std::atomic<bool> ended = false;
  const Served quiet = Serve(ended);

  const auto analysis = v1::AnalysisService::NewStub(channel_);
  grpc::ClientContext context;
  v1::AnalyzeRequest request;
  request.set_model("models/m");
  const auto stream = analysis->Analyze(&context, request);
  v1::AnalyzeResponse response;
  // It is under way once it says that it solves.
  do {
    ASSERT_TRUE(stream->Read(&response));
    ASSERT_TRUE(response.has_progress()) << "it ended before it was seen under way";
  } while (response.progress().stage() <= v1::ANALYSIS_STAGE_WAITING);
  std::thread reader([&] {
    while (stream->Read(&response)) {
    }
    ended = true;
  });
  const Served busy = Serve(ended);
  context.TryCancel();
  reader.join();

  ExpectSimilar("predictions", quiet.predictions, busy.predictions);
  ExpectSimilar("learning", quiet.learning, busy.learning);
  EXPECT_GE(busy.predictions.count(), kCalls / 10) << "the analysis ended too soon to tell";
}

}  // namespace
}  // namespace perceptrond::testing
