// Every learner, under each of its settings, with two labels and with several classes: features in any
// form, weights, and scores written out as terms.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "core/features/mapper.h"
#include "core/learner/kernel_perceptron.h"
#include "core/learner/score_vectors.h"
#include "core/vector/kernels.h"
#include "tests/core/learner/conformance.h"

namespace perceptrond::testing::form_conformance_test {
namespace {

class FormConformance : public LearnerConformance {};

TEST_P(FormConformance, DenseAndFullSparseRowsGiveTheSameBits) {
  const std::vector<SvmExample> examples = Noise(8, 120);
  const Columns sparse(examples);
  Columns dense;
  for (const SvmExample& example : examples) dense.AddDense(example.values, example.label);
  const std::unique_ptr<Learner> one = Make();
  const std::unique_ptr<Learner> other = Make();
  EXPECT_EQ(LearnAll(*one, sparse.batch()), LearnAll(*other, dense.batch()));
  EXPECT_EQ(Bits(*one), Bits(*other));
  for (size_t i = 0; i < examples.size(); ++i) {
    EXPECT_EQ(BitsOf(PredictedScores(*one, sparse.batch().row(i), 120)),
              BitsOf(PredictedScores(*other, dense.batch().row(i), 120)));
  }
}

TEST_P(FormConformance, ZerosLeftOutChangeNoUpdate) {
  Columns sparse;
  Columns dense;
  for (const SvmExample& example : WholeNumbers(9, 200)) {
    std::vector<uint32_t> indices;
    std::vector<float> values;
    for (uint32_t i = 0; i < kDimension; ++i) {
      if (example.values[i] == 0) continue;
      indices.push_back(i);
      values.push_back(example.values[i]);
    }
    sparse.Add(indices, values, example.label);
    dense.AddDense(example.values, example.label);
  }
  const std::unique_ptr<Learner> one = Make();
  const std::unique_ptr<Learner> other = Make();
  for (size_t i = 0; i < 200; ++i) {
    const Row row = sparse.batch().row(i);
    const Row full = dense.batch().row(i);
    const int32_t label = dense.batch().labels[i];
    const std::vector<double> scores = PredictedScores(*one, row, i);
    const std::vector<double> full_scores = PredictedScores(*other, full, i);
    for (size_t k = 0; k < scores.size(); ++k) {
      if (std::isnan(scores[k])) continue;
      EXPECT_NEAR(scores[k], full_scores[k], 1e-4 * (1 + std::abs(scores[k])));
    }
    EXPECT_EQ(Learn(*one, row, {label, 1, i}), Learn(*other, full, {label, 1, i}));
  }
}

TEST_P(FormConformance, AbsentValuesAreOnes) {
  Columns written;
  written.Add({0, 3, 7}, {1, 1, 1}, 1);
  Batch absent = written.batch();
  absent.values = {};
  const std::unique_ptr<Learner> one = Make();
  const std::unique_ptr<Learner> other = Make();
  for (const int32_t label : Labels()) {
    Learn(*one, written.batch().row(0), {label});
    Learn(*other, absent.row(0), {label});
  }
  EXPECT_EQ(Bits(*one), Bits(*other));
  EXPECT_EQ(BitsOf(PredictedScores(*one, written.batch().row(0), 1)),
            BitsOf(PredictedScores(*other, absent.row(0), 1)));
}

// Learns named examples, all in one batch or each alone among other names, features in any order.
class NamedOrder {
 public:
  NamedOrder(const FeatureSpace& space, std::unique_ptr<Learner> learner)
      : space_(space), learner_(std::move(learner)) {}

  void Learn(const Batch& batch) {
    Mapper mapper(space_);
    ASSERT_FALSE(mapper.Begin(batch));
    for (size_t i = 0; i < batch.rows(); ++i) {
      mapper.Resolve(dictionary_);
      const Target target{batch.labels[i], 1, age_++};
      EndFullBatch(*learner_, target.age);
      if (!learner_->Evaluate(mapper.Map(i), target.label).update) continue;
      if (space_.kind == FeatureSpace::Kind::kNamed) {
        std::vector<absl::string_view> unknown;
        mapper.UnknownNames(i, unknown);
        for (const absl::string_view name : unknown) dictionary_.Add(name);
        learner_->Grow(dictionary_.size() + 1);
        mapper.Resolve(dictionary_);
      }
      const Row row = mapper.Map(i);
      learner_->Update(row, target, learner_->Evaluate(row, target.label));
    }
  }
  const Learner& learner() const { return *learner_; }

 private:
  const FeatureSpace space_;
  const std::unique_ptr<Learner> learner_;
  uint64_t age_ = 0;
  Dictionary dictionary_;
};

TEST_P(FormConformance, TheOrderFeaturesAreSentInIsIrrelevant) {
  std::mt19937 random(10);
  std::normal_distribution<float> normal;
  std::vector<NamedExample> examples(80);
  for (NamedExample& example : examples) {
    example.label = Label(random, static_cast<size_t>(&example - examples.data()), 80);
    for (int i = 0; i < 30; ++i) {
      if (random() % 3 == 0) example.features.emplace_back(absl::StrCat("f", i), normal(random));
    }
  }
  std::vector<NamedExample> shuffled = examples;
  for (NamedExample& example : shuffled)
    std::shuffle(example.features.begin(), example.features.end(), random);
  // 16 slots for 30 names: several share one. Room enough for the start's places in the named
  // space.
  for (const FeatureSpace& space : {FeatureSpace{FeatureSpace::Kind::kHashed, 16},
                                    FeatureSpace{FeatureSpace::Kind::kNamed, 100}}) {
    NamedOrder one(space, Make(16));
    NamedOrder other(space, Make(16));
    one.Learn(NamedColumns(examples).batch());
    for (const NamedExample& example : shuffled) {
      other.Learn(NamedColumns({example}, {"a name", "f", "f13x", "zzz"}).batch());
    }
    EXPECT_EQ(Bits(one.learner()), Bits(other.learner()));
  }
}

// Rules that take weights of examples.
class WeightConformance : public LearnerConformance {};

TEST_P(WeightConformance, AnExampleOfWeightTwoCountsAsMuchAsItsRuleSays) {
  const Columns columns(Noise(15, 60));
  const std::unique_ptr<Learner> learner = Make();
  LearnAll(*learner, columns.batch());
  const Row row = columns.batch().row(7);
  for (const int32_t label : Labels()) {
    const Evaluation evaluation = learner->Evaluate(row, label);
    if (!evaluation.update) continue;
    std::vector<double> moved;
    for (const double weight : {1.0, 2.0}) {
      const std::unique_ptr<Learner> copy = Make();
      ASSERT_TRUE(copy->Restore(CopyOfState(*learner)));
      copy->Update(row, {label, weight, 60}, evaluation);
      moved.push_back(std::abs(copy->Evaluate(row, label).score - evaluation.score));
    }
    // At least as far, and at most twice: passive steps end where the example is right.
    const double rounding = 1e-5 * (1 + std::abs(evaluation.score));
    EXPECT_GE(moved[1], moved[0] - rounding);
    EXPECT_LE(moved[1], 2 * moved[0] + rounding);
  }
}

// Scores as perceptron.v1.ScoreTerm defines them.
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
  double begin() const {
    return settings_.is_multiclass() ? std::numeric_limits<double>::quiet_NaN() : 0;
  }
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

// Predictor::Terms: the scores can be computed from them alone.
TEST_P(FormConformance, TheTermsMakeTheScores) {
  constexpr size_t kLearned = 150;
  const Columns learned(WholeNumbers(1, kLearned));
  const Columns asked(WholeNumbers(2, 100));
  const std::unique_ptr<Learner> learner = Make();
  LearnAll(*learner, learned.batch());
  // Right examples move averages and votes.
  constexpr uint64_t kAge = kLearned + 20;
  const ScoresOfTerms terms(Settings(), *learner, kAge);
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

INSTANTIATE_TEST_SUITE_P(Catalogue, FormConformance,
                         ::testing::ValuesIn(Conformers([](const Conformer&) { return true; })),
                         ConformerName);
INSTANTIATE_TEST_SUITE_P(Catalogue, WeightConformance,
                         ::testing::ValuesIn(Conformers([](const Conformer& one) {
                           return one.entry->takes_weights;
                         })),
                         ConformerName);

}  // namespace
}  // namespace perceptrond::testing::form_conformance_test
