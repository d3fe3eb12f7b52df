// The rules of several classes: against their papers, against the two-class rules that they must
// agree with, and within the bounds they are proven to keep.
#include <cmath>
#include <functional>
#include <memory>
#include <random>

#include "gtest/gtest.h"
#include "tests/support/learners.h"
#include "tests/support/models.h"
#include "tests/support/multiclass_papers.h"
#include "tests/support/shared_data.h"

namespace perceptrond::multiclass_rules_test {
namespace {

using testing::Columns;
using testing::DenseSettings;
using testing::LoneModel;
using testing::MulticlassPaper;
using testing::SvmExample;
using testing::Vector;
namespace v1 = ::perceptron::v1;

struct Rule {
  std::string kind;
  std::function<std::unique_ptr<MulticlassPaper>(size_t classes, size_t dimension)> paper;
  std::function<void(v1::Learner&)> settings = [](v1::Learner&) {};
};

template <typename P, typename... Args>
std::function<std::unique_ptr<MulticlassPaper>(size_t, size_t)> Of(Args... args) {
  return [=](size_t classes, size_t dimension) {
    return std::make_unique<P>(classes, dimension, args...);
  };
}

const Rule kRules[] = {
    {"perceptron", Of<testing::PaperMulticlassPerceptron>()},
    {"averaged-perceptron", Of<testing::PaperMulticlassAveraged>()},
    {"pocket-perceptron", Of<testing::PaperMulticlassPocket>(size_t{0})},
    {"pocket-perceptron", Of<testing::PaperMulticlassPocket>(size_t{40}),
     [](v1::Learner& learner) { testing::SetCount(learner, "ratchet_examples", 40); }},
    {"passive-aggressive", Of<testing::PaperMulticlassPassiveAggressive>(0, 1.0)},
    {"passive-aggressive-i", Of<testing::PaperMulticlassPassiveAggressive>(1, 0.02),
     [](v1::Learner& learner) { testing::SetNumber(learner, "aggressiveness", 0.02); }},
    {"passive-aggressive-ii", Of<testing::PaperMulticlassPassiveAggressive>(2, 0.5),
     [](v1::Learner& learner) { testing::SetNumber(learner, "aggressiveness", 0.5); }},
    {"arow", Of<testing::PaperMulticlassArow>(1.0)},
    {"arow", Of<testing::PaperMulticlassArow>(10.0),
     [](v1::Learner& learner) { testing::SetNumber(learner, "regularization", 10); }},
    {"margin-perceptron", Of<testing::PaperMulticlassAlma>(0.9)},
    {"margin-perceptron", Of<testing::PaperMulticlassAlma>(0.5),
     [](v1::Learner& learner) { testing::SetNumber(learner, "margin_slack", 0.5); }},
    {"batch-perceptron", Of<testing::PaperMulticlassBatch>(uint64_t{20}),
     [](v1::Learner& learner) { testing::SetCount(learner, "mini_batch", 20); }},
    {"soft-confidence-weighted", Of<testing::PaperMulticlassScw>(0.6744897501960817, 1.0)},
    {"soft-confidence-weighted", Of<testing::PaperMulticlassScw>(1.2815515655446004, 0.1),
     [](v1::Learner& learner) {
       testing::SetNumber(learner, "confidence", 0.9);
       testing::SetNumber(learner, "aggressiveness", 0.1);
     }},
    {"logistic-regression", Of<testing::PaperSoftmax>(0.05),
     [](v1::Learner& learner) { testing::SetNumber(learner, "step_size", 0.05); }},
    {"logistic-regression/decreasing", Of<testing::PaperSoftmaxZinkevich>(0.5),
     [](v1::Learner& learner) { testing::SetNumber(learner, "step_size", 0.5); }},
    {"logistic-regression/adaptive", Of<testing::PaperSoftmaxAdaGrad>(0.05),
     [](v1::Learner& learner) { testing::SetNumber(learner, "step_size", 0.05); }},
};

void PrintTo(const Rule& rule, std::ostream* out) { *out << testing::TestName(rule.kind); }

v1::Model Settings(const Rule& rule, uint32_t classes, uint32_t dimension, bool offset) {
  v1::Model settings = DenseSettings("rule", dimension);
  testing::SetLearner(*settings.mutable_learner(), rule.kind);
  settings.mutable_learner()->mutable_classes()->set_max_classes(classes);
  settings.mutable_learner()->set_bias_input(offset ? 1 : 0);
  rule.settings(*settings.mutable_learner());
  return settings;
}

// Points around one centre a class, close enough to be mistaken.
std::vector<SvmExample> Clouds(uint32_t seed, int classes, uint32_t dimension, size_t count,
                               float spread) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> centres(classes, std::vector<float>(dimension));
  for (auto& centre : centres) {
    for (float& value : centre) value = normal(random);
  }
  std::vector<SvmExample> examples(count);
  for (SvmExample& example : examples) {
    example.label = static_cast<int>(random() % static_cast<unsigned>(classes));
    for (uint32_t i = 0; i < dimension; ++i) {
      example.indices.push_back(i);
      example.values.push_back(centres[example.label][i] + spread * normal(random));
    }
  }
  return examples;
}

// Weights by class, zeros too; the offset last.
std::vector<Vector> AllWeights(const LoneModel& lone, uint32_t dimension) {
  std::vector<Vector> all;
  for (const WeightList& list : ListWeights(*lone.model)) {
    Vector& weights = all.emplace_back(dimension + 1);
    for (size_t i = 0; i < list.indices.size(); ++i) weights[list.indices[i]] = list.values[i];
    weights.back() = list.bias;
  }
  return all;
}

void ExpectAsThePaper(const Rule& rule, const std::vector<SvmExample>& examples, int classes,
                      uint32_t dimension, bool offset) {
  const std::unique_ptr<MulticlassPaper> paper = rule.paper(classes, dimension + (offset ? 1 : 0));
  LoneModel lone(Settings(rule, classes, dimension, offset));
  uint64_t mistakes = 0;
  for (const SvmExample& example : examples)
    mistakes += paper->Learn(Augmented(example, dimension, offset), example.label) ? 1 : 0;
  for (size_t at = 0; at < examples.size(); at += 97)
    lone.Learn(Columns(examples, at, at + 97).batch());
  const ConvergenceReport report = MakeReport(*lone.model);
  // A margin that float32 and float64 round to different sides may make another update.
  EXPECT_NEAR(static_cast<double>(report.mistakes()), static_cast<double>(mistakes), 2);
  EXPECT_NEAR(static_cast<double>(report.updates()), static_cast<double>(paper->updates()), 2);
  const std::vector<Vector> answer = paper->Answer();
  const std::vector<Vector> weights = AllWeights(lone, dimension);
  ASSERT_EQ(weights.size(), answer.size());
  double largest = 0;
  for (const Vector& one : answer) {
    for (const double weight : one) largest = std::max(largest, std::abs(weight));
  }
  for (size_t k = 0; k < answer.size(); ++k) {
    for (size_t i = 0; i < answer[k].size(); ++i)
      ASSERT_NEAR(weights[k][i], answer[k][i], 2e-3 * largest) << "class " << k << ", " << i;
  }
}

class MulticlassRule : public ::testing::TestWithParam<std::tuple<Rule, bool>> {};

TEST_P(MulticlassRule, DoesAsItsPaperSaysOnClouds) {
  const auto& [rule, offset] = GetParam();
  ExpectAsThePaper(rule, Clouds(1, 5, 8, 1500, 0.9F), 5, 8, offset);
}

TEST_P(MulticlassRule, DoesAsItsPaperSaysOnDigits) {
  const auto& [rule, offset] = GetParam();
  const auto path = testing::FindSharedData("digits_mc.train");
  if (!path) GTEST_SKIP() << "digits_mc.train is not there: set PERCEPTROND_DATA";
  const testing::SvmData data = testing::ReadSvmlightClasses(*path);
  ExpectAsThePaper(rule, data.examples, 10, data.dimension, offset);
}

INSTANTIATE_TEST_SUITE_P(Papers, MulticlassRule,
                         ::testing::Combine(::testing::ValuesIn(kRules), ::testing::Bool()),
                         [](const auto& info) {
                           std::string name = testing::TestName(std::get<0>(info.param).kind);
                           return name + "_" + std::to_string(info.index);
                         });

// Two classes, with labels 0 and 1, beside a two-class model with labels -1 and +1.
struct Twins {
  Twins(const std::string& kind, const std::function<void(v1::Learner&)>& several,
        const std::function<void(v1::Learner&)>& two)
      : classes(Settings({kind, nullptr, several}, 2, 6, true)), signs([&] {
          v1::Model settings = DenseSettings("two", 6);
          testing::SetLearner(*settings.mutable_learner(), kind);
          two(*settings.mutable_learner());
          return settings;
        }()) {
    for (SvmExample example : Clouds(3, 2, 6, 800, 1.5F)) {
      const LearnOutcome one = classes.Learn(Columns({example}).batch());
      example.label = example.label == 0 ? -1 : 1;
      const LearnOutcome other = signs.Learn(Columns({example}).batch());
      if (one.mistakes != other.mistakes || one.updated_rows != other.updated_rows) ++differ;
      updates += one.updated_rows.size();
    }
  }
  LoneModel classes;
  LoneModel signs;
  int differ = 0;
  size_t updates = 0;
};

// The two-class rule's w is factor x w_1, and w_0 = -w_1: then s_1 - s_0 = 2 s / factor has its
// sign.
void ExpectTwins(const std::string& kind, const std::function<void(v1::Learner&)>& several,
                 const std::function<void(v1::Learner&)>& two, double factor, double tolerance) {
  Twins twins(kind, several, two);
  EXPECT_GT(twins.updates, 50U);
  EXPECT_EQ(twins.differ, 0);
  const std::vector<Vector> weights = AllWeights(twins.classes, 6);
  const std::vector<float> signs = twins.signs.Weights(6);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(factor * weights[1][i], signs[i], tolerance * (1 + std::abs(signs[i])));
    EXPECT_NEAR(weights[0][i], -weights[1][i], tolerance * (1 + std::abs(signs[i])));
  }
  EXPECT_NEAR(factor * weights[1].back(), twins.signs.Offset(),
              tolerance * (1 + std::abs(twins.signs.Offset())));
}

TEST(TwoClasses, ThePerceptronIsTheTwoClassPerceptronToTheBit) {
  // w_1 moves as w does, and w_0 as -w: so the margin is 2 y s, of one sign with y s.
  const auto as_it_is = [](v1::Learner&) {};
  ExpectTwins("perceptron", as_it_is, as_it_is, 1, 0);
}

TEST(TwoClasses, TheAveragedPerceptronIsTheTwoClassOneToTheBit) {
  const auto as_it_is = [](v1::Learner&) {};
  ExpectTwins("averaged-perceptron", as_it_is, as_it_is, 1, 0);
}

TEST(TwoClasses, ThePocketIsTheTwoClassPocketToTheBit) {
  const auto as_it_is = [](v1::Learner&) {};
  ExpectTwins("pocket-perceptron", as_it_is, as_it_is, 1, 0);
}

TEST(TwoClasses, PassiveAggressiveIsTheTwoClassOneAtHalfTheScale) {
  // With w = 2 w_1: l is the same, and 2 t = 2 l / 2N = l / N.
  const auto as_it_is = [](v1::Learner&) {};
  ExpectTwins("passive-aggressive", as_it_is, as_it_is, 2, 1e-4);
}

TEST(TwoClasses, PassiveAggressiveIAndIIAreTheTwoClassOnesWithTwiceTheAggressiveness) {
  // 2 min(C, l / 2N) = min(2C, l / N), and 2 l / (2N + 1 / 2C) = l / (N + 1 / 4C).
  const auto c = [](v1::Learner& learner) { testing::SetNumber(learner, "aggressiveness", 0.1); };
  const auto twice = [](v1::Learner& learner) {
    testing::SetNumber(learner, "aggressiveness", 0.2);
  };
  ExpectTwins("passive-aggressive-i", c, twice, 2, 1e-4);
  ExpectTwins("passive-aggressive-ii", c, twice, 2, 1e-4);
}

TEST(TwoClasses, SoftmaxIsLogisticRegressionWithTwiceTheStep) {
  // P(1) = 1 / (1 + e^-(s_1 - s_0)) with s_1 - s_0 = 2 w_1 x; w = 2 w_1 moves by 2 eta.
  ExpectTwins(
      "logistic-regression",
      [](v1::Learner& learner) { testing::SetNumber(learner, "step_size", 0.1); },
      [](v1::Learner& learner) { testing::SetNumber(learner, "step_size", 0.2); }, 2, 1e-3);
}

TEST(MulticlassPerceptron, MakesAtMostTheUpdatesOfItsTheorem) {
  // Unit vectors that W = identity / sqrt(classes), of norm 1, separates with a known margin.
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const int classes : {3, 7}) {
    for (const double margin : {0.2, 0.05}) {
      Columns columns;
      for (int n = 0; n < 400;) {
        std::vector<float> x(classes);
        double square = 0;
        for (float& value : x) square += std::pow(value = normal(random), 2);
        for (float& value : x) value = static_cast<float>(value / std::sqrt(square));
        const auto best = std::max_element(x.begin(), x.end());
        std::vector<float> sorted = x;
        std::sort(sorted.rbegin(), sorted.rend());
        if ((sorted[0] - sorted[1]) / std::sqrt(classes) < margin) continue;
        columns.AddDense(x, static_cast<int32_t>(best - x.begin()));
        ++n;
      }
      LoneModel lone(Settings({"perceptron", nullptr}, classes, classes, false));
      int64_t pass = 1;
      while (!lone.Learn(columns.batch(), pass).pass->converged()) ASSERT_LT(++pass, 20000);
      EXPECT_LE(static_cast<double>(lone.model->revision()), 2 / (margin * margin));
      // And every example wins, by the margin that the pass reports.
      const ConvergenceReport report = MakeReport(*lone.model);
      ASSERT_TRUE(report.last_pass().has_margin());
      const PredictOutcome outcome = lone.Predict(columns.unlabelled());
      float least = 1;
      for (size_t i = 0; i < outcome.labels.size(); ++i) {
        EXPECT_EQ(outcome.labels[i], columns.batch().labels[i]);
        least = std::min(least, outcome.distances[i]);
      }
      EXPECT_NEAR(least, report.last_pass().margin(), 1e-6);
      EXPECT_EQ(report.state(), ::perceptron::v1::CONVERGENCE_STATE_CONVERGED);
    }
  }
}

// Three classes on a line: 30 right in a row, then noise. The pocket answers as it did before the
// noise, whatever the weights it learns with do; and a class that is added later has weights of
// zero in the pocket.
TEST(MulticlassPocket, AnswersWithTheWeightsThatHadTheLongestRun) {
  v1::Model settings = Settings({"pocket-perceptron", nullptr}, 4, 2, true);
  settings.mutable_learner()->mutable_classes()->set_new_classes(v1::Classes::NEW_CLASSES_NUMBERED);
  LoneModel lone(settings);
  Columns clean;
  for (int i = 0; i < 60; ++i) {
    const int label = i % 3;
    clean.AddDense(
        {static_cast<float>(label == 0 ? 1 : -1), static_cast<float>(label == 1 ? 1 : -1)}, label);
  }
  lone.Learn(clean.batch());
  const uint64_t learned = lone.model->revision();
  const std::vector<Vector> before = AllWeights(lone, 2);
  for (int i = 0; i < 12; ++i)
    lone.Learn(Columns().AddDense({1, static_cast<float>(i % 2)}, i % 4).batch());
  EXPECT_GT(lone.model->revision(), learned);
  const std::vector<Vector> after = AllWeights(lone, 2);
  ASSERT_EQ(after.size(), 4U);
  for (size_t k = 0; k < 3; ++k) EXPECT_EQ(after[k], before[k]);
  EXPECT_EQ(after[3], Vector(3));
  const PredictOutcome outcome = lone.Predict(clean.unlabelled());
  for (size_t i = 0; i < outcome.labels.size(); ++i)
    EXPECT_EQ(outcome.labels[i], clean.batch().labels[i]);
}

TEST(Softmax, ProbabilitiesAreThoseOfItsScoresAndAddUpToOne) {
  LoneModel lone(Settings({"logistic-regression", nullptr}, 4, 3, true));
  lone.Learn(Columns(Clouds(6, 4, 3, 300, 1)).batch());
  const Columns asked(Clouds(7, 4, 3, 50, 1));
  PredictOutcome outcome;
  ASSERT_OK(lone.model->Predict(asked.unlabelled(), {}, 0, outcome, true));
  ASSERT_EQ(outcome.class_scores.size(), 200U);
  ASSERT_EQ(outcome.class_probabilities.size(), 200U);
  for (size_t i = 0; i < 50; ++i) {
    double sum = 0;
    double exps = 0;
    for (size_t k = 0; k < 4; ++k) {
      sum += outcome.class_probabilities[4 * i + k];
      exps += std::exp(outcome.class_scores[4 * i + k]);
    }
    EXPECT_NEAR(sum, 1, 1e-6);
    const size_t winner = 4 * i + static_cast<size_t>(outcome.labels[i]);
    EXPECT_EQ(outcome.class_scores[winner], outcome.scores[i]);
    EXPECT_EQ(outcome.class_probabilities[winner], outcome.probabilities[i]);
    EXPECT_NEAR(outcome.probabilities[i], std::exp(outcome.scores[i]) / exps, 1e-5);
    for (size_t k = 0; k < 4; ++k)
      EXPECT_LE(outcome.class_scores[4 * i + k], outcome.class_scores[winner]);
  }
}

TEST(ClassWeights, ScaleTheStepsOfTheirClassAmongSeveral) {
  v1::Model settings = Settings({"perceptron", nullptr}, 3, 1, false);
  for (const double weight : {1.0, 4.0, 1.0}) settings.mutable_learner()->add_class_weights(weight);
  LoneModel lone(settings);
  lone.Learn(Columns().AddDense({1}, 1).batch());
  EXPECT_EQ(AllWeights(lone, 1), (std::vector<Vector>{{-4, 0}, {4, 0}, {0, 0}}));
}

}  // namespace
}  // namespace perceptrond::multiclass_rules_test
