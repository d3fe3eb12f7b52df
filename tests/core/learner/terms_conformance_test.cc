// Predictor::Terms of every learner: the scores can be computed from them alone.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "core/learner/kernel_perceptron.h"
#include "core/vector/kernels.h"
#include "tests/core/learner/conformance.h"

namespace perceptrond::testing::terms_conformance_test {
namespace {

constexpr uint32_t kDimension = 9;
constexpr double kNoScore = std::numeric_limits<double>::quiet_NaN();

// What perceptron.v1.ScoreTerm says.
class ScoresOfTerms {
 public:
  ScoresOfTerms(const LearnerSettings& settings, const Learner& learner, uint64_t age)
      : settings_(settings), kernel_(settings), terms_(learner.predictor().Terms(age)) {}

  std::vector<double> Scores(const Row& row, size_t count) const {
    std::vector<double> scores(count, begin());
    std::vector<double> votes(settings_.is_multiclass() ? count : 2);
    double all = 0;
    for (const ScoreTerm& term : terms_) {
      if (term.first_of_member) std::ranges::fill(scores, begin());
      Add(term, row, scores);
      if (!term.votes.has_value()) continue;
      all += *term.votes;
      Vote(scores, *term.votes, votes);
    }
    if (std::ranges::none_of(terms_, [](const ScoreTerm& term) { return term.votes.has_value(); }))
      return scores;
    if (!settings_.is_multiclass()) return {all > 0 ? (votes[1] - votes[0]) / all : 0};
    for (size_t k = 0; k < count; ++k)
      if (!std::isnan(scores[k])) scores[k] = all > 0 ? votes[k] / all : 0;
    return scores;
  }

 private:
  double begin() const { return settings_.is_multiclass() ? kNoScore : 0; }
  void Add(const ScoreTerm& term, const Row& row, std::vector<double>& scores) const {
    double& own = scores[term.score];
    if (std::isnan(own)) own = 0;
    const double moved = term.coefficient * (Product(term.vector, row) + term.bias);
    own += moved;
    if (term.rival.has_value()) scores[*term.rival] -= moved;
  }
  double Product(const Row& vector, const Row& row) const {
    double product = 0;
    for (size_t i = 0; i < vector.size; ++i)
      product += double{vector.value(i)} * row.value(vector.index(i));
    if (settings_.rule != RuleKind::kKernelPerceptron) return product;
    const double squared_norm = SquaredNorm(vector);
    kernel_.Apply(SquaredNorm(row), {&squared_norm, 1}, {&product, 1});
    return product;
  }
  void Vote(const std::vector<double>& scores, double vote, std::vector<double>& votes) const {
    const bool is_member = settings_.rule == RuleKind::kAuto;
    if (!settings_.is_multiclass()) {
      if (scores[0] == 0 && is_member) return;
      votes[PredictLabel(scores[0], settings_.tie_rule) > 0 ? 1 : 0] += vote;
      return;
    }
    const auto greatest = static_cast<size_t>(GreatestScore(scores));
    const auto is_greatest = [&](double score) { return score == scores[greatest]; };
    if (is_member && std::ranges::count_if(scores, is_greatest) > 1) return;
    votes[greatest] += vote;
  }

  const LearnerSettings settings_;
  const Kernel kernel_;
  const std::vector<ScoreTerm> terms_;
};

// Small whole numbers, so that scores tie, and labels at random.
std::vector<SvmExample> Examples(uint32_t seed, size_t count, uint32_t classes) {
  std::mt19937 random(seed);
  std::vector<SvmExample> examples(count);
  for (SvmExample& example : examples) {
    const auto label = static_cast<int>(random() % std::max(classes, 2U));
    example.label = classes == 0 ? 2 * label - 1 : label;
    for (uint32_t i = 0; i < kDimension; ++i) {
      example.indices.push_back(i);
      example.values.push_back(static_cast<float>(static_cast<int>(random() % 7) - 3));
    }
  }
  return examples;
}

void ExpectTheScores(const LearnerSettings& settings) {
  constexpr size_t kLearned = 150;
  const Columns learned(Examples(1, kLearned, settings.classes.max));
  const Columns asked(Examples(2, 100, settings.classes.max));
  const std::unique_ptr<Learner> learner = MakeLearner(settings, kDimension);
  LearnAll(*learner, learned.batch());
  // Right examples move averages and votes.
  constexpr uint64_t kAge = kLearned + 20;
  const ScoresOfTerms terms(settings, *learner, kAge);
  for (size_t i = 0; i < asked.batch().rows(); ++i) {
    const Row row = asked.batch().row(i);
    const std::vector<double> expected = PredictedScores(*learner, row, kAge);
    const std::vector<double> scores = terms.Scores(row, expected.size());
    for (size_t k = 0; k < expected.size(); ++k) {
      ASSERT_EQ(std::isnan(scores[k]), std::isnan(expected[k])) << i << " " << k;
      if (std::isnan(scores[k])) continue;
      ASSERT_NEAR(scores[k], expected[k], 1e-9 * (1 + std::abs(expected[k]))) << i << " " << k;
    }
  }
}

TEST(TermsConformance, MakeTheScoresOfEachLearner) {
  for (const CatalogueEntry& entry : Catalogue()) {
    for (const TieRule tie : {TieRule::kMistake, TieRule::kPositive}) {
      SCOPED_TRACE(entry.name);
      LearnerSettings settings = TightSettings(entry);
      settings.tie_rule = tie;
      settings.bias_input = 0.5;
      ExpectTheScores(settings);
    }
  }
}

TEST(TermsConformance, MakeTheScoresOfSeveralClassesThatMayAppearMidStream) {
  for (const CatalogueEntry& entry : Catalogue()) {
    if (!entry.has_classes()) continue;
    for (const uint32_t initial : {0U, 4U}) {
      SCOPED_TRACE(entry.name);
      LearnerSettings settings = TightSettings(entry);
      settings.classes = {4, initial, {}};
      ExpectTheScores(settings);
    }
  }
}

}  // namespace
}  // namespace perceptrond::testing::terms_conformance_test
