// The voted perceptron of several classes against all of its hypotheses, kept as they were.
#include <cmath>
#include <random>
#include <vector>

#include "core/learner/score_vectors.h"
#include "tests/core/learner/conformance.h"

namespace perceptrond::testing {
namespace {

constexpr uint32_t kDimension = 6;
constexpr uint32_t kClasses = 4;

Columns Clouds(uint32_t seed, size_t count) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Columns columns;
  for (size_t n = 0; n < count; ++n) {
    const auto label = static_cast<int32_t>(random() % kClasses);
    std::vector<float> x(kDimension);
    for (float& value : x) value = normal(random);
    x[static_cast<size_t>(label)] += 1.5F;
    columns.AddDense(x, label);
  }
  return columns;
}

// The label that a learner's newest weights predict; -1: none.
int32_t Predicted(const Learner& learner, const Row& row) {
  const ScoreVectors& vectors = *VectorsOf(learner);
  std::vector<double> scores(vectors.count());
  vectors.Scores(row, scores);
  return vectors.decision().Label(scores);
}

std::unique_ptr<Learner> MakeVoted(uint32_t budget, uint32_t initial) {
  LearnerSettings settings;
  settings.wrapper = WrapperKind::kVoted;
  settings.budget = budget;
  settings.classes = {kClasses, initial, {}};
  return MakeLearner(settings, kDimension);
}

TEST(VotedClasses, EveryHypothesisVotesForItsClassAsOftenAsItSurvived) {
  const Columns data = Clouds(1, 200);
  const Columns asked = Clouds(2, 40);
  const Batch batch = data.batch();
  for (const uint32_t initial : {0U, kClasses}) {
    const std::unique_ptr<Learner> learner = MakeVoted(1000, initial);
    std::vector<std::vector<double>> votes(40, std::vector<double>(kClasses));
    for (size_t i = 0; i < batch.rows(); ++i) {
      // The newest weights survive example i if they are not changed by it.
      const bool updated = Learn(*learner, batch.row(i), {batch.labels[i], 1, i});
      static_cast<void>(updated);
      for (size_t j = 0; j < 40; ++j) {
        const int32_t label = Predicted(*learner, asked.batch().row(j));
        // An update made at example i counts from there on.
        if (label >= 0) votes[j][static_cast<size_t>(label)] += 1;
      }
    }
    for (size_t j = 0; j < 40; ++j) {
      double all = 0;
      for (const double vote : votes[j]) all += vote;
      const std::vector<double> shares =
          PredictedScores(*learner, asked.batch().row(j), batch.rows());
      ASSERT_EQ(shares.size(), kClasses);
      for (size_t k = 0; k < kClasses; ++k) EXPECT_NEAR(shares[k], votes[j][k] / all, 1e-12);
    }
  }
}

TEST(VotedClasses, BeyondTheBudgetTheLatestVote) {
  const Columns data = Clouds(3, 300);
  const Batch batch = data.batch();
  const std::unique_ptr<Learner> learner = MakeVoted(3, 0);
  const std::unique_ptr<Learner> other = MakeVoted(1000, 0);
  LearnAll(*learner, batch);
  LearnAll(*other, batch);
  EXPECT_EQ(learner->State().rows->size(), 3U);
  const Row row = batch.row(0);
  double all = 0;
  for (const double share : PredictedScores(*learner, row, 300)) all += share;
  EXPECT_NEAR(all, 1, 1e-12);
  EXPECT_NE(PredictedScores(*learner, row, 300), PredictedScores(*other, row, 300));
  // It learns the same.
  EXPECT_EQ(learner->augmented_squared_norm(), other->augmented_squared_norm());
}

}  // namespace
}  // namespace perceptrond::testing
