// Rollbacks to revisions of the rules whose answers move with right examples, against the definitions of
// their predictions: by all weights that there were, each with the examples it survived.
#include <array>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/store/model_history.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/store/store_fixture.h"
#include "tests/support/learners.h"
#include "tests/support/status.h"

namespace perceptrond::counted_rollback_test {
namespace {

using testing::Columns;
using ::testing::FloatEq;
using ::testing::Pointwise;
using testing::StoreTest;

constexpr char kName[] = "models/a";

// The last is the bias's.
using Vector = std::array<double, 3>;
double Dot(const Vector& w, const Vector& x) { return w[0] * x[0] + w[1] * x[1] + w[2] * x[2]; }

struct Example {
  Vector x;
  int label = 0;
};

// Most have the labels of a line through zero, none lies on it, and some are wrong.
std::vector<Example> MakeExamples(size_t count) {
  std::mt19937 random(7);
  std::vector<Example> examples;
  while (examples.size() < count) {
    const Vector x{static_cast<double>(random() % 21) - 10, static_cast<double>(random() % 21) - 10,
                   1};
    const double side = 2 * x[0] - x[1];
    if (side == 0) continue;
    const bool is_wrong = random() % 12 == 0;
    examples.push_back({x, (side > 0) != is_wrong ? 1 : -1});
  }
  return examples;
}

// The perceptron's weights after each example: integers, and so exact. For each revision those up to the
// example before the next update.
std::vector<std::vector<Vector>> RunPerceptron(const std::vector<Example>& examples) {
  std::vector<std::vector<Vector>> by_revision;
  std::vector<Vector> weights;
  Vector w{0, 0, 0};
  for (const Example& example : examples) {
    if (example.label * Dot(w, example.x) <= 0) {
      by_revision.push_back(weights);
      for (size_t i = 0; i < w.size(); ++i) w[i] += example.label * example.x[i];
    }
    weights.push_back(w);
  }
  by_revision.push_back(weights);
  return by_revision;
}

using Rule = std::function<double(const std::vector<Vector>& weights, const Vector& x)>;

double Average(const std::vector<Vector>& weights, const Vector& x) {
  double sum = 0;
  for (const Vector& w : weights) sum += Dot(w, x);
  return sum / static_cast<double>(weights.size());
}

double Vote(const std::vector<Vector>& weights, const Vector& x) {
  double sum = 0;
  for (const Vector& w : weights) sum += Dot(w, x) > 0 ? 1 : -1;
  return sum / static_cast<double>(weights.size());
}

// The weights with the longest run of examples after the one that made them; of equal runs the first.
double InPocket(const std::vector<Vector>& weights, const Vector& x) {
  Vector pocket{0, 0, 0};
  size_t longest = 0;
  size_t begin = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] != weights[begin]) begin = i;
    if (i - begin <= longest) continue;
    longest = i - begin;
    pocket = weights[i];
  }
  return Dot(pocket, x);
}

class CountedRollback : public StoreTest,
                        public ::testing::WithParamInterface<std::pair<std::string, Rule>> {
 protected:
  std::vector<float> Scores(const std::vector<Example>& asked) {
    Columns columns;
    for (const Example& one : asked) Add(one, columns);
    Batch batch = columns.batch();
    batch.labels = {};
    PredictOutcome outcome;
    EXPECT_OK(store_->Acquire(kName).value()->Predict(batch, {}, 0, outcome));
    return outcome.scores;
  }
  static void Add(const Example& example, Columns& columns) {
    columns.AddDense({static_cast<float>(example.x[0]), static_cast<float>(example.x[1])},
                     example.label);
  }
};

TEST_P(CountedRollback, ARevisionAnswersAsTheUpdateAfterItFoundIt) {
  testing::v1::Model settings = testing::DenseSettings(kName, 2);
  testing::SetLearner(*settings.mutable_learner(), GetParam().first);
  ASSERT_OK(store_->Create(settings, "", false).status());
  ASSERT_OK(ModelHistory(*store_).Keep(kName, "empty").status());
  const std::vector<Example> examples = MakeExamples(400);
  const std::vector<std::vector<Vector>> weights = RunPerceptron(examples);
  Columns all;
  for (const Example& one : examples) Add(one, all);
  const testing::Sent sent = testing::Send(*store_, kName, "p", all.batch());
  ASSERT_OK(sent.status);
  const size_t newest = weights.size() - 1;
  ASSERT_EQ(sent.outcome.revision, newest);
  const std::vector<Example> asked = {
      {{1, 7, 1}}, {{-9, 4, 1}}, {{3, 2, 1}}, {{5, 11, 1}}, {{-1, -1, 1}}};
  // The newest first: what it has counted since is in no record.
  for (size_t revision = newest; revision > 0; --revision) {
    ASSERT_OK(ModelHistory(*store_).RollBack(kName, {"", revision}, std::nullopt));
    std::vector<float> expected;
    for (const Example& one : asked)
      expected.push_back(static_cast<float>(GetParam().second(weights[revision], one.x)));
    EXPECT_THAT(Scores(asked), Pointwise(FloatEq(), expected)) << revision;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rules, CountedRollback,
    ::testing::Values(std::pair<std::string, Rule>("averaged-perceptron", Average),
                      std::pair<std::string, Rule>("voted-perceptron", Vote),
                      std::pair<std::string, Rule>("pocket-perceptron", InPocket)),
    [](const auto& info) { return testing::TestName(info.param.first); });

}  // namespace
}  // namespace perceptrond::counted_rollback_test
