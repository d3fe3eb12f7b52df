// Every rule against its paper on real data: the same updates in the same order, the same weights
// to float32 precision; and the bounds its paper proves.
#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "core/learner/catalogue.h"
#include "gtest/gtest.h"
#include "tests/support/learners.h"
#include "tests/support/models.h"
#include "tests/support/paper_rules.h"
#include "tests/support/shared_data.h"

namespace perceptrond::rules_test {
namespace {

using testing::Columns;
using testing::DenseSettings;
using testing::LoneModel;
using testing::Of;
using testing::Paper;
using testing::PaperRule;
using testing::SvmData;
using testing::SvmExample;
using testing::Vector;
namespace v1 = ::perceptron::v1;

// The list's, of those that answer with one vector of weights, and some with other settings.
std::vector<PaperRule> Rules() {
  std::vector<PaperRule> rules = {
      {"margin-perceptron", Of<testing::PaperAlma>(0.6),
       [](v1::Learner& learner) { testing::SetNumber(learner, "margin_slack", 0.6); }},
      {"passive-aggressive-i", Of<testing::PaperPassiveAggressive>(1, 0.02),
       [](v1::Learner& learner) { testing::SetNumber(learner, "aggressiveness", 0.02); }},
      {"passive-aggressive-ii", Of<testing::PaperPassiveAggressive>(2, 0.5),
       [](v1::Learner& learner) { testing::SetNumber(learner, "aggressiveness", 0.5); }},
      {"arow", Of<testing::PaperArow>(10.0),
       [](v1::Learner& learner) { testing::SetNumber(learner, "regularization", 10); }},
      {"logistic-regression", Of<testing::PaperLogistic>(0.02),
       [](v1::Learner& learner) { testing::SetNumber(learner, "step_size", 0.02); }},
      {"logistic-regression/decreasing", Of<testing::PaperZinkevich>(0.2),
       [](v1::Learner& learner) { testing::SetNumber(learner, "step_size", 0.2); }},
      {"logistic-regression/adaptive", Of<testing::PaperAdaGrad>(0.05),
       [](v1::Learner& learner) { testing::SetNumber(learner, "step_size", 0.05); }},
      {"batch-perceptron", Of<testing::PaperBatch>(uint64_t{7}),
       [](v1::Learner& learner) { testing::SetCount(learner, "mini_batch", 7); }},
      {"pocket-perceptron", Of<testing::PaperRatchet>(size_t{60}),
       [](v1::Learner& learner) { testing::SetCount(learner, "ratchet_examples", 60); }},
  };
  for (PaperRule& rule : testing::PaperRules()) {
    if (FindLearner(rule.learner)->form == Form::kLinear) rules.push_back(std::move(rule));
  }
  return rules;
}

// A wrapped rule is made of two papers: the wrapper's, over whichever rule, and the rule's own.
TEST(Catalogue, HasAPaperOfTheRuleAndOfTheWrapperOfEachEntry) {
  const std::vector<PaperRule> papers = testing::PaperRules();
  const auto has_paper = [&papers](auto&& matches) {
    return std::any_of(papers.begin(), papers.end(), [&](const PaperRule& paper) {
      return matches(*FindLearner(paper.learner));
    });
  };
  for (const CatalogueEntry& entry : Catalogue()) {
    // Its members have theirs; weighted_majority_test.cc has the vote's.
    if (entry.rule == RuleKind::kAuto) continue;
    EXPECT_TRUE(has_paper([&](const CatalogueEntry& paper) {
      return paper.rule == entry.rule && paper.wrapper == WrapperKind::kNone;
    })) << entry.name
        << ": give its rule a line in tests/support/paper_rules.h";
    EXPECT_TRUE(has_paper([&](const CatalogueEntry& paper) {
      return paper.wrapper == entry.wrapper;
    })) << entry.name
        << ": give its wrapper a line in tests/support/paper_rules.h";
  }
}

v1::Model Settings(const PaperRule& rule, uint32_t dimension, bool offset) {
  v1::Model settings = DenseSettings("rule", dimension);
  testing::SetLearner(*settings.mutable_learner(), rule.learner);
  settings.mutable_learner()->set_bias_input(offset ? 1 : 0);
  rule.settings(*settings.mutable_learner());
  return settings;
}

class RuleTest : public ::testing::TestWithParam<std::tuple<PaperRule, const char*, bool>> {};

TEST_P(RuleTest, DoesAsItsPaperSays) {
  const auto& [rule, file, offset] = GetParam();
  const auto path = testing::FindSharedData(file);
  if (!path) GTEST_SKIP() << file << " is not there: set PERCEPTROND_DATA";
  SvmData data = testing::ReadSvmlight(*path);
  if (data.examples.size() > 1500) data.examples.resize(1500);
  const std::unique_ptr<Paper> paper = rule.paper(data.dimension + (offset ? 1 : 0), offset);
  LoneModel lone(Settings(rule, data.dimension, offset));
  uint64_t mistakes = 0;
  for (const SvmExample& example : data.examples)
    mistakes += paper->Learn(Augmented(example, data.dimension, offset), example.label) ? 1 : 0;
  for (size_t at = 0; at < data.examples.size(); at += 97)
    lone.Learn(Columns(data.examples, at, at + 97).batch());
  paper->EndPass();
  lone.Learn(Batch(), 1);
  const ConvergenceReport report = MakeReport(*lone.model);
  // A margin that float32 and float64 round to different sides may make another update.
  EXPECT_NEAR(static_cast<double>(report.mistakes()), static_cast<double>(mistakes), 2);
  EXPECT_NEAR(static_cast<double>(report.updates()), static_cast<double>(paper->updates()), 2);
  const testing::Vector answer = paper->Answer();
  double largest = 0;
  for (const double weight : answer) largest = std::max(largest, std::abs(weight));
  const std::vector<float> weights = lone.Weights(data.dimension);
  for (uint32_t i = 0; i < data.dimension; ++i)
    ASSERT_NEAR(weights[i], answer[i], 2e-3 * largest) << "feature " << i;
  EXPECT_NEAR(lone.Offset(), offset ? answer.back() : 0, 2e-3 * largest);
}

INSTANTIATE_TEST_SUITE_P(Papers, RuleTest,
                         ::testing::Combine(::testing::ValuesIn(Rules()),
                                            ::testing::Values("agaricus.train", "mnist38.train",
                                                              "elec2.stream"),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           std::string name = testing::TestName(std::get<0>(info.param).learner);
                           name += "_" + std::to_string(info.index);
                           return name;
                         });

TEST(AveragedPerceptron, IsTheTextbooksAverageOnAnd) {
  v1::Model settings = DenseSettings("and", 2);
  settings.mutable_learner()->mutable_averaged();
  LoneModel lone(settings);
  Columns columns;
  columns.AddDense({0, 0}, -1).AddDense({0, 1}, -1).AddDense({1, 0}, -1).AddDense({1, 1}, 1);
  for (int64_t pass = 1; pass <= 9; ++pass) lone.Learn(columns.batch(), pass);
  EXPECT_EQ(MakeReport(*lone.model).examples(), 36U);
  EXPECT_NEAR(lone.Weights(2)[0], 25.0 / 12, 1e-6);
  EXPECT_NEAR(lone.Weights(2)[1], 4.0 / 3, 1e-6);
  EXPECT_NEAR(lone.Offset(), -23.0 / 9, 1e-6);
}

// Points of norm 1 that u separates with at least this margin.
Columns Separable(std::mt19937& random, size_t dimension, double margin, size_t count) {
  std::normal_distribution<float> normal;
  Columns columns;
  for (size_t n = 0; n < count;) {
    std::vector<float> x(dimension);
    double square = 0;
    for (float& value : x) square += std::pow(value = normal(random), 2);
    for (float& value : x) value = static_cast<float>(value / std::sqrt(square));
    // u is the first axis.
    if (std::abs(x[0]) < margin) continue;
    columns.AddDense(x, x[0] > 0 ? 1 : -1);
    ++n;
  }
  return columns;
}

// Learns until a pass changes nothing; the revision then.
uint64_t UpdatesToConverge(LoneModel& lone, const Columns& columns) {
  int64_t pass = 1;
  while (!lone.Learn(columns.batch(), pass).pass->converged()) {
    if (++pass > 20000) return UINT64_MAX;
  }
  return lone.model->revision();
}

TEST(MarginPerceptron, KeepsToItsBoundAndEndsWithItsMargin) {
  std::mt19937 random(7);
  for (const double alpha : {0.2, 0.5, 0.9}) {
    for (const double margin : {0.3, 0.1}) {
      const Columns columns = Separable(random, 5, margin, 60);
      v1::Model settings = DenseSettings("alma", 5);
      settings.mutable_learner()->mutable_margin_perceptron();
      testing::SetNumber(*settings.mutable_learner(), "margin_slack", alpha);
      settings.mutable_learner()->set_bias_input(0);
      LoneModel lone(settings);
      const auto updates = static_cast<double>(UpdatesToConverge(lone, columns));
      const double bound = 2 / (margin * margin) * std::pow(2 / alpha - 1, 2) + 8 / alpha - 4;
      EXPECT_LE(updates, bound) << "alpha " << alpha << ", margin " << margin;
      double attained = 1;
      const std::vector<float> distances = lone.Predict(columns.unlabelled()).distances;
      for (size_t i = 0; i < distances.size(); ++i)
        attained = std::min<double>(attained, distances[i] * columns.batch().labels[i]);
      EXPECT_GE(attained, (1 - alpha) * margin);
    }
  }
}

TEST(PassiveAggressive, MakesAtMostTheMistakesItsTheoremAllows) {
  std::mt19937 random(8);
  for (const double margin : {0.3, 0.1, 0.03}) {
    const Columns columns = Separable(random, 8, margin, 2000);
    v1::Model settings = DenseSettings("pa", 8);
    settings.mutable_learner()->mutable_passive_aggressive();
    settings.mutable_learner()->set_bias_input(0);
    LoneModel lone(settings);
    EXPECT_LE(static_cast<double>(lone.Learn(columns.batch()).mistakes), 1 / (margin * margin));
  }
}

TEST(Pocket, AnswersBetterThanThePerceptronItLearnsWithWhereNothingSeparates) {
  // One coordinate decides, but every tenth label is wrong.
  std::mt19937 random(9);
  std::normal_distribution<float> normal;
  Columns train;
  Columns test;
  for (int n = 0; n < 4000; ++n) {
    const std::vector<float> x = {normal(random), normal(random), normal(random)};
    const int32_t right = x[0] > 0 ? 1 : -1;
    if (n < 3000) {
      train.AddDense(x, random() % 10 == 0 ? -right : right);
    } else {
      test.AddDense(x, right);
    }
  }
  const auto errors = [&](const std::string& kind) {
    v1::Model settings = DenseSettings("noisy", 3);
    testing::SetLearner(*settings.mutable_learner(), kind);
    LoneModel lone(settings);
    lone.Learn(train.batch());
    const PredictOutcome outcome = lone.Predict(test.unlabelled());
    int wrong = 0;
    for (size_t i = 0; i < outcome.labels.size(); ++i)
      wrong += outcome.labels[i] != test.batch().labels[i] ? 1 : 0;
    return wrong;
  };
  const int perceptron = errors("perceptron");
  EXPECT_LT(errors("pocket-perceptron"), perceptron);
  EXPECT_LT(errors("averaged-perceptron"), perceptron);
}

TEST(LogisticRegression, ItsProbabilitiesAreThoseOfItsScores) {
  v1::Model settings = DenseSettings("soft", 1);
  settings.mutable_learner()->mutable_logistic_regression();
  LoneModel lone(settings);
  lone.Learn(Columns().AddDense({1}, 1).AddDense({-2}, -1).AddDense({0.5}, 1).batch());
  const PredictOutcome outcome =
      lone.Predict(Columns().AddDense({1}, 0).AddDense({-3}, 0).unlabelled());
  ASSERT_EQ(outcome.probabilities.size(), 2U);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_NEAR(outcome.probabilities[i], 1 / (1 + std::exp(-outcome.scores[i])), 1e-6);
}

TEST(LogisticRegression, AThresholdLeavesOutWhatIsNearlyCertain) {
  std::mt19937 random(10);
  const Columns columns = Separable(random, 4, 0.2, 2000);
  const auto updates = [&](double threshold) {
    v1::Model settings = DenseSettings("soft", 4);
    settings.mutable_learner()->mutable_logistic_regression();
    testing::SetNumber(*settings.mutable_learner(), "update_threshold", threshold);
    LoneModel lone(settings);
    lone.Learn(columns.batch());
    return lone.model->revision();
  };
  EXPECT_EQ(updates(0), 2000U);
  EXPECT_LT(updates(0.1), 1000U);
}

// The run, and fixed weights u that do well: their losses, the largest distances between the weights
// and u, and the sizes of the gradients, the bias last. From these both bounds follow.
struct OnlineRun {
  double regret = 0;
  double largest_distance = 0;
  double largest_difference = 0;
  double largest_gradient = 0;
  std::vector<double> squared_gradients;
};

OnlineRun RunWithSteps(const std::string& learner, double eta, const Columns& columns,
                       const Vector& u) {
  const uint32_t dimension = static_cast<uint32_t>(u.size()) - 1;
  v1::Model settings = DenseSettings("steps", dimension);
  testing::SetLearner(*settings.mutable_learner(), learner);
  testing::SetNumber(*settings.mutable_learner(), "step_size", eta);
  LoneModel lone(settings);
  OnlineRun run;
  run.squared_gradients.resize(u.size());
  const auto loss = [](double margin) { return std::log1p(std::exp(-margin)); };
  for (size_t n = 0; n < columns.batch().rows(); ++n) {
    const int32_t y = columns.batch().labels[n];
    Vector w(u.size());
    const std::vector<float> weights = lone.Weights(dimension);
    std::copy(weights.begin(), weights.end(), w.begin());
    w.back() = lone.Offset();
    const Row row = columns.batch().row(n);
    Vector x(row.values, row.values + row.size);
    x.push_back(1);
    const double margin = y * testing::Product(w, x);
    run.regret += loss(margin) - loss(y * testing::Product(u, x));
    double distance = 0;
    double gradient = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      distance += std::pow(w[i] - u[i], 2);
      run.largest_difference = std::max(run.largest_difference, std::abs(w[i] - u[i]));
      run.squared_gradients[i] += std::pow(x[i] / (1 + std::exp(margin)), 2);
      gradient += std::pow(x[i] / (1 + std::exp(margin)), 2);
    }
    run.largest_distance = std::max(run.largest_distance, std::sqrt(distance));
    run.largest_gradient = std::max(run.largest_gradient, std::sqrt(gradient));
    lone.Learn(Columns().AddDense({row.values, row.values + row.size}, y).batch());
  }
  return run;
}

TEST(LogisticRegression, DecreasingAndAdaptiveStepsKeepToTheirBoundsOnTheRegret) {
  constexpr double kExamples = 400;
  std::mt19937 random(12);
  const Columns columns = Separable(random, 4, 0.02, static_cast<size_t>(kExamples));
  const Vector u = {3, 0, 0, 0, 0};
  for (const double eta : {0.1, 1.0, 10.0}) {
    const OnlineRun run = RunWithSteps("logistic-regression/decreasing", eta, columns, u);
    EXPECT_LE(run.regret, (std::pow(run.largest_distance, 2) / (2 * eta) +
                           eta * std::pow(run.largest_gradient, 2)) *
                              std::sqrt(kExamples));
    const OnlineRun adaptive = RunWithSteps("logistic-regression/adaptive", eta, columns, u);
    double sum = 0;
    for (const double square : adaptive.squared_gradients) sum += std::sqrt(square);
    EXPECT_LE(adaptive.regret, (std::pow(adaptive.largest_difference, 2) / (2 * eta) + eta) * sum);
  }
}

// By the formulas of the API.
TEST(LogisticRegression, StepsShrinkByTheNumberOfUpdatesOrByTheGradientsOfTheFeature) {
  const auto weights = [](const std::string& learner) {
    v1::Model settings = DenseSettings("steps", 2);
    testing::SetLearner(*settings.mutable_learner(), learner);
    settings.mutable_learner()->set_bias_input(0);
    LoneModel lone(settings);
    lone.Learn(Columns().AddDense({1, 0}, 1).AddDense({0, 2}, 1).AddDense({0, 2}, -1).batch());
    return lone.Weights(2);
  };
  const auto sigmoid = [](double z) { return 1 / (1 + std::exp(-z)); };
  const std::vector<float> decreasing = weights("logistic-regression/decreasing");
  const double second = 2 * 0.5 / std::sqrt(2);
  EXPECT_NEAR(decreasing[0], 0.5, 1e-6);
  EXPECT_NEAR(decreasing[1], second - 2 * sigmoid(2 * second) / std::sqrt(3), 1e-6);
  const std::vector<float> adaptive = weights("logistic-regression/adaptive");
  // The first step of each is eta, whatever the gradient, which was 1 for the second feature.
  const double gradient = 2 * sigmoid(2);
  EXPECT_NEAR(adaptive[0], 1, 1e-6);
  EXPECT_NEAR(adaptive[1], 1 - gradient / std::sqrt(1 + gradient * gradient), 1e-6);
}

TEST(ClassWeights, ScaleTheStepsOfTheirClass) {
  v1::Model settings = DenseSettings("weighted", 1);
  settings.mutable_learner()->add_class_weights(1);
  settings.mutable_learner()->add_class_weights(5);
  LoneModel lone(settings);
  lone.Learn(Columns().AddDense({1}, 1).batch());
  EXPECT_EQ(lone.Weights(1)[0], 5);
  // No theorem speaks of weighted examples.
  EXPECT_FALSE(MakeReport(*lone.model).has_margin_ceiling());
}

TEST(ExampleWeights, ScaleTheStepAndEndTheTheorem) {
  LoneModel lone(DenseSettings("weighted", 1));
  const std::vector<float> weights = {1, 2.5F};
  const Columns columns = Columns().AddDense({1}, 1).AddDense({3}, -1);
  Batch batch = columns.batch();
  batch.weights = weights;
  lone.Learn(batch);
  EXPECT_EQ(lone.Weights(1)[0], 1 - 2.5F * 3);
  EXPECT_FALSE(MakeReport(*lone.model).has_margin_ceiling());
}

}  // namespace
}  // namespace perceptrond::rules_test
