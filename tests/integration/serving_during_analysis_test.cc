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

constexpr uint32_t kDimension = 700;
constexpr int kRows = 2100;
constexpr int kCalls = 100;
// By how much the calls of one model may take longer than those of another at the same time, in milliseconds: one in
// ten, and the largest. A call that waits for the analysis takes many seconds.
constexpr double kP90Slack = 50;
constexpr double kMaxSlack = 5000;

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
  double P90() const { return all_[all_.size() * 9 / 10]; }
  double Max() const { return all_.back(); }

 private:
  // Ascending.
  std::vector<double> all_;
};

// Of one model.
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
    v1::LearnRequest rows = rows_;
    for (const char* id : {"m", "other"}) {
      Create(id, settings);
      rows.set_model(std::string("models/") + id);
      EXPECT_TRUE(Learn(rows).ok());
    }
  }

  // Random labels on random rows: nothing separates them, and the proof takes many seconds.
  static v1::LearnRequest RandomLabels() {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    v1::LearnRequest request;
    for (int n = 0; n < kRows; ++n) {
      v1::Example& example = *request.add_examples();
      example.set_label(random() % 2 == 0 ? 1 : -1);
      for (uint32_t i = 0; i < kDimension; ++i) example.mutable_dense()->add_values(normal(random));
    }
    return request;
  }

  // Predicts and then learns a row.
  void Serve(const std::string& id, int row, Served& served) {
    v1::PredictRequest predict;
    predict.set_model("models/" + id);
    *predict.add_examples() = rows_.examples(row);
    v1::LearnRequest learn;
    learn.set_model("models/" + id);
    *learn.add_examples() = rows_.examples(row);
    v1::PredictResponse answer;
    served.predictions.Measure([&] { EXPECT_TRUE(Predict(predict, &answer).ok()); });
    served.learning.Measure([&] { EXPECT_TRUE(Learn(learn).ok()); });
  }

  const v1::LearnRequest rows_;
};

void ExpectSimilar(const std::string& what, const Latencies& other, const Latencies& analyzed) {
  std::printf("%s: p90 %.2f ms and largest %.2f ms; of the analyzed model %.2f ms and %.2f ms\n",
              what.c_str(), other.P90(), other.Max(), analyzed.P90(), analyzed.Max());
  EXPECT_LT(analyzed.P90(), other.P90() + kP90Slack) << what;
  EXPECT_LT(analyzed.Max(), other.Max() + kMaxSlack) << what;
}

// The other model's calls show what the machine is busy with.
TEST_F(ServingDuringAnalysisTest, PredictionsAndLearningAreAnsweredAsSoonAsThoseOfAnotherModel) {
  std::atomic<bool> ended = false;
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
  Served analyzed;
  Served other;
  for (int row = 0; row < kCalls; ++row) {
    Serve("m", row, analyzed);
    Serve("other", row, other);
  }
  EXPECT_FALSE(ended) << "a call waited for the analysis, or it ended too soon to tell";
  context.TryCancel();
  reader.join();

  ExpectSimilar("predictions", other.predictions, analyzed.predictions);
  ExpectSimilar("learning", other.learning, analyzed.learning);
}

}  // namespace
}  // namespace perceptrond::testing
