// Many streams learn one model at once while others predict: nothing is lost, and the convergence
// theorem holds for all of them together.
#include <atomic>
#include <cmath>
#include <random>

#include "client/batch_builder.h"
#include "client/client.h"
#include "client/learn_stream.h"
#include "tests/integration/fixture.h"

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

class ConcurrencyTest : public ServerTest {};

TEST_F(ConcurrencyTest, EightStreamsTogetherKeepToTheBoundAndLoseNoCount) {
  v1::Model settings;
  settings.mutable_feature_space()->mutable_dense()->set_dimension(kDimension);
  settings.mutable_learner()->set_bias_input(0);
  Create("shared", settings);
  std::vector<std::vector<client::Row>> sets;
  for (int i = 0; i < kStreams; ++i) sets.push_back(SeparableRows(i, 1500));

  const client::Client client = client::Client::Connect(server_.address());
  std::atomic<uint64_t> updates = 0;
  std::atomic<uint64_t> examples = 0;
  std::atomic<bool> done = false;
  std::vector<std::thread> streams;
  for (int i = 0; i < kStreams; ++i) {
    streams.emplace_back([&, i] {
      client::LearnOptions options;
      options.rows_per_message = 1 + 13 * i;
      auto stream = client::LearnStream::Open(
          client::Client::Connect(server_.address()).connection(), "shared", options);
      ASSERT_TRUE(stream.ok()) << stream.status();
      for (int pass = 0; pass < 5; ++pass) {
        for (const client::Row& row : sets[i]) ASSERT_TRUE((*stream)->Push(row).ok());
        ASSERT_TRUE((*stream)->MarkPass().ok());
      }
      const auto totals = (*stream)->Finish();
      ASSERT_TRUE(totals.ok()) << totals.status();
      updates += totals->updates;
      examples += totals->examples;
    });
  }
  std::thread predictor([&] {
    int64_t last = 0;
    client::BatchBuilder batch;
    for (const client::Row& row : sets[0]) ASSERT_TRUE(batch.Add(row).ok());
    v1::ExampleColumns columns;
    batch.Build(&columns);
    while (!done) {
      const auto answer = client.Predict("shared", columns);
      ASSERT_TRUE(answer.ok()) << answer.status();
      EXPECT_GE(answer->revision(), last);
      last = answer->revision();
    }
  });
  for (std::thread& stream : streams) stream.join();
  done = true;
  predictor.join();

  const v1::Model model = Get("shared");
  EXPECT_EQ(examples, kStreams * 5 * 1500);
  EXPECT_EQ(model.report().examples(), examples);
  EXPECT_EQ(model.report().updates(), updates);
  EXPECT_EQ(static_cast<uint64_t>(model.revision()), updates);
  // The theorem, for the whole fleet of streams.
  EXPECT_LE(static_cast<double>(updates), SquaredRadius(sets) / (kMargin * kMargin));
  EXPECT_GE(model.report().margin_ceiling(), kMargin);
  // Not 0 where a sanitizer has reported anything of the server.
  EXPECT_EQ(server_.Terminate(), 0);
}

}  // namespace
}  // namespace perceptrond::testing
