// Many streams learn one model at once while others predict, analyze, watch and read it: nothing is
// lost, and the convergence theorem holds for all of them together.
#include <atomic>
#include <cmath>
#include <functional>
#include <random>
#include <thread>

#include "absl/strings/match.h"
#include "client/batch_builder.h"
#include "client/client.h"
#include "client/learn_stream.h"
#include "tests/integration/inference_fixture.h"

namespace perceptrond::testing {
namespace {

constexpr int kStreams = 8;
constexpr int kDimension = 20;

// Points that the separator `truth` (of norm 1, through the origin) has on the right side by at
// least kMargin.
constexpr double kMargin = 0.05;

std::vector<client::Row> SeparableRows(int seed, int count) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::mt19937 truth_random(99);
  std::vector<double> truth(kDimension);
  double norm = 0;
  for (double& weight : truth) {
    weight = normal(truth_random);
    norm += weight * weight;
  }
  for (double& weight : truth) weight /= std::sqrt(norm);
  std::vector<client::Row> rows;
  while (static_cast<int>(rows.size()) < count) {
    client::Row row;
    row.kind = client::RowKind::kDense;
    double score = 0;
    for (int i = 0; i < kDimension; ++i) {
      row.values.push_back(normal(random));
      score += truth[i] * row.values.back();
    }
    if (std::abs(score) < kMargin) continue;
    row.label = score > 0 ? 1 : -1;
    rows.push_back(std::move(row));
  }
  return rows;
}

double SquaredRadius(const std::vector<std::vector<client::Row>>& sets) {
  double largest = 0;
  for (const auto& set : sets) {
    for (const client::Row& row : set) {
      double norm = 0;
      for (const float value : row.values) norm += static_cast<double>(value) * value;
      largest = std::max(largest, norm);
    }
  }
  return largest;
}

class ConcurrencyTest : public InferenceTest {
 protected:
  ConcurrencyTest() : client_(client::Client::Connect(server_.address())) {
    v1::Model settings;
    settings.mutable_feature_space()->mutable_dense()->set_dimension(kDimension);
    settings.mutable_learner()->set_bias_input(0);
    settings.mutable_stored_examples()->set_max_sample(200);
    Create("shared", settings);
    for (int i = 0; i < kStreams; ++i) sets_.push_back(SeparableRows(i, kRows));
  }

  // Rows [begin, end) of the first stream.
  v1::ExampleColumns Columns(size_t begin, size_t end) const {
    client::BatchBuilder batch;
    for (size_t i = begin; i < end; ++i) EXPECT_TRUE(batch.Add(sets_[0][i]).ok());
    v1::ExampleColumns columns;
    batch.Build(&columns);
    return columns;
  }

  // Stream i, on a connection of its own, learns its rows pass by pass as long as `more` says so.
  void LearnPasses(int i, const std::function<bool(int pass)>& more) {
    client::LearnOptions options;
    options.rows_per_message = 1 + 13 * i;
    auto stream = client::LearnStream::Open(client::Client::Connect(server_.address()).connection(),
                                            "shared", options);
    ASSERT_TRUE(stream.ok()) << stream.status();
    for (int pass = 0; more(pass); ++pass) {
      for (const client::Row& row : sets_[i]) ASSERT_TRUE((*stream)->Push(row).ok());
      ASSERT_TRUE((*stream)->MarkPass().ok());
    }
    const auto totals = (*stream)->Finish();
    ASSERT_TRUE(totals.ok()) << totals.status();
    updates_ += totals->updates;
    examples_ += totals->examples;
  }
  // Returns once all eight streams have ended.
  void LearnOnAllStreams(const std::function<bool(int pass)>& more) {
    std::vector<std::thread> streams;
    for (int i = 0; i < kStreams; ++i) streams.emplace_back([&, i] { LearnPasses(i, more); });
    for (std::thread& stream : streams) stream.join();
  }

  // Each of these reads the model a number of times, or until a call fails.
  void AnalyzeModel(bool replace_weights) {
    v1::AnalyzeRequest request;
    request.set_model("models/shared");
    request.set_replace_weights(replace_weights);
    for (int round = 0; round < kRounds; ++round) {
      const auto result =
          client_.Analyze(request, [](const v1::AnalysisProgress& /*progress*/) { return true; });
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->analysis().separability(), v1::SEPARABILITY_SEPARABLE);
      EXPECT_EQ(result->has_new_revision(), replace_weights);
      if (replace_weights) ++replacements_;
    }
  }
  void WatchModel() {
    int reports = 0;
    int64_t last = 0;
    const auto status =
        client_.WatchModel("shared", absl::Milliseconds(50), [&](const v1::Model& model) {
          EXPECT_GE(model.revision(), last);
          last = model.revision();
          return ++reports < kRounds;
        });
    EXPECT_TRUE(status.ok()) << status;
  }
  void InferFromModel() {
    oip::ModelInferRequest request = Ones("shared", kDimension);
    for (int round = 0; round < 10 * kRounds; ++round) {
      oip::ModelInferResponse response;
      const grpc::Status status = Infer(request, response);
      ASSERT_TRUE(status.ok()) << status.error_message();
      ASSERT_EQ(Metadata("shared").name(), "shared");
    }
  }
  void ReadMetricsAndPage() {
    const std::string root = " http://127.0.0.1:" + std::to_string(server_.metrics_port());
    std::string urls;
    for (int times = 0; times < 10; ++times) {
      for (const char* path :
           {"/metrics", "/", "/models/shared", "/api/models", "/api/models/shared"})
        urls += root + path;
    }
    for (int round = 0; round < kRounds; ++round) {
      const CommandResult read = RunCommand("curl -sS --fail-early -f" + urls);
      // Without the output, which is long.
      ASSERT_EQ(read.exit_code, 0);
      ASSERT_TRUE(absl::StrContains(read.out, "perceptrond_models 1"));
      ASSERT_TRUE(absl::StrContains(read.out, "\"name\":\"models/shared\""));
    }
  }
  void ReadModel() {
    for (int round = 0; round < kRounds; ++round) {
      const auto explained = client_.Explain("shared", Columns(0, 10));
      ASSERT_TRUE(explained.ok()) << explained.status();
      const auto curve = client_.GetModel("shared", v1::MODEL_VIEW_LEARNING_CURVE);
      ASSERT_TRUE(curve.ok()) << curve.status();
      const absl::Status stored = client_.ListStoredExamples(
          "shared", [](const v1::ListStoredExamplesResponse& /*page*/) { return true; });
      ASSERT_TRUE(stored.ok()) << stored;
      ASSERT_TRUE(client_.ListModels().ok());
      ASSERT_TRUE(client_.CheckHealth().ok());
    }
  }

  static constexpr int kRows = 1500;
  static constexpr int kRounds = 5;
  const client::Client client_;
  std::vector<std::vector<client::Row>> sets_;
  std::atomic<uint64_t> updates_ = 0;
  std::atomic<uint64_t> examples_ = 0;
  std::atomic<uint64_t> replacements_ = 0;
};

TEST_F(ConcurrencyTest, EightStreamsTogetherKeepToTheBoundAndLoseNoCount) {
  constexpr int kPasses = 5;
  std::atomic<bool> done = false;
  std::thread predictor([&] {
    int64_t last = 0;
    const v1::ExampleColumns columns = Columns(0, kRows);
    while (!done) {
      const auto answer = client_.Predict("shared", columns);
      ASSERT_TRUE(answer.ok()) << answer.status();
      EXPECT_GE(answer->revision(), last);
      last = answer->revision();
    }
  });
  LearnOnAllStreams([](int pass) { return pass < kPasses; });
  done = true;
  predictor.join();

  const v1::Model model = Get("shared");
  EXPECT_EQ(examples_, kStreams * kPasses * kRows);
  EXPECT_EQ(model.report().examples(), examples_);
  EXPECT_EQ(model.report().updates(), updates_);
  EXPECT_EQ(static_cast<uint64_t>(model.revision()), updates_);
  // The theorem, for the whole fleet of streams.
  EXPECT_LE(static_cast<double>(updates_), SquaredRadius(sets_) / (kMargin * kMargin));
  EXPECT_GE(model.report().margin_ceiling(), kMargin);
  // Not 0 where a sanitizer has reported anything of the server.
  EXPECT_EQ(server_.Terminate(), 0);
}

TEST_F(ConcurrencyTest, EightStreamsLearnWhileOthersAnalyzeWatchInferScrapeAndOpenThePage) {
  // So that there is something to analyze from the start.
  const auto first = client_.Learn("shared", Columns(0, 100));
  ASSERT_TRUE(first.ok()) << first.status();
  std::atomic<bool> done = false;
  // The streams learn until each of the others has had its rounds.
  std::thread others([&] {
    std::vector<std::thread> readers;
    for (const bool replace_weights : {false, true})
      readers.emplace_back([&, replace_weights] { AnalyzeModel(replace_weights); });
    for (int i = 0; i < 2; ++i) {
      readers.emplace_back([&] { WatchModel(); });
      readers.emplace_back([&] { InferFromModel(); });
      readers.emplace_back([&] { ReadMetricsAndPage(); });
      readers.emplace_back([&] { ReadModel(); });
    }
    for (std::thread& reader : readers) reader.join();
    done = true;
  });
  LearnOnAllStreams([&](int /*pass*/) { return !done; });
  others.join();

  const v1::Model model = Get("shared");
  EXPECT_EQ(replacements_, kRounds);
  EXPECT_EQ(model.report().examples(), examples_ + first->examples());
  EXPECT_EQ(static_cast<uint64_t>(model.revision()), updates_ + first->updates() + replacements_);
  EXPECT_TRUE(model.report().has_analysis());
  EXPECT_EQ(server_.Terminate(), 0);
}

}  // namespace
}  // namespace perceptrond::testing
