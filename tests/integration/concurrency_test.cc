// Eight streams learn one model at once while others predict, infer, explain, analyze, watch, list and
// scrape it: nothing is lost, and the convergence theorem holds for all of them together.
#include <atomic>
#include <cmath>
#include <functional>
#include <random>

#include "client/client.h"
#include "client/learn_stream.h"
#include "tests/integration/fixture.h"

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

class ConcurrencyTest : public ServerTest {
 protected:
  ConcurrencyTest() {
    Create("shared",
           "feature_space { dense { dimension: 20 } } learner { bias_input: 0 } "
           "stored_examples { max_sample: 200 }");
    for (int i = 0; i < kStreams; ++i) sets_.push_back(SeparableRows(i));
  }

  // Stream i, on a connection of its own.
  void LearnPasses(int i) {
    client::LearnOptions options;
    options.rows_per_message = 1 + 13 * i;
    auto stream =
        client::LearnStream::Open(client::MakeConnection(server_.address()), "shared", options);
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

  void WatchOnce() {
    grpc::ClientContext context;
    const auto watch =
        models_->WatchModel(&context, FromText<v1::WatchModelRequest>("name: 'models/shared'"));
    v1::WatchModelResponse response;
    EXPECT_TRUE(watch->Read(&response));
    context.TryCancel();
    (void)watch->Finish();
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
  void PredictTwice() {
    const std::string request = "model: 'models/shared' examples {}";
    const auto before = AnswerOf<v1::PredictResponse>("PredictionService/Predict", request);
    const auto after = AnswerOf<v1::PredictResponse>("PredictionService/Predict", request);
    EXPECT_GE(after.revision(), before.revision());
  }

  std::vector<std::vector<client::Row>> sets_;
  std::atomic<uint64_t> updates_ = 0;
  std::atomic<uint64_t> examples_ = 0;
};

TEST_F(ConcurrencyTest, EightStreamsKeepToTheBoundAndLoseNoCountWhileOthersUseTheModel) {
  // So that there is something to analyze from the start.
  Teach("shared", "examples { sparse { indices: 0 values: 0.5 } label: 1 }");
  const auto call = [this](const char* method, const std::string& request) {
    return [this, method, request] { EXPECT_EQ(Call(method, request), "OK") << method; };
  };
  const std::string named = "model: 'models/shared' ";
  const std::function<void()> uses[] = {
      [this] { PredictTwice(); },
      [this] { WatchOnce(); },
      [this] { ReadMetricsAndPage(); },
      call("AnalysisService/Analyze", named),
      call("AnalysisService/ListStoredExamples", named),
      call("PredictionService/Explain", named + "examples { sparse { indices: 0 values: 1 } }"),
      call("ModelService/GetModel", "name: 'models/shared' view: MODEL_VIEW_LEARNING_CURVE"),
      call("ModelService/ListModels", ""),
      call("inference.GRPCInferenceService/ModelMetadata", "name: 'shared'"),
      call("inference.GRPCInferenceService/ModelInfer",
           "model_name: 'shared' inputs { name: 'features' datatype: 'FP32' shape: [0, 20] }")};
  std::atomic<bool> done = false;
  std::vector<std::thread> others;
  for (const std::function<void()>& use : uses) {
    others.emplace_back([&] {
      do use();
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
  EXPECT_EQ(model.report().examples(), examples_ + 1);
  EXPECT_EQ(model.report().updates(), updates_ + 1);
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
