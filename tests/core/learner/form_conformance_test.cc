// What every learner must do, under each of its settings: in whatever form the features come, and
// with weights.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "core/features/mapper.h"
#include "tests/core/learner/conformance.h"

namespace perceptrond::testing::form_conformance_test {
namespace {

class FormConformance : public LearnerConformance {};

TEST_P(FormConformance, DenseAndFullSparseRowsGiveTheSameBits) {
  const std::vector<SvmExample> examples = Noise(8, 100);
  const Columns sparse(examples);
  Columns dense;
  for (const SvmExample& example : examples) dense.AddDense(example.values, example.label);
  const std::unique_ptr<Learner> one = Make();
  const std::unique_ptr<Learner> other = Make();
  for (size_t i = 0; i < examples.size(); ++i) {
    EXPECT_EQ(BitsOf(ScoreOf(*one, sparse.batch().row(i))),
              BitsOf(ScoreOf(*other, dense.batch().row(i))));
    EXPECT_EQ(Learn(*one, sparse.batch().row(i), {examples[i].label, 1, i}),
              Learn(*other, dense.batch().row(i), {examples[i].label, 1, i}));
  }
  EXPECT_EQ(Bits(*one), Bits(*other));
}

TEST_P(FormConformance, ZerosLeftOutChangeNoUpdate) {
  // Small integers, steps and offsets of few bits: every sum is exact, in whatever order.
  std::mt19937 random(9);
  Columns sparse;
  Columns dense;
  std::vector<int32_t> labels;
  for (int n = 0; n < 200; ++n) {
    std::vector<uint32_t> indices;
    std::vector<float> values;
    std::vector<float> full(kDimension);
    for (uint32_t i = 0; i < kDimension; ++i) {
      const auto value = static_cast<float>(static_cast<int>(random() % 5) - 2);
      full[i] = value;
      if (value == 0) continue;
      indices.push_back(i);
      values.push_back(value);
    }
    labels.push_back(random() % 2 == 0 ? 1 : -1);
    sparse.Add(indices, values, labels.back());
    dense.AddDense(full, labels.back());
  }
  const std::unique_ptr<Learner> one = Make();
  const std::unique_ptr<Learner> other = Make();
  for (size_t i = 0; i < labels.size(); ++i) {
    const Row row = sparse.batch().row(i);
    const Row full = dense.batch().row(i);
    EXPECT_NEAR(ScoreOf(*one, row), ScoreOf(*other, full),
                1e-4 * (1 + std::abs(ScoreOf(*one, row))));
    EXPECT_EQ(Learn(*one, row, {labels[i], 1, i}), Learn(*other, full, {labels[i], 1, i}));
  }
  if (one->feature_weights() == nullptr) return;
  const Hypothesis a = one->feature_weights()->MakeHypothesis(0, labels.size());
  const Hypothesis b = other->feature_weights()->MakeHypothesis(0, labels.size());
  ASSERT_EQ(a.weights.size(), b.weights.size());
  for (size_t i = 0; i < a.weights.size(); ++i)
    EXPECT_NEAR(a.weights[i], b.weights[i], 1e-4 * (1 + std::abs(a.weights[i])));
  EXPECT_NEAR(a.bias, b.bias, 1e-4 * (1 + std::abs(a.bias)));
}

TEST_P(FormConformance, AbsentValuesAreOnes) {
  Columns written;
  written.Add({0, 3, 7}, {1, 1, 1}, 1);
  Batch absent = written.batch();
  absent.values = {};
  const std::unique_ptr<Learner> one = Make();
  const std::unique_ptr<Learner> other = Make();
  Learn(*one, written.batch().row(0), {1});
  Learn(*other, absent.row(0), {1});
  EXPECT_EQ(Bits(*one), Bits(*other));
  EXPECT_EQ(BitsOf(ScoreOf(*one, written.batch().row(0))), BitsOf(ScoreOf(*other, absent.row(0))));
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
    example.label = random() % 2 == 0 ? 1 : -1;
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

// Of learners that predict by one vector of weights.
class LinearConformance : public LearnerConformance {};

TEST_P(LinearConformance, TheNormIsThatOfTheWeights) {
  const std::unique_ptr<Learner> learner = Make();
  const Columns columns(Noise(12, 300));
  LearnAll(*learner, columns.batch());
  double squared = 0;
  for (const float weight : learner->feature_weights()->MakeHypothesis(0, 300).weights)
    squared += static_cast<double>(weight) * weight;
  EXPECT_NEAR(learner->predictor().squared_norm(300), squared, 1e-5 * squared);
}

TEST_P(LinearConformance, PredictedScoresAreThoseOfTheHypothesisItShows) {
  const std::unique_ptr<Learner> learner = Make();
  const Columns columns(Noise(14, 300));
  LearnAll(*learner, columns.batch());
  const Hypothesis shown = learner->feature_weights()->MakeHypothesis(0, 300);
  for (size_t i = 0; i < 40; ++i) {
    const Row row = columns.batch().row(i);
    double score = shown.bias;
    for (size_t j = 0; j < row.size; ++j)
      score += static_cast<double>(shown.weights[row.index(j)]) * row.value(j);
    EXPECT_NEAR(PredictedScore(*learner, row, 300), score, 1e-4 * (1 + std::abs(score)));
  }
}

// Of rules that take weights of examples.
class WeightConformance : public LearnerConformance {};

TEST_P(WeightConformance, AnExampleOfWeightTwoCountsAsMuchAsItsRuleSays) {
  const Columns columns(Noise(15, 60));
  const std::unique_ptr<Learner> learner = Make();
  LearnAll(*learner, columns.batch());
  const Row row = columns.batch().row(7);
  for (const int32_t label : {-1, 1}) {
    const Evaluation evaluation = learner->Evaluate(row, label);
    if (!evaluation.update) continue;
    std::vector<double> moved;
    for (const double weight : {1.0, 2.0}) {
      const std::unique_ptr<Learner> copy = Make();
      ASSERT_TRUE(copy->Restore(CopyOfState(*learner)));
      copy->Update(row, {label, weight, 60}, evaluation);
      moved.push_back(std::abs(ScoreOf(*copy, row) - evaluation.score));
    }
    // At least as far, and at most twice: passive steps end where the example is right.
    const double rounding = 1e-5 * (1 + std::abs(evaluation.score));
    EXPECT_GE(moved[1], moved[0] - rounding);
    EXPECT_LE(moved[1], 2 * moved[0] + rounding);
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, FormConformance,
                         ::testing::ValuesIn(BinarySettings([](const CatalogueEntry&) {
                           return true;
                         })),
                         BinarySettingName);
INSTANTIATE_TEST_SUITE_P(Catalogue, LinearConformance,
                         ::testing::ValuesIn(BinarySettings([](const CatalogueEntry& entry) {
                           return entry.form == Form::kLinear;
                         })),
                         BinarySettingName);
INSTANTIATE_TEST_SUITE_P(Catalogue, WeightConformance,
                         ::testing::ValuesIn(BinarySettings([](const CatalogueEntry& entry) {
                           return entry.takes_weights;
                         })),
                         BinarySettingName);

}  // namespace
}  // namespace perceptrond::testing::form_conformance_test
