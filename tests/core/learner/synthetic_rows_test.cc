// Every rule with two labels beside its paper, on rows that are made here: what the comparison on
// real data (rules_test.cc, rules_with_rows_test.cc) shows also where there is no such data.
#include <cmath>
#include <random>

#include "gtest/gtest.h"
#include "tests/support/learners.h"
#include "tests/support/models.h"
#include "tests/support/paper_rules.h"
#include "tests/support/separable.h"

namespace perceptrond {
namespace {

using testing::Augmented;
using testing::Columns;
using testing::LoneModel;
using testing::Paper;
using testing::PaperRule;
using testing::SvmData;
using testing::SvmExample;

// Dense rows that a hyperplane separates.
SvmData SeparableRows() { return {testing::MakeSeparable(21, 800, 9, 0.05, 1).examples, 9}; }

// The same with every tenth label wrong, so that updates go on.
SvmData NoisyRows() {
  SvmData data = {testing::MakeSeparable(22, 800, 9, 0.01, 1).examples, 9};
  for (size_t i = 0; i < data.examples.size(); i += 10) data.examples[i].label *= -1;
  return data;
}

// Rows with few features of many, most of whose weights stay zero. No whole numbers: their scores may
// be 0 but for the order of a sum, and a rule goes on from either side.
SvmData SparseRows() {
  constexpr uint32_t kDimension = 200;
  std::mt19937 random(23);
  std::uniform_real_distribution<float> value(1, 4);
  SvmData data;
  data.dimension = kDimension;
  for (int n = 0; n < 800; ++n) {
    SvmExample& example = data.examples.emplace_back();
    float sum = 0;
    for (uint32_t i = random() % 20; i < kDimension; i += 1 + random() % 40) {
      example.indices.push_back(i);
      example.values.push_back(value(random));
      sum += i % 2 == 0 ? example.values.back() : -example.values.back();
    }
    example.label = sum > 0 ? 1 : -1;
  }
  return data;
}

struct Rows {
  const char* name;
  SvmData (*make)();
};

using Combination = std::tuple<PaperRule, Rows, bool>;

class SyntheticRows : public ::testing::TestWithParam<Combination> {};

TEST_P(SyntheticRows, ARuleScoresAsItsPaperDoes) {
  const auto& [rule, rows, has_bias] = GetParam();
  const SvmData data = rows.make();
  testing::v1::Model settings = testing::DenseSettings("rule", data.dimension);
  testing::SetLearner(*settings.mutable_learner(), rule.learner);
  settings.mutable_learner()->set_bias_input(has_bias ? 1 : 0);
  rule.settings(*settings.mutable_learner());
  LoneModel lone(settings);
  const std::unique_ptr<Paper> paper = rule.paper(data.dimension + (has_bias ? 1 : 0), has_bias);
  uint64_t mistakes = 0;
  for (const SvmExample& example : data.examples)
    mistakes += paper->Learn(Augmented(example, data.dimension, has_bias), example.label) ? 1 : 0;
  paper->EndPass();
  const Columns columns(data.examples);
  lone.Learn(columns.batch(), 1);
  const ConvergenceReport report = MakeReport(*lone.model);
  ASSERT_GT(mistakes, 10U) << "rows that teach nothing";
  // A margin that float32 and float64 round to different sides may make another update.
  EXPECT_NEAR(static_cast<double>(report.mistakes()), static_cast<double>(mistakes), 2);
  EXPECT_NEAR(static_cast<double>(report.updates()), static_cast<double>(paper->updates()), 2);
  const std::vector<float> scores = lone.Predict(columns.unlabelled()).scores;
  const auto answers = paper->Answers();
  double largest = 0;
  double furthest = 0;
  for (size_t i = 0; i < scores.size(); i += 7) {
    const double answer = answers(Augmented(data.examples[i], data.dimension, has_bias));
    largest = std::max(largest, std::abs(answer));
    furthest = std::max(furthest, std::abs(answer - scores[i]));
  }
  // A vote may fall to the other side where a score is nearly 0.
  const bool votes = rule.learner == "voted-perceptron";
  EXPECT_LE(furthest, (votes ? 0.02 : 2e-3) * largest);
}

INSTANTIATE_TEST_SUITE_P(Papers, SyntheticRows,
                         ::testing::Combine(::testing::ValuesIn(testing::PaperRules()),
                                            ::testing::Values(Rows{"separable", &SeparableRows},
                                                              Rows{"noisy", &NoisyRows},
                                                              Rows{"sparse", &SparseRows}),
                                            ::testing::Bool()),
                         [](const auto& run) {
                           std::string name = testing::TestName(std::get<0>(run.param).learner);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name + "_" + std::get<1>(run.param).name + "_" +
                                  std::to_string(run.index);
                         });

}  // namespace
}  // namespace perceptrond
