// Eight streams learn one model at once while others predict, infer, explain, analyze, watch, list and
// scrape it: nothing is lost, and the convergence theorem holds for all of them together.
#include <atomic>
#include <cmath>
#include <random>
#include <thread>

#include "client/batch_builder.h"
#include "client/client.h"
#include "client/learn_stream.h"
#include "tests/integration/inference_fixture.h"

namespace perceptrond::testing {
namespace {

constexpr int kStreams = 8;
constexpr int kRows = 500;
constexpr int kPasses = 3;
constexpr int kDimension = 20;
// Points on either side of the plane x_0 = 0, at least kMargin away; none longer than
// sqrt(kDimension).
constexpr double kMargin = 0.05;

std::vector<client::Row> SeparableRows(int seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<client::Row> rows;
  while (rows.size() < kRows) {
    client::Row row;
    row.kind = client::RowKind::kDense;
    for (int i = 0; i < kDimension; ++i) row.values.push_back(uniform(random));
    row.label = row.values[0] > 0 ? 1 : -1;
    if (std::abs(row.values[0]) >= kMargin) rows.push_back(std::move(row));
  }
  return rows;
}

class ConcurrencyTest : public InferenceTest {
 protected:
  ConcurrencyTest() : client_(client::Client::Connect(server_.address())) {
    Create("shared",
           "feature_space { dense { dimension: 20 } } learner { bias_input: 0 } "
           "stored_examples { max_sample: 200 }");
    for (int i = 0; i < kStreams; ++i) sets_.push_back(SeparableRows(i));
    client::BatchBuilder batch;
    for (const client::Row& row : sets_[0]) EXPECT_TRUE(batch.Add(row).ok());
    batch.Build(&columns_);
  }

  // Stream i, on a connection of its own.
  void LearnPasses(int i) {
    client::LearnOptions options;
    options.rows_per_message = 1 + 13 * i;
    auto stream = client::LearnStream::Open(client::Client::Connect(server_.address()).connection(),
                                            "shared", options);
    ASSERT_TRUE(stream.ok()) << stream.status();
    for (int pass = 0; pass < kPasses; ++pass) {
      for (const client::Row& row : sets_[i]) ASSERT_TRUE((*stream)->Push(row).ok());
      ASSERT_TRUE((*stream)->MarkPass().ok());
    }
    const auto totals = (*stream)->Finish();
    ASSERT_TRUE(totals.ok()) << totals.status();
    updates_ += totals->updates;
    examples_ += totals->examples;
  }

 public:
  // Each of these uses the model once.
  void PredictAll() {
    const auto before = client_.Predict("shared", columns_);
    const auto after = client_.Predict("shared", columns_);
    ASSERT_TRUE(before.ok() && after.ok()) << before.status() << after.status();
    EXPECT_GE(after->revision(), before->revision());
  }
  void InferOne() {
    oip::ModelInferResponse response;
    EXPECT_EQ(Outcome(Infer(Ones("shared", kDimension), response)), "OK");
    EXPECT_EQ(Metadata("shared").name(), "shared");
  }
  void AnalyzeModel() {
    const auto result =
        client_.Analyze(FromText<v1::AnalyzeRequest>("model: 'models/shared'"),
                        [](const v1::AnalysisProgress& /*progress*/) { return true; });
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->analysis().separability(), v1::SEPARABILITY_SEPARABLE);
  }
  void WatchModel() {
    int reports = 0;
    int64_t last = 0;
    const auto status =
        client_.WatchModel("shared", absl::Milliseconds(50), [&](const v1::Model& model) {
          EXPECT_GE(model.revision(), last);
          last = model.revision();
          return ++reports < 1;
        });
    EXPECT_TRUE(status.ok()) << status;
  }
  void ReadMetricsAndPage() {
    const std::string root = " http://127.0.0.1:" + std::to_string(server_.metrics_port());
    std::string urls;
    for (const char* path :
         {"/metrics", "/", "/models/shared", "/api/models", "/api/models/shared"})
      urls += root + path;
    const CommandResult read = RunCommand("curl -sS --fail-early -f" + urls);
    // Without the output, which is long.
    ASSERT_EQ(read.exit_code, 0);
    ASSERT_NE(read.out.find("perceptrond_models 1"), std::string::npos);
    ASSERT_NE(read.out.find("\"name\":\"models/shared\""), std::string::npos);
  }
  void ReadModel() {
    v1::ExampleColumns few = columns_;
    few.mutable_values()->Truncate(10 * kDimension);
    few.mutable_labels()->Truncate(10);
    const auto explained = client_.Explain("shared", few);
    EXPECT_TRUE(explained.ok()) << explained.status();
    EXPECT_TRUE(client_.GetModel("shared", v1::MODEL_VIEW_LEARNING_CURVE).ok());
    EXPECT_TRUE(
        client_
            .ListStoredExamples("shared",
                                [](const v1::ListStoredExamplesResponse& /*page*/) { return true; })
            .ok());
    EXPECT_TRUE(client_.ListModels().ok());
    EXPECT_TRUE(client_.CheckHealth().ok());
  }

 protected:
  const client::Client client_;
  std::vector<std::vector<client::Row>> sets_;
  v1::ExampleColumns columns_;
  std::atomic<uint64_t> updates_ = 0;
  std::atomic<uint64_t> examples_ = 0;
};

TEST_F(ConcurrencyTest, EightStreamsKeepToTheBoundAndLoseNoCountWhileOthersUseTheModel) {
  // So that there is something to analyze from the start.
  const auto first = client_.Learn("shared", columns_);
  ASSERT_TRUE(first.ok()) << first.status();
  std::atomic<bool> done = false;
  std::vector<std::thread> others;
  for (void (ConcurrencyTest::*use)() :
       {&ConcurrencyTest::PredictAll, &ConcurrencyTest::InferOne, &ConcurrencyTest::AnalyzeModel,
        &ConcurrencyTest::WatchModel, &ConcurrencyTest::ReadMetricsAndPage,
        &ConcurrencyTest::ReadModel}) {
    others.emplace_back([&, use] {
      do (this->*use)();
      while (!done && !HasFailure());
    });
  }
  std::vector<std::thread> streams;
  for (int i = 0; i < kStreams; ++i) streams.emplace_back([&, i] { LearnPasses(i); });
  for (std::thread& stream : streams) stream.join();
  done = true;
  for (std::thread& other : others) other.join();

  const v1::Model model = Get("shared");
  EXPECT_EQ(examples_, kStreams * kPasses * kRows);
  EXPECT_EQ(model.report().examples(), examples_ + first->examples());
  EXPECT_EQ(model.report().updates(), updates_ + first->updates());
  EXPECT_EQ(static_cast<uint64_t>(model.revision()), model.report().updates());
  // The theorem, for all streams together.
  EXPECT_LE(static_cast<double>(model.report().updates()), kDimension / (kMargin * kMargin));
  EXPECT_GE(model.report().margin_ceiling(), kMargin);
  EXPECT_TRUE(model.report().has_analysis());
  // Not 0 where a sanitizer has reported anything of the server.
  EXPECT_EQ(server_.Terminate(), 0);
}

}  // namespace
}  // namespace perceptrond::testing
