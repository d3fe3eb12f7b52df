// Analyses of models of several classes: figures in reports, and weights replaced by separators.
#include <cmath>

#include "core/learner/catalogue.h"
#include "core/model/model_analysis.h"
#include "gtest/gtest.h"
#include "tests/core/model/analysed_model.h"
#include "tests/support/class_examples.h"
#include "tests/support/class_traffic.h"
#include "tests/support/learners.h"

namespace perceptrond {
namespace {

using testing::ClassKind;
using testing::Columns;
using testing::DenseSettings;
using testing::DrawClasses;
using testing::DrawnClasses;
using testing::LearnedState;
using testing::LoneModel;
using testing::Reload;
using testing::StateBytes;
using testing::SvmExample;
namespace v1 = ::perceptron::v1;

constexpr uint32_t kClasses = 4;
constexpr uint32_t kDimension = 5;
constexpr size_t kExamples = 160;

absl::StatusOr<ModelAnalysis> AnalyzeClasses(Model& model, const AnalysisOptions& options = {}) {
  return AnalyzeModel(model, options, [](const ModelAnalysisProgress&) { return true; });
}

v1::Model ClassModel(ClassKind kind = ClassKind::kFixed, double b = 1, double step_size = 1) {
  v1::Model settings = DenseSettings("m", kDimension);
  settings.mutable_learner()->set_bias_input(b);
  if (step_size != 1) testing::SetNumber(*settings.mutable_learner(), "step_size", step_size);
  settings.mutable_stored_examples()->set_max_sample(10'000);
  testing::SetClasses(kind, kClasses, settings);
  return settings;
}

std::vector<SvmExample> SeparableClasses(uint32_t seed, double b = 1) {
  return DrawClasses(seed, {kClasses, kDimension, kExamples, b, 0.05});
}

// The reference: all of the examples, straight into the solver, whose claims have tests of their
// own.
Analysis SolveClasses(const std::vector<SvmExample>& examples, double b) {
  std::vector<LabelledRow> rows;
  for (const SvmExample& one : examples)
    rows.push_back({{one.indices.data(), one.values.data(), one.indices.size()}, one.label});
  AnalysisOptions options;
  options.bias_input = b;
  options.classes = kClasses;
  return Analyze(rows, options, [](const AnalysisProgress&) { return true; });
}

uint64_t UpdatesUntilConverged(LoneModel& lone, const std::vector<SvmExample>& examples) {
  const uint64_t before = lone.model->revision();
  for (uint64_t revision = before + 1; revision != lone.model->revision();) {
    revision = lone.model->revision();
    lone.Learn(Columns(examples).batch());
  }
  return lone.model->revision() - before;
}

// The least margin of the examples by the model's scores; -infinity if one is predicted wrongly.
double LeastMargin(const LoneModel& lone, const std::vector<SvmExample>& examples) {
  PredictOutcome outcome;
  EXPECT_OK(lone.model->Predict(Columns(examples).unlabelled(), {}, 0, outcome, true));
  const size_t classes = outcome.class_scores.size() / examples.size();
  double least = INFINITY;
  for (size_t i = 0; i < examples.size(); ++i) {
    if (outcome.labels[i] != examples[i].label) return -INFINITY;
    const float* scores = outcome.class_scores.data() + i * classes;
    for (size_t k = 0; k < classes; ++k) {
      if (static_cast<int>(k) != examples[i].label && !std::isnan(scores[k]))
        least = std::min(least, static_cast<double>(scores[examples[i].label]) - scores[k]);
    }
  }
  return least;
}

struct Run {
  double b;
  double step_size;
};

class AnalysedClasses : public ::testing::TestWithParam<Run> {};

TEST_P(AnalysedClasses, EveryFigureIsValidAndNoRunExceedsTheUpdatesLeft) {
  const auto [b, step_size] = GetParam();
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    const std::vector<SvmExample> examples = SeparableClasses(seed, b);
    for (size_t analysed = 40; analysed <= kExamples; analysed += 40) {
      LoneModel lone(ClassModel(ClassKind::kFixed, b, step_size));
      for (size_t at = 0; at < kExamples; at += 40) {
        lone.Learn(Columns(examples, at, at + 40).batch());
        const size_t seen = at + 40;
        if (seen == analysed) ASSERT_OK(AnalyzeClasses(*lone.model).status());
        if (seen < analysed) continue;
        const std::vector<SvmExample> so_far(examples.begin(),
                                             examples.begin() + static_cast<std::ptrdiff_t>(seen));
        const Analysis truth = SolveClasses(so_far, b);
        ASSERT_EQ(truth.separability, Separability::kSeparable);
        const ConvergenceReport report = MakeReport(*lone.model);
        ASSERT_TRUE(report.has_margin_ceiling());
        EXPECT_GE(report.margin_ceiling(), truth.margin_floor);
        EXPECT_FALSE(report.not_separable());
        EXPECT_EQ(report.analysis().current(), seen == analysed);
        EXPECT_EQ(report.has_updates_left(), seen == analysed);
        if (seen != analysed) continue;
        EXPECT_LE(report.margin_floor(), truth.margin_ceiling);
        EXPECT_NEAR(report.margin_floor(), truth.margin_floor, 2e-6 * truth.margin_floor);
        EXPECT_NEAR(report.update_bound(), 2 * std::pow(report.radius() / report.margin_floor(), 2),
                    1e-9 * report.update_bound());
        EXPECT_NEAR(report.update_bound(), truth.update_bound, 1e-5 * truth.update_bound);
        LoneModel on(ClassModel(ClassKind::kFixed, b, step_size));
        on.Learn(Columns(so_far).batch());
        ASSERT_EQ(on.model->revision(), lone.model->revision());
        EXPECT_LE(UpdatesUntilConverged(on, so_far), report.updates_left());
        EXPECT_LE(static_cast<double>(on.model->revision()), report.update_bound());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, AnalysedClasses,
                         ::testing::Values(Run{1, 1}, Run{0, 1}, Run{0.5, 0.125}, Run{1, 3}));

TEST(AnalysedClassesOnce, ACertificateIsAProofForEveryLearner) {
  // XOR as classes 1 and 3 of four.
  const Columns exclusive_or = Columns()
                                   .AddDense({-1, -1, 0, 0, 0}, 1)
                                   .AddDense({1, 1, 0, 0, 0}, 1)
                                   .AddDense({-1, 1, 0, 0, 0}, 3)
                                   .AddDense({1, -1, 0, 0, 0}, 3);
  for (const CatalogueEntry& entry : Catalogue()) {
    if (!entry.has_classes()) continue;
    for (const ClassKind kind : {ClassKind::kFixed, ClassKind::kNumbered}) {
      v1::Model settings = ClassModel(kind);
      testing::SetLearner(*settings.mutable_learner(), entry.name);
      LoneModel lone(settings);
      lone.Learn(exclusive_or.batch());
      const ModelAnalysis analysis = AnalyzeClasses(*lone.model).value();
      ASSERT_EQ(analysis.analysis.separability, Separability::kNotSeparable) << entry.name;
      ASSERT_EQ(analysis.analysis.certificate.size(), 4U) << entry.name;
      for (const CertificateEntry& one : analysis.analysis.certificate) {
        EXPECT_EQ(one.multiplier, "1");
        EXPECT_EQ(one.rival, 4 - analysis.input.examples()[one.example].row->label);
      }
      EXPECT_FALSE(analysis.separator.has_value());
      for (const std::shared_ptr<Model>& model : {lone.model, Reload(lone)}) {
        const ConvergenceReport report = MakeReport(*model);
        EXPECT_EQ(report.not_separable(), true) << entry.name;
        EXPECT_EQ(report.state(), v1::CONVERGENCE_STATE_NOT_SEPARABLE);
      }
    }
  }
}

TEST(AnalysedClassesOnce, MoreWeightsThanAnAnalysisHoldsAreAnErrorAndEnterNothing) {
  LoneModel lone(ClassModel());
  lone.Learn(Columns(SeparableClasses(1)).batch());
  AnalysisOptions options;
  options.max_weights = kClasses * (kDimension + 1) - 1;
  const absl::Status status = AnalyzeClasses(*lone.model, options).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(testing::ReasonOf(status), "ANALYSIS_TOO_LARGE");
  EXPECT_FALSE(MakeReport(*lone.model).has_analysis());
  ++options.max_weights;
  EXPECT_OK(AnalyzeClasses(*lone.model, options).status());
}

TEST(AnalysedClassesOnce, AModelThatHasMetOneClassIsUndecided) {
  LoneModel lone(ClassModel(ClassKind::kNumbered));
  lone.Learn(Columns().AddDense({1, 0, 0, 0, 0}, 2).AddDense({2, 0, 0, 0, 0}, 2).batch());
  const ModelAnalysis analysis = AnalyzeClasses(*lone.model).value();
  EXPECT_EQ(analysis.analysis.separability, Separability::kUndecided);
  EXPECT_EQ(analysis.analysis.end, AnalysisEnd::kNoRows);
}

class ClassWeightReplacement : public ::testing::TestWithParam<const CatalogueEntry*> {};

TEST_P(ClassWeightReplacement, TheSeparatorPredictsAndIsReplayedToTheBit) {
  for (const ClassKind kind : {ClassKind::kFixed, ClassKind::kNumbered, ClassKind::kNamed}) {
    v1::Model settings = ClassModel(kind);
    testing::SetLearner(*settings.mutable_learner(), GetParam()->name);
    LoneModel lone(settings);
    std::vector<SvmExample> examples = SeparableClasses(3);
    const std::vector<SvmExample> more = SeparableClasses(8);
    const auto learn = [&](Model& model, const std::vector<SvmExample>& rows) {
      const testing::ClassBatch batch(kind, testing::Space::kDense, rows);
      LearnCall call;
      Producer producer("");
      call.batch = batch.batch();
      call.producer = &producer;
      LearnOutcome outcome;
      ASSERT_OK(model.Learn(call, outcome));
    };
    learn(*lone.model, examples);
    const ModelAnalysis analysis = AnalyzeClasses(*lone.model).value();
    ASSERT_TRUE(analysis.separator.has_value());
    const uint64_t before = lone.model->revision();
    ASSERT_EQ(lone.model->ReplaceWeights(*analysis.separator, before).value(), before + 1);
    EXPECT_EQ(MakeReport(*lone.model).updates(), before + 1);
    if (kind != ClassKind::kNamed) {
      const double least = LeastMargin(lone, examples);
      EXPECT_GT(least, 0);
      // ALMA keeps its weights within the unit ball.
      if (GetParam()->rule != RuleKind::kMarginPerceptron) {
        EXPECT_NEAR(least, 1, 1e-5);
      }
    }
    testing::ExpectReplayedToTheBit(lone, [&](Model& model) { learn(model, more); });
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, ClassWeightReplacement, ::testing::ValuesIn([] {
                           std::vector<const CatalogueEntry*> entries;
                           for (const CatalogueEntry& entry : Catalogue()) {
                             LearnerSettings settings;
                             settings.rule = entry.rule;
                             settings.wrapper = entry.wrapper;
                             if (entry.has_classes() &&
                                 MakeLearner(settings, 1)->replaceable_weights() != nullptr)
                               entries.push_back(&entry);
                           }
                           return entries;
                         }()),
                         [](const auto& info) {
                           std::string name(info.param->name);
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST(ClassWeightReplacementRules, NumbersThatNoExampleHasHadStayWithoutAClass) {
  LoneModel lone(ClassModel(ClassKind::kNumbered));
  const std::vector<SvmExample> examples = {
      {0, {0, 1}, {1, 0.5F}}, {3, {0, 1}, {-1, 2}}, {0, {0, 1}, {2, 0}}, {3, {0, 1}, {0, 3}}};
  lone.Learn(Columns(examples).batch());
  const ModelAnalysis analysis = AnalyzeClasses(*lone.model).value();
  ASSERT_TRUE(analysis.separator.has_value());
  EXPECT_EQ(analysis.input.classes(), (std::vector<int32_t>{0, 3}));
  ASSERT_EQ(analysis.separator->vectors.size(), 4U);
  for (const size_t hole : {1, 2}) {
    EXPECT_TRUE(analysis.separator->vectors[hole].indices.empty());
    EXPECT_EQ(analysis.separator->vectors[hole].bias_weight, 0);
  }
  for (const SupportVector& one : analysis.analysis.support)
    EXPECT_EQ(one.rival, 3 - analysis.input.examples()[one.example].row->label);
  ASSERT_OK(lone.model->ReplaceWeights(*analysis.separator, std::nullopt).status());
  EXPECT_NEAR(LeastMargin(lone, examples), 1, 1e-5);
  EXPECT_EQ(LearnedState(*Reload(lone)), LearnedState(*lone.model));
}

TEST(ClassWeightReplacementRules, AClassThatCameSinceTheAnalysisHasWeightsOfZero) {
  LoneModel lone(ClassModel(ClassKind::kNumbered));
  lone.Learn(Columns().AddDense({1, 0, 0, 0, 0}, 0).AddDense({0, 1, 0, 0, 0}, 1).batch());
  const ModelAnalysis analysis = AnalyzeClasses(*lone.model).value();
  lone.Learn(Columns().AddDense({0, 0, 1, 0, 0}, 2).batch());
  ASSERT_OK(lone.model->ReplaceWeights(*analysis.separator, std::nullopt).status());
  const std::vector<WeightList> lists = ListWeights(*lone.model);
  ASSERT_EQ(lists.size(), 3U);
  EXPECT_FALSE(lists[0].values.empty());
  EXPECT_TRUE(lists[2].values.empty());
  EXPECT_EQ(lists[2].bias, 0);
  EXPECT_EQ(LearnedState(*Reload(lone)), LearnedState(*lone.model));
}

TEST(ClassWeightReplacementRules, NamesOfTheSeparatorGetWeightsInEveryClassOnce) {
  v1::Model settings = testing::NamedSettings("m");
  settings.mutable_stored_examples()->set_max_sample(10);
  settings.mutable_learner()->set_bias_input(0);
  settings.mutable_learner()->mutable_classes()->set_max_classes(3);
  LoneModel lone(settings);
  const auto learn = [&](std::vector<std::pair<std::string, float>> features, int32_t label) {
    testing::NamedExample example;
    example.features = std::move(features);
    example.label = label;
    lone.Learn(testing::NamedColumns({example}, {}).batch());
  };
  learn({{"a", 1}}, 0);
  learn({{"b", 1}}, 1);
  learn({{"c", 1}}, 2);
  // Correct by "a" alone, so that "d" and "e" have no weight yet; the best separator uses them.
  learn({{"a", 0.1F}, {"d", 3}, {"e", 1}}, 0);
  const ModelAnalysis analysis = AnalyzeClasses(*lone.model).value();
  ASSERT_TRUE(analysis.separator.has_value());
  EXPECT_EQ(analysis.separator->new_names.size(), 2U);
  ASSERT_OK(lone.model->ReplaceWeights(*analysis.separator, std::nullopt).status());
  const std::shared_ptr<Model> again = Reload(lone);
  for (const std::shared_ptr<Model>& model : {lone.model, again}) {
    const std::vector<WeightList> lists = ListWeights(*model);
    ASSERT_EQ(lists.size(), 3U);
    for (const WeightList& list : lists)
      EXPECT_EQ(list.names, (std::vector<std::string>{"a", "b", "c", "d", "e"}));
  }
  EXPECT_EQ(LearnedState(*again), LearnedState(*lone.model));
}

}  // namespace
}  // namespace perceptrond
