// While the components of a composition learn on, each claim of its report is true of what they answer now, or absent.
#include <algorithm>
#include <cmath>
#include <random>

#include "core/model/model_analysis.h"
#include "gtest/gtest.h"
#include "tests/support/journal_decorator.h"
#include "tests/support/learners.h"
#include "tests/support/models.h"

namespace perceptrond {
namespace {

using testing::Columns;
using testing::DenseSettings;
using testing::Send;
using testing::SvmExample;
namespace v1 = ::perceptron::v1;

// In a list before its components, x and y.
constexpr char kName[] = "both";
constexpr double kMarginOfInterest = 1e-3;

// Two scores of two features are the features themselves in other coordinates, once they are
// independent; before, they are less.
class CompositionReport : public ::testing::TestWithParam<std::string> {
 protected:
  CompositionReport() {
    Open();
    for (const char* name : {"x", "y"}) {
      v1::Model component = DenseSettings(name, 2);
      testing::SetLearner(*component.mutable_learner(), GetParam());
      EXPECT_OK(store_->Create(component, "", false).status());
    }
    Compose();
  }

  void Compose() {
    v1::Model settings;
    settings.set_name(kName);
    settings.set_margin_of_interest(kMarginOfInterest);
    settings.mutable_stored_examples()->set_max_sample(1000);
    for (const char* name : {"x", "y"}) {
      auto& input = *settings.mutable_feature_space()->mutable_composition()->add_inputs();
      input.set_model(name);
      input.set_output(v1::FeatureSpace::Composition::OUTPUT_SCORE);
    }
    EXPECT_OK(store_->Create(settings, "", false).status());
  }

  void Open() {
    store_.reset();
    store_ = std::make_unique<Store>(std::make_unique<testing::JournalDecorator>(journal_),
                                     Store::Options());
  }
  ConvergenceReport Now() { return store_->Get(kName).value().report; }
  std::shared_ptr<Model> Both() { return store_->Acquire(kName).value(); }

  SvmExample Draw() {
    SvmExample example;
    example.indices = {0, 1};
    example.values = {uniform_(random_), uniform_(random_)};
    return example;
  }
  // So that both are of full rank in the end, and each its own.
  void Teach(const std::string& component, int count) {
    std::vector<SvmExample> examples;
    for (int i = 0; i < count; ++i) {
      SvmExample& example = examples.emplace_back(Draw());
      example.label = example.values[component == "x" ? 0 : 1] > 0.1F ? 1 : -1;
    }
    ASSERT_OK(Send(*store_, component, "teacher", Columns(examples).batch()).status);
  }
  void LearnNew(int count) {
    for (int i = 0; i < count; ++i) {
      SvmExample& example = seen_.emplace_back(Draw());
      float sum = 0;
      while (std::abs(sum) < 0.2F) {
        example.values = Draw().values;
        sum = example.values[0] + example.values[1];
      }
      example.label = sum > 0 ? 1 : -1;
    }
    const size_t begin = seen_.size() - static_cast<size_t>(count);
    ASSERT_OK(Send(*store_, kName, "p", Columns(seen_, begin, seen_.size()).batch()).status);
  }
  LearnOutcome Pass() {
    testing::Sent sent = Send(*store_, kName, "p", Columns(seen_).batch(), std::nullopt, ++passes_);
    EXPECT_OK(sent.status);
    if (sent.outcome.pass->converged()) passed_ = seen_.size();
    return std::move(sent.outcome);
  }
  // A pass over which a component learns.
  void PassAround(const std::string& component) {
    const size_t half = random_() % (seen_.size() + 1);
    ASSERT_OK(Send(*store_, kName, "p", Columns(seen_, 0, half).batch()).status);
    Teach(component, 30);
    const Columns rest(seen_, half, seen_.size());
    const testing::Sent sent = Send(*store_, kName, "p", rest.batch(), std::nullopt, ++passes_);
    ASSERT_OK(sent.status);
    if (sent.outcome.pass->converged()) passed_ = seen_.size();
  }
  void UntilConverged() {
    for (int i = 0; !Pass().pass->converged(); ++i) ASSERT_LT(i, 3000);
  }
  void AnalyzeBoth() {
    const std::shared_ptr<Model> model = Both();
    ASSERT_OK(AnalyzeModel(*model, {}, [](const ModelAnalysisProgress&) { return true; }).status());
    ASSERT_OK(store_->committer().Commit(model));
  }

  // The examples seen, as the components would answer to them now.
  std::vector<SvmExample> Answers() {
    std::vector<SvmExample> answers = seen_;
    for (size_t feature = 0; feature < 2; ++feature) {
      PredictOutcome outcome;
      EXPECT_OK(store_->Acquire(feature == 0 ? "x" : "y")
                    .value()
                    ->Predict(Columns(seen_).batch(), {}, 0, outcome));
      for (size_t i = 0; i < seen_.size(); ++i) answers[i].values[feature] = outcome.scores[i];
    }
    return answers;
  }
  // The analysis of the first `count` answers.
  Analysis Truth(size_t count) {
    const std::vector<SvmExample> answers = Answers();
    std::vector<LabelledRow> rows;
    for (size_t i = 0; i < count; ++i)
      rows.push_back({{answers[i].indices.data(), answers[i].values.data(), 2}, answers[i].label});
    return Analyze(rows, AnalysisOptions(), [](const AnalysisProgress&) { return true; });
  }
  size_t Wrong() {
    PredictOutcome outcome;
    EXPECT_OK(Both()->Predict(Columns(seen_).batch(), {}, 0, outcome));
    size_t wrong = 0;
    for (size_t i = 0; i < seen_.size(); ++i) wrong += outcome.labels[i] != seen_[i].label ? 1 : 0;
    return wrong;
  }
  // A floor is of what the latest pass without a change was over, and that was everything by then.
  void CheckClaims() {
    const ConvergenceReport report = Now();
    const Analysis truth = Truth(seen_.size());
    const bool separable = truth.separability == Separability::kSeparable;
    EXPECT_TRUE(report.state() != ::perceptron::v1::CONVERGENCE_STATE_CONVERGED || Wrong() == 0);
    EXPECT_FALSE(report.state() == ::perceptron::v1::CONVERGENCE_STATE_NOT_SEPARABLE && separable);
    EXPECT_FALSE(report.not_separable() && separable);
    EXPECT_FALSE(report.margin_refuted() && truth.margin_floor > kMarginOfInterest);
    EXPECT_GE((report.has_margin_ceiling() ? report.margin_ceiling() : INFINITY),
              truth.margin_floor * (1 - 1e-9));
    EXPECT_LE(report.margin_floor(), Truth(passed_).margin_ceiling * (1 + 1e-9));
    EXPECT_TRUE(!report.has_updates_left() || separable);
  }
  void ExpectNoClaim() {
    const ConvergenceReport report = Now();
    EXPECT_EQ(report.state(), ::perceptron::v1::CONVERGENCE_STATE_LEARNING);
    EXPECT_FALSE(report.has_margin_ceiling());
    EXPECT_FALSE(report.has_margin_floor());
    EXPECT_FALSE(report.has_bound_in_use());
    EXPECT_FALSE(report.has_update_bound());
    EXPECT_FALSE(report.has_updates_left());
    EXPECT_FALSE(report.has_margin_refuted());
    EXPECT_FALSE(report.has_not_separable());
    EXPECT_FALSE(report.has_error_ceiling());
    EXPECT_FALSE(report.analysis().current());
  }
  void Seed(uint32_t seed) { random_.seed(seed); }

  const std::shared_ptr<Journal> journal_ = std::make_shared<MemoryJournal>();
  std::unique_ptr<Store> store_;
  std::mt19937 random_;
  std::uniform_real_distribution<float> uniform_{-1, 1};
  std::vector<SvmExample> seen_;
  int64_t passes_ = 0;
  size_t passed_ = 0;
};

TEST_P(CompositionReport, ClaimsHoldWhileTheComponentsStandAndNoLonger) {
  Seed(1);
  Teach("x", 200);
  Teach("y", 200);
  LearnNew(50);
  UntilConverged();
  AnalyzeBoth();
  const ConvergenceReport report = Now();
  EXPECT_EQ(report.state(), ::perceptron::v1::CONVERGENCE_STATE_CONVERGED);
  EXPECT_EQ(report.analysis().current(), true);
  EXPECT_TRUE(report.has_updates_left());
  EXPECT_TRUE(report.has_margin_ceiling());
  EXPECT_TRUE(report.has_margin_refuted());
  EXPECT_FALSE(report.margin_refuted());

  // One of them learns something else, and the composition nothing: that is enough.
  const uint64_t before = store_->Get("y").value().revision;
  ASSERT_OK(Send(*store_, "y", "other", Columns().AddDense({0, 1}, -1).batch()).status);
  ASSERT_GT(store_->Get("y").value().revision, before);
  ExpectNoClaim();
  // Also after it was away; and when it is analysed, which is of answers that are given no more.
  Open();
  ExpectNoClaim();
  EXPECT_FALSE(CopyStoredExamples(*Both()).examples.complete);
  AnalyzeBoth();
  ExpectNoClaim();
  EXPECT_FALSE(Now().analysis().complete());

  // It converges on other answers from here on, but its updates were also made for those before.
  UntilConverged();
  EXPECT_EQ(Now().state(), ::perceptron::v1::CONVERGENCE_STATE_CONVERGED);
  EXPECT_EQ(Wrong(), 0U);
  EXPECT_FALSE(Now().has_margin_ceiling());
  EXPECT_FALSE(Now().has_updates_left());
  EXPECT_FALSE(CopyStoredExamples(*Both()).examples.complete);
  Open();
  EXPECT_EQ(Now().state(), ::perceptron::v1::CONVERGENCE_STATE_CONVERGED);
}

// The composition learns, passes, is analysed and restarted, and its components learn, in random order.
TEST_P(CompositionReport, WhateverHappensEachClaimIsTrueOfTheAnswersOfNow) {
  int converged = 0;
  int bounded = 0;
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    Seed(seed);
    for (int step = 0; step < 40; ++step) {
      switch (random_() % 9) {
        case 0:
          Teach(random_() % 2 == 0 ? "x" : "y", 30);
          break;
        case 1:
          if (seen_.size() < 60) LearnNew(5);
          break;
        case 2:
          if (!seen_.empty()) AnalyzeBoth();
          break;
        case 3:
          if (step % 3 == 0) Open();
          break;
        case 4:
          if (!seen_.empty()) PassAround("x");
          break;
        default:
          for (int i = 0; i < 5 && !seen_.empty(); ++i) Pass();
      }
      if (seen_.empty()) continue;
      CheckClaims();
      converged += Now().state() == ::perceptron::v1::CONVERGENCE_STATE_CONVERGED ? 1 : 0;
      bounded += Now().has_updates_left() ? 1 : 0;
    }
    // A new composition, of the components as they are by now.
    ASSERT_OK(store_->Delete(kName, "", false));
    seen_.clear();
    passes_ = 0;
    passed_ = 0;
    Compose();
  }
  EXPECT_GT(converged, 0);
  EXPECT_GT(bounded, 0);
}

TEST_P(CompositionReport, AListDoesNotLoadComponentsAndClaimsNothingThatTheyCouldBelie) {
  Seed(3);
  Teach("x", 200);
  Teach("y", 200);
  LearnNew(30);
  UntilConverged();
  EXPECT_EQ(store_->List("", 10).value().models.at(0).report.state(),
            ::perceptron::v1::CONVERGENCE_STATE_CONVERGED);
  Open();
  const std::shared_ptr<Model> held = Both();
  const uint64_t loads = store_->stats().loads;
  const ConvergenceReport unknown = store_->List("", 10).value().models.at(0).report;
  EXPECT_EQ(store_->stats().loads, loads);
  EXPECT_EQ(unknown.state(), ::perceptron::v1::CONVERGENCE_STATE_UNSPECIFIED);
  EXPECT_FALSE(unknown.has_margin_ceiling());
  EXPECT_EQ(Now().state(), ::perceptron::v1::CONVERGENCE_STATE_CONVERGED);
}

INSTANTIATE_TEST_SUITE_P(Components, CompositionReport,
                         ::testing::Values("perceptron", "averaged-perceptron",
                                           "pocket-perceptron"));

}  // namespace
}  // namespace perceptrond
