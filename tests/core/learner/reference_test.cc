// Every learner beside the reference in float64 (tests/support/reference_learner.h), with two labels
// and several classes, on rows made here and on real data sets; and the figures that were measured on
// these sets.
#include "tests/support/reference_learner.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <random>

#include "core/learner/catalogue.h"
#include "gtest/gtest.h"
#include "tests/support/class_examples.h"
#include "tests/support/learners.h"
#include "tests/support/models.h"
#include "tests/support/separable.h"
#include "tests/support/shared_data.h"

namespace perceptrond::reference_test {
namespace {

using testing::Augmented;
using testing::Columns;
using testing::DenseSettings;
using testing::LoneModel;
using testing::ReferenceLearner;
using testing::SvmData;
using testing::SvmExample;
namespace v1 = ::perceptron::v1;

// A learner under settings that make each part of it work.
struct Rule {
  std::string learner;
  std::vector<std::pair<std::string, double>> numbers = {};
  std::vector<std::pair<std::string, uint32_t>> counts = {};
  std::string kernel = {};
  // Starts from weights.
  bool starts = false;
};

std::vector<Rule> Rules() {
  std::vector<Rule> rules = {
      {"perceptron", {{"step_size", 0.375}}},
      {.learner = "perceptron", .starts = true},
      {.learner = "pocket-perceptron", .starts = true},
      {"pocket-perceptron", {}, {{"ratchet_examples", 60}}},
      {"pocket-perceptron", {}, {{"ratchet_examples", 1000}}},
      {"voted-perceptron", {}, {{"budget", 15}}},
      {"margin-perceptron", {{"margin_slack", 0.6}}},
      {"passive-aggressive-i", {{"aggressiveness", 0.02}}},
      {"passive-aggressive-ii", {{"aggressiveness", 0.1}}},
      {"arow", {{"regularization", 10}}},
      {"logistic-regression", {{"step_size", 0.02}}},
      {"logistic-regression", {{"step_size", 0.1}, {"update_threshold", 0.25}}},
      {"logistic-regression/decreasing", {{"step_size", 0.2}}},
      {"averaged-logistic-regression/decreasing", {{"step_size", 0.2}}},
      {"logistic-regression/adaptive", {{"step_size", 0.05}}},
      {"batch-perceptron", {}, {{"mini_batch", 7}}},
      {"batch-perceptron", {{"step_size", 0.5}}, {{"mini_batch", 100}}},
      {"soft-confidence-weighted", {{"confidence", 0.9}, {"aggressiveness", 0.1}}},
  };
  for (const char* kernel :
       {"linear {}", "polynomial { degree: 3 coef0: 0.5 }", "rbf { gamma: 0.05 }"}) {
    for (const uint32_t budget : {1000, 40})
      rules.push_back({"kernel-perceptron", {}, {{"budget", budget}}, kernel});
  }
  rules.push_back({"kernel-perceptron", {}, {{"budget", 1}}, "polynomial {}"});
  // Each with its defaults, but for steps so long that rounding errors grow from row to row; the
  // learner auto has weighted_majority_test.cc.
  for (const CatalogueEntry& entry : Catalogue()) {
    if (entry.rule == RuleKind::kAuto || entry.form == Form::kKernel) continue;
    rules.push_back({entry.name});
    if (entry.rule == RuleKind::kLogisticRegression) rules.back().numbers = {{"step_size", 0.05}};
  }
  return rules;
}

// Examples of two labels (no classes) or of several classes.
struct Rows {
  const char* name;
  uint32_t classes;
  // Nothing where a data set is missing.
  std::function<std::optional<SvmData>()> make;
  // Classes appear with their first examples.
  bool appear = false;
};

SvmData Noisy(SvmData data, uint32_t classes) {
  for (size_t i = 0; i < data.examples.size(); i += 10) {
    int& label = data.examples[i].label;
    label = classes == 0 ? -label : (label + 1) % static_cast<int>(classes);
  }
  return data;
}

// Rows with few features of many, most of whose weights stay zero. The scores of whole numbers might be 0
// but for the order of a sum, and a rule goes on from either side.
SvmData Sparse() {
  constexpr uint32_t kDimension = 200;
  std::mt19937 random(23);
  std::uniform_real_distribution<float> value(1, 4);
  SvmData data{{}, kDimension};
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

std::function<std::optional<SvmData>()> Set(const char* file, bool classes, size_t most) {
  return [=]() -> std::optional<SvmData> {
    const auto path = testing::FindSharedData(file);
    if (!path) return std::nullopt;
    SvmData data = classes ? testing::ReadSvmlightClasses(*path) : testing::ReadSvmlight(*path);
    if (data.examples.size() > most) data.examples.resize(most);
    return data;
  };
}

std::vector<Rows> EachRows() {
  return {
      {"separable", 0,
       [] {
         return SvmData{testing::MakeSeparable(21, 800, 9, 0.05, 1).examples, 9};
       }},
      {"noisy", 0,
       [] {
         return Noisy({testing::MakeSeparable(22, 800, 9, 0.01, 1).examples, 9}, 0);
       }},
      {"sparse", 0, &Sparse},
      {"agaricus", 0, Set("agaricus.train", false, 1000)},
      {"mnist38", 0, Set("mnist38.train", false, 600)},
      {"elec2", 0, Set("elec2.stream", false, 1000)},
      {"two_classes", 2,
       [] {
         return Noisy({testing::DrawClasses(3, {2, 6, 800, 1, 0.01}), 6}, 2);
       }},
      {"five_classes", 5,
       [] {
         return Noisy({testing::DrawClasses(4, {5, 8, 1500, 1, 0.01}), 8}, 5);
       }},
      {"new_classes", 5,
       [] {
         return Noisy({testing::DrawClasses(5, {5, 8, 600, 1, 0.01}), 8}, 5);
       },
       true},
      {"digits", 10, Set("digits_mc.train", true, 2000)},
  };
}

v1::Model Settings(const Rule& rule, const Rows& rows, uint32_t dimension, double b) {
  v1::Model settings = DenseSettings("rule", dimension);
  v1::Learner& learner = *settings.mutable_learner();
  testing::SetLearner(learner, rule.learner);
  for (const auto& [name, value] : rule.numbers) testing::SetNumber(learner, name, value);
  for (const auto& [name, value] : rule.counts) testing::SetCount(learner, name, value);
  if (!rule.kernel.empty()) {
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        rule.kernel, learner.mutable_kernel_perceptron()->mutable_kernel()));
  }
  learner.set_bias_input(b);
  if (rows.classes > 0) learner.mutable_classes()->set_max_classes(rows.classes);
  if (rows.appear) learner.mutable_classes()->set_new_classes(v1::Classes::NEW_CLASSES_NUMBERED);
  if (rule.starts) {
    v1::WeightVector& start = testing::StartingVector(learner);
    for (const uint32_t i : {0, 2, 3}) {
      start.add_indices(i);
      start.add_values(static_cast<float>(i) - 1.5F);
    }
    if (b > 0) start.set_bias(-0.5);
  }
  return settings;
}

struct Case {
  Rule rule;
  Rows rows;
  double b;
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.rule.learner << " on " << one.rows.name << ", b = " << one.b;
}

class Reference : public ::testing::TestWithParam<Case> {};

TEST_P(Reference, LearnsAndPredictsAsTheProduct) {
  const auto& [rule, rows, b] = GetParam();
  const std::optional<SvmData> data = rows.make();
  if (!data.has_value()) GTEST_SKIP() << rows.name << " is not there: set PERCEPTROND_DATA";
  const v1::Model settings = Settings(rule, rows, data->dimension, b);
  const v1::Learner& learner = settings.learner();
  LoneModel lone(settings);
  ReferenceLearner reference(learner, data->dimension);
  uint64_t mistakes = 0;
  for (const SvmExample& example : data->examples) {
    const testing::Vector x = Augmented(example, data->dimension, b);
    mistakes += reference.Learn(x, example.label, 1).mistake ? 1 : 0;
  }
  reference.EndPass();
  // In messages of an odd size: where one ends must not matter.
  for (size_t at = 0; at < data->examples.size(); at += 97)
    lone.Learn(Columns(data->examples, at, at + 97).batch());
  lone.Learn(Batch(), 1);
  ASSERT_GT(mistakes, 2U) << "rows that teach nothing";
  const ConvergenceReport report = MakeReport(*lone.model);
  // A margin that float32 and float64 round to different sides may make another update.
  EXPECT_NEAR(static_cast<double>(report.mistakes()), static_cast<double>(mistakes), 2);
  EXPECT_NEAR(static_cast<double>(report.updates()), static_cast<double>(reference.updates()), 2);
  PredictOutcome outcome;
  ASSERT_OK(
      lone.model->Predict(Columns(data->examples).unlabelled(), {}, 0, outcome, rows.classes > 0));
  const std::vector<float>& scores = rows.classes > 0 ? outcome.class_scores : outcome.scores;
  const size_t width = std::max(rows.classes, 1U);
  ASSERT_EQ(scores.size(), width * data->examples.size());
  double largest = 0;
  double furthest = 0;
  for (size_t i = 0; i < data->examples.size(); i += 7) {
    double clearance = 0;
    const std::vector<double> expected =
        reference.PredictedScores(Augmented(data->examples[i], data->dimension, b), clearance);
    for (size_t k = 0; k < width; ++k) {
      largest = std::max(largest, std::abs(expected[k]));
      furthest = std::max(furthest, std::abs(expected[k] - scores[width * i + k]));
    }
  }
  // A vote may fall to the other side where a score is nearly 0.
  const bool votes = learner.has_voted();
  EXPECT_LE(furthest, (votes ? 0.02 : learner.has_kernel_perceptron() ? 1e-6 : 2e-3) * largest);
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const Rule& rule : Rules()) {
    const bool has_classes =
        FindLearner(rule.learner.substr(0, rule.learner.find('/')))->has_classes();
    for (const Rows& rows : EachRows()) {
      if (rows.classes > 0 && (!has_classes || rule.starts)) continue;
      for (const double b : {0.0, 1.0}) cases.push_back({rule, rows, b});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Rules, Reference, ::testing::ValuesIn(Cases()), [](const auto& info) {
  return testing::TestName(info.param.rule.learner) + "_" + info.param.rows.name + "_" +
         std::to_string(info.index);
});

// The tables of docs/learners.md, in percent: progressive in the first pass; held out and updates after one
// pass and after ten.
struct Documented {
  const char* learner;
  const char* set;
  uint32_t classes;
  double progressive;
  double held_out[2];
  uint64_t updates[2];
};

void PrintTo(const Documented& one, std::ostream* out) { *out << one.learner << " on " << one.set; }

class RealSet : public ::testing::TestWithParam<Documented> {};

// A score of 0 is wrong.
double HeldOutPercent(const LoneModel& lone, const std::vector<SvmExample>& examples,
                      bool classes) {
  const PredictOutcome outcome = lone.Predict(Columns(examples).unlabelled());
  double wrong = 0;
  for (size_t i = 0; i < examples.size(); ++i) {
    const int label = examples[i].label;
    const bool right =
        classes ? outcome.labels[i] == label : static_cast<float>(label) * outcome.scores[i] > 0;
    wrong += right ? 0 : 1;
  }
  return 100 * wrong / static_cast<double>(examples.size());
}

TEST_P(RealSet, HasTheFiguresOfTheDocument) {
  const Documented& documented = GetParam();
  const std::string set = documented.set;
  const bool classes = documented.classes > 0;
  const auto load = [&](const char* part) {
    return Set((set + part).c_str(), classes, SIZE_MAX)();
  };
  // A stream is in the order of time: its last fifth is held out of another model than the one that learns
  // all of it.
  const bool stream = set == "elec2";
  std::optional<SvmData> all = load(stream ? ".stream" : ".train");
  std::optional<SvmData> test = stream ? SvmData() : load(".test");
  if (!all || !test) GTEST_SKIP() << set << " is not there: set PERCEPTROND_DATA";
  const size_t learned = stream ? all->examples.size() * 4 / 5 : all->examples.size();
  if (stream) test->examples.assign(all->examples.begin() + learned, all->examples.end());
  v1::Model settings = DenseSettings("real", std::max(all->dimension, test->dimension));
  testing::SetLearner(*settings.mutable_learner(), documented.learner);
  if (classes) settings.mutable_learner()->mutable_classes()->set_max_classes(documented.classes);
  LoneModel whole(settings);
  LoneModel part(settings);
  const Columns columns(all->examples);
  const Columns first(all->examples, 0, learned);
  for (int64_t pass = 1; pass <= 10; ++pass) {
    const auto mistakes = static_cast<double>(whole.Learn(columns.batch(), pass).mistakes);
    part.Learn(first.batch(), pass);
    if (pass == 1) {
      EXPECT_NEAR(100 * mistakes / static_cast<double>(all->examples.size()),
                  documented.progressive, 0.005);
    }
    if (pass > 1 && pass < 10) continue;
    const int at = pass == 1 ? 0 : 1;
    EXPECT_EQ(whole.model->revision(), documented.updates[at]);
    EXPECT_NEAR(HeldOutPercent(part, test->examples, classes), documented.held_out[at], 0.005);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sets, RealSet,
    ::testing::Values(
        Documented{"perceptron", "sms_tfidf", 0, 6.62, {1.52, 1.52}, {295, 361}},
        Documented{"averaged-perceptron", "sms_tfidf", 0, 6.62, {1.88, 1.70}, {295, 361}},
        Documented{"passive-aggressive", "sms_tfidf", 0, 3.95, {1.88, 1.08}, {1456, 4474}},
        Documented{"arow", "sms_tfidf", 0, 3.05, {1.43, 1.43}, {2338, 8990}},
        Documented{"perceptron", "elec2", 0, 14.26, {25.18, 32.09}, {6461, 46125}},
        Documented{"averaged-perceptron", "elec2", 0, 14.26, {17.26, 20.16}, {6461, 46125}},
        Documented{"arow", "elec2", 0, 27.30, {25.41, 21.14}, {45056, 448612}},
        Documented{"perceptron", "digits_mc", 10, 18.02, {15.83, 13.89}, {259, 893}},
        Documented{"averaged-perceptron", "digits_mc", 10, 18.02, {14.17, 8.89}, {259, 893}},
        Documented{"passive-aggressive", "digits_mc", 10, 11.69, {12.78, 11.94}, {959, 3931}},
        Documented{"arow", "digits_mc", 10, 10.09, {12.22, 9.72}, {924, 4255}}));

}  // namespace
}  // namespace perceptrond::reference_test
