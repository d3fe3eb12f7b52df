// Analyses of stored examples with two labels and with several classes enter reports, and their separators replace weights.
#include "core/model/model_analysis.h"

#include <cmath>
#include <optional>
#include <random>

#include "core/learner/catalogue.h"
#include "gtest/gtest.h"
#include "tests/core/model/analysed_model.h"
#include "tests/support/class_examples.h"
#include "tests/support/class_traffic.h"
#include "tests/support/learners.h"
#include "tests/support/separable.h"

namespace perceptrond::model_analysis_test {
namespace {

using testing::Analyzed;
using testing::ClassKind;
using testing::Columns;
using testing::DenseSettings;
using testing::LearnedState;
using testing::LoneModel;
using testing::Reload;
using testing::StateBytes;
using testing::SvmExample;
namespace v1 = ::perceptron::v1;

constexpr size_t kExamples = 160;
constexpr size_t kStretch = 40;
constexpr uint32_t kClasses = 4;

struct Drawn {
  uint32_t dimension = 5;
  double margin = 0.05;
  double bias_input = 1;
  double step_size = 1;
  uint32_t sample = 1000;
  // 0: two labels.
  uint32_t classes = 0;
};

void PrintTo(const Drawn& drawn, std::ostream* out) {
  *out << "d=" << drawn.dimension << " margin=" << drawn.margin << " b=" << drawn.bias_input
       << " eta=" << drawn.step_size << " sample=" << drawn.sample << " K=" << drawn.classes;
}

v1::Model SettingsOf(const Drawn& drawn, ClassKind kind = ClassKind::kFixed) {
  v1::Model settings = DenseSettings("m", drawn.dimension);
  settings.mutable_stored_examples()->set_max_sample(drawn.sample);
  settings.mutable_learner()->set_bias_input(drawn.bias_input);
  testing::SetNumber(*settings.mutable_learner(), "step_size", drawn.step_size);
  if (drawn.classes > 0) testing::SetClasses(kind, drawn.classes, settings);
  return settings;
}

std::vector<SvmExample> Separable(const Drawn& drawn, uint32_t seed) {
  if (drawn.classes > 0) {
    return testing::DrawClasses(
        seed, {drawn.classes, drawn.dimension, kExamples, drawn.bias_input, drawn.margin});
  }
  return testing::MakeSeparable(seed, kExamples, drawn.dimension, drawn.margin, drawn.bias_input)
      .examples;
}

// The reference: all of the examples, straight into the solver, whose claims have tests of their own.
Analysis Solve(const std::vector<SvmExample>& examples, const Drawn& drawn) {
  std::vector<LabelledRow> rows;
  for (const SvmExample& one : examples)
    rows.push_back({{one.indices.data(), one.values.data(), one.indices.size()}, one.label});
  AnalysisOptions options;
  options.bias_input = drawn.bias_input;
  options.classes = drawn.classes;
  return Analyze(rows, options, [](const AnalysisProgress&) { return true; });
}

// Updates until a pass over the examples changes nothing.
uint64_t UpdatesToConverge(LoneModel& lone, const std::vector<SvmExample>& examples) {
  const uint64_t before = lone.model->revision();
  for (uint64_t revision = before + 1; revision != lone.model->revision();) {
    revision = lone.model->revision();
    lone.Learn(Columns(examples).batch());
  }
  return lone.model->revision() - before;
}

class AnalysedRun : public ::testing::TestWithParam<Drawn> {};

// Whatever the moment of the analysis and of the report: no figure is wrong, and no run exceeds the updates left.
TEST_P(AnalysedRun, EveryFigureIsValidOrAbsent) {
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    const std::vector<SvmExample> examples = Separable(GetParam(), seed);
    for (size_t analysed = kStretch; analysed <= kExamples; analysed += kStretch) {
      LoneModel lone(SettingsOf(GetParam()));
      for (size_t at = 0; at < kExamples; at += kStretch) {
        lone.Learn(Columns(examples, at, at + kStretch).batch());
        const size_t seen = at + kStretch;
        if (seen == analysed) ASSERT_OK(Analyzed(*lone.model).status());
        if (seen < analysed) continue;
        const std::vector<SvmExample> so_far(examples.begin(),
                                             examples.begin() + static_cast<std::ptrdiff_t>(seen));
        const Analysis truth = Solve(so_far, GetParam());
        ASSERT_EQ(truth.separability, Separability::kSeparable);
        const ConvergenceReport report = MakeReport(*lone.model);
        ASSERT_TRUE(report.has_margin_ceiling());
        EXPECT_GE(report.margin_ceiling(), truth.margin_floor);
        EXPECT_FALSE(report.not_separable());
        const bool all = seen == analysed && GetParam().sample >= seen;
        EXPECT_EQ(report.analysis().current(), all);
        EXPECT_EQ(report.has_margin_floor(), all);
        EXPECT_EQ(report.has_updates_left(), all);
        if (!all) continue;
        EXPECT_LE(report.margin_floor(), truth.margin_ceiling);
        EXPECT_NEAR(report.margin_floor(), truth.margin_floor, 2e-6 * truth.margin_floor);
        EXPECT_GE(report.update_bound(), static_cast<double>(report.updates()));
        EXPECT_NEAR(report.update_bound(), truth.update_bound, 1e-5 * truth.update_bound);
        LoneModel on(SettingsOf(GetParam()));
        on.Learn(Columns(so_far).batch());
        ASSERT_EQ(on.model->revision(), lone.model->revision());
        EXPECT_LE(UpdatesToConverge(on, so_far), report.updates_left());
      }
    }
  }
}

TEST_P(AnalysedRun, RepetitionsLeaveTheAnalysisCurrent) {
  if (GetParam().sample < kExamples) return;
  const std::vector<SvmExample> examples = Separable(GetParam(), 4);
  LoneModel lone(SettingsOf(GetParam()));
  lone.Learn(Columns(examples).batch());
  ASSERT_OK(Analyzed(*lone.model).status());
  const uint64_t most = lone.model->revision() + MakeReport(*lone.model).updates_left();
  UpdatesToConverge(lone, examples);
  const ConvergenceReport report = MakeReport(*lone.model);
  EXPECT_EQ(report.analysis().current(), true);
  EXPECT_EQ(lone.model->revision() + report.updates_left(), most);
  const ConvergenceReport again = MakeReport(*Reload(lone));
  // Right answers were never in a snapshot: the claim ends with the process, the ceiling does not.
  EXPECT_EQ(again.margin_ceiling(), report.margin_ceiling());
  EXPECT_EQ(again.analysis().margin_lower(), report.analysis().margin_lower());
  ASSERT_OK(lone.journal.SaveSnapshot(lone.model->id(), MakeSnapshot(*lone.model)));
  const ConvergenceReport saved = MakeReport(*Reload(lone));
  EXPECT_EQ(saved.analysis().current(), true);
  EXPECT_EQ(saved.updates_left(), report.updates_left());
}

INSTANTIATE_TEST_SUITE_P(Separable, AnalysedRun,
                         ::testing::Values(Drawn{2, 0.1}, Drawn{2, 0.05, 0},
                                           Drawn{5, 0.1, 1, 0.1, kExamples}, Drawn{5, 0.1, 0, 8},
                                           Drawn{20, 0.05, 0.25}, Drawn{20, 0.05, 4, 0.003},
                                           Drawn{5, 0.1, 1, 1, 100},
                                           Drawn{5, 0.05, 1, 1, 1000, kClasses},
                                           Drawn{5, 0.05, 0, 1, 1000, kClasses},
                                           Drawn{5, 0.05, 0.5, 0.125, 1000, kClasses},
                                           Drawn{5, 0.05, 1, 3, 1000, kClasses}));

// Passes over parts of the data: what is left is of all data seen.
TEST(ModelAnalysis, NoRunOverAllDataSeenMakesMoreUpdatesThanAreLeft) {
  std::mt19937 random(24);
  int claims = 0;
  for (int run = 0; run < 100; ++run) {
    std::vector<SvmExample> all;
    for (int i = 0; i < 6; ++i) {
      const auto coordinate = [&] {
        return static_cast<float>(static_cast<int>(random() % 5) - 2);
      };
      all.push_back({random() % 2 == 0 ? 1 : -1, {0, 1}, {coordinate(), coordinate()}});
    }
    LoneModel lone(SettingsOf({.dimension = 2}));
    std::vector<SvmExample> seen;
    for (int64_t pass = 1; pass <= 5; ++pass) {
      const size_t begin = random() % all.size();
      const size_t end = begin + 1 + random() % (all.size() - begin);
      lone.Learn(Columns(all, begin, end).batch(), pass);
      for (size_t i = begin; i < end; ++i) seen.push_back(all[i]);
      if (random() % 2 == 0) ASSERT_OK(Analyzed(*lone.model).status());
      const ConvergenceReport report = MakeReport(*lone.model);
      if (!report.has_updates_left()) continue;
      ++claims;
      // The same run, which goes on over all that it has seen.
      LoneModel on(SettingsOf({.dimension = 2}));
      on.Learn(Columns(seen).batch());
      ASSERT_EQ(on.model->revision(), lone.model->revision());
      uint64_t made = 0;
      for (uint64_t updates = 1; updates > 0 && made <= report.updates_left(); made += updates) {
        updates = on.model->revision();
        on.Learn(Columns(seen).batch());
        updates = on.model->revision() - updates;
      }
      EXPECT_LE(made, report.updates_left());
    }
  }
  EXPECT_GT(claims, 10);
}

// Two examples that contradict each other, then a pass over one that is right.
TEST(ModelAnalysis, APassOverOneRowSaysNothingOfTheOthers) {
  LoneModel lone(SettingsOf({.dimension = 2}));
  const Columns contradiction =
      Columns().AddDense({1, 0.3F}, 1).AddDense({1.1F, 1}, -1).AddDense({1.1F, 1}, 1);
  for (int64_t pass = 1; pass <= 3; ++pass) lone.Learn(contradiction.batch(), pass);
  for (int64_t pass = 4; pass <= 9; ++pass) lone.Learn(Columns().AddDense({5, 0}, 1).batch(), pass);
  const ConvergenceReport report = MakeReport(*lone.model);
  EXPECT_EQ(report.state(), v1::CONVERGENCE_STATE_CONVERGED);
  EXPECT_FALSE(report.has_updates_left());
  EXPECT_EQ(report.last_pass().examples(), 1U);
}

// An example that counts less takes more updates than the bound; that it was right so far says
// nothing.
TEST(ModelAnalysis, ExamplesThatCountOtherwiseEndWhatIsSaidOfUpdates) {
  const Drawn drawn;
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    const std::vector<SvmExample> examples = Separable(drawn, seed);
    LoneModel lone(SettingsOf(drawn));
    const Columns columns(examples);
    const uint64_t updates = UpdatesToConverge(lone, examples);
    ASSERT_OK(Analyzed(*lone.model).status());
    lone.Learn(columns.batch(), 1);
    ASSERT_TRUE(MakeReport(*lone.model).has_updates_left());
    ASSERT_TRUE(MakeReport(*lone.model).has_update_bound());
    // All are right by now, so that none causes an update.
    std::vector<float> weights(kExamples, 1);
    weights[seed * 7] = 0.001F;
    Batch batch = columns.batch();
    batch.weights = weights;
    lone.Learn(batch, 2);
    lone.Learn(columns.batch(), 3);
    ASSERT_EQ(lone.model->revision(), updates);
    for (const std::shared_ptr<Model>& model : {lone.model, Reload(lone)}) {
      const ConvergenceReport report = MakeReport(*model);
      EXPECT_FALSE(report.has_updates_left());
      EXPECT_FALSE(report.has_update_bound());
      // Claims about the data, and about the updates made, are as true as before.
      EXPECT_TRUE(report.has_margin_ceiling());
      EXPECT_TRUE(report.has_margin_floor());
      EXPECT_TRUE(report.has_bound_in_use());
    }
  }
}

// The models have two labels, or learn classes 1 and 3 of four whose numbers are known or come up.
TEST(ModelAnalysis, ACertificateIsAProofForEveryLearnerOfTheFeaturesSpace) {
  for (const CatalogueEntry& entry : Catalogue()) {
    for (const std::optional<ClassKind> kind :
         {std::optional<ClassKind>(), std::optional(ClassKind::kFixed),
          std::optional(ClassKind::kNumbered)}) {
      if (entry.form == Form::kKernel || (kind.has_value() && !entry.has_classes())) continue;
      SCOPED_TRACE(absl::StrCat(entry.name, kind.has_value() ? " classes" : ""));
      const int one = kind.has_value() ? 3 : 1;
      const int other = kind.has_value() ? 1 : -1;
      v1::Model settings = SettingsOf({.dimension = 2, .classes = kind.has_value() ? kClasses : 0},
                                      kind.value_or(ClassKind::kFixed));
      testing::SetLearner(*settings.mutable_learner(), entry.name);
      settings.set_margin_of_interest(0.5);
      LoneModel lone(settings);
      lone.Learn(Columns()
                     .AddDense({-1, -1.5}, one)
                     .AddDense({1, 1.5}, one)
                     .AddDense({-1, 1.5}, other)
                     .AddDense({1, -1.5}, other)
                     .batch());
      const ModelAnalysis analysis = Analyzed(*lone.model).value();
      ASSERT_EQ(analysis.analysis.separability, Separability::kNotSeparable);
      ASSERT_EQ(analysis.analysis.certificate.size(), 4U);
      for (const CertificateEntry& proof : analysis.analysis.certificate) {
        EXPECT_EQ(proof.multiplier, "1");
        if (!kind.has_value()) continue;
        EXPECT_EQ(proof.rival, 4 - analysis.input.examples()[proof.example].row->label);
      }
      EXPECT_FALSE(analysis.separator.has_value());
      // More data do not undo it, nor does a restart.
      lone.Learn(Columns().AddDense({3, 1}, one).batch());
      for (const std::shared_ptr<Model>& model : {lone.model, Reload(lone)}) {
        const ConvergenceReport report = MakeReport(*model);
        EXPECT_EQ(report.not_separable(), true);
        EXPECT_EQ(report.margin_refuted(), true);
        EXPECT_EQ(report.state(), v1::CONVERGENCE_STATE_NOT_SEPARABLE);
        EXPECT_FALSE(report.has_margin_floor());
        EXPECT_FALSE(report.has_update_bound());
        EXPECT_FALSE(report.has_updates_left());
        EXPECT_EQ(report.margin_ceiling(), 0);
      }
    }
  }
}

TEST(ModelAnalysis, BoundsUpdatesOnlyOfTheRulesThatTheTheoremSpeaksOf) {
  const Drawn drawn{.margin = 0.2};
  for (const CatalogueEntry& entry : Catalogue()) {
    if (entry.form == Form::kKernel) continue;
    v1::Model settings = SettingsOf(drawn);
    testing::SetLearner(*settings.mutable_learner(), entry.name);
    LoneModel lone(settings);
    const Columns columns(Separable(drawn, 3));
    ASSERT_OK((lone.Learn(columns.batch(), 1), Analyzed(*lone.model).status()));
    for (int64_t pass = 2; pass <= 20; ++pass) {
      lone.Learn(columns.batch(), pass);
      const ConvergenceReport report = MakeReport(*lone.model);
      ASSERT_TRUE(report.has_margin_floor()) << entry.name;
      ASSERT_EQ(report.has_update_bound(), entry.convergence_theorem) << entry.name;
      ASSERT_EQ(report.has_updates_left(), entry.convergence_theorem) << entry.name;
      ASSERT_LE(static_cast<double>(report.updates()),
                (report.has_update_bound() ? report.update_bound() : INFINITY));
    }
  }
}

// XOR, which nothing separates but a kernel.
TEST(ModelAnalysis, OfAKernelsSpaceIsRefusedAndEntersNothing) {
  v1::Model settings = SettingsOf({.dimension = 2});
  settings.mutable_learner()->mutable_kernel_perceptron()->mutable_kernel()->mutable_polynomial();
  settings.set_margin_of_interest(0.01);
  LoneModel lone(settings);
  const Columns xor_ =
      Columns().AddDense({0, 0}, -1).AddDense({0, 1}, 1).AddDense({1, 0}, 1).AddDense({1, 1}, -1);
  int64_t pass = 1;
  while (!lone.Learn(xor_.batch(), pass).pass->converged()) ASSERT_LT(++pass, 100);
  EXPECT_EQ(testing::ReasonOf(Analyzed(*lone.model).status()), "KERNEL_SPACE");
  for (const std::shared_ptr<Model>& model : {lone.model, Reload(lone)}) {
    const ConvergenceReport report = MakeReport(*model);
    EXPECT_EQ(report.state(), v1::CONVERGENCE_STATE_CONVERGED);
    EXPECT_FALSE(report.has_analysis());
    EXPECT_FALSE(report.has_margin_ceiling());
    EXPECT_FALSE(report.has_margin_floor());
    EXPECT_FALSE(report.has_update_bound());
    EXPECT_FALSE(report.has_updates_left());
    EXPECT_FALSE(report.has_margin_refuted());
    EXPECT_FALSE(report.has_not_separable());
    // (1, 1) with itself: (1 + 2)^2, and 1 for the offset.
    EXPECT_DOUBLE_EQ(report.radius(), std::sqrt(10));
  }
}

TEST(ModelAnalysis, ThatCannotBeDoneEntersNothing) {
  LoneModel none(DenseSettings("m", 2));
  EXPECT_TRUE(absl::IsFailedPrecondition(Analyzed(*none.model).status()));
  const Drawn drawn{.classes = kClasses};
  LoneModel lone(SettingsOf(drawn));
  lone.Learn(Columns(Separable(drawn, 1)).batch());
  const auto cancelled =
      AnalyzeModel(*lone.model, {}, [](const ModelAnalysisProgress&) { return false; });
  EXPECT_EQ(testing::ReasonOf(cancelled.status()), "ANALYSIS_CANCELLED");
  AnalysisOptions options;
  options.max_weights = kClasses * (drawn.dimension + 1) - 1;
  EXPECT_EQ(testing::ReasonOf(Analyzed(*lone.model, options).status()), "ANALYSIS_TOO_LARGE");
  EXPECT_FALSE(MakeReport(*lone.model).has_analysis());
  ++options.max_weights;
  EXPECT_OK(Analyzed(*lone.model, options).status());
}

TEST(ModelAnalysis, OfOneClassIsUndecided) {
  LoneModel lone(SettingsOf({.dimension = 2, .classes = kClasses}, ClassKind::kNumbered));
  lone.Learn(Columns().AddDense({1, 0}, 2).AddDense({2, 0}, 2).batch());
  const ModelAnalysis analysis = Analyzed(*lone.model).value();
  EXPECT_EQ(analysis.analysis.separability, Separability::kUndecided);
  EXPECT_EQ(analysis.analysis.end, AnalysisEnd::kNoRows);
}

// The least margin of the examples by the model's scores; -infinity if one is predicted wrongly.
double LeastMargin(const LoneModel& lone, const std::vector<SvmExample>& examples, bool classes) {
  PredictOutcome outcome;
  EXPECT_OK(lone.model->Predict(Columns(examples).unlabelled(), {}, 0, outcome, classes));
  const size_t count = outcome.class_scores.size() / examples.size();
  double least = INFINITY;
  for (size_t i = 0; i < examples.size(); ++i) {
    if (outcome.labels[i] != examples[i].label) return -INFINITY;
    if (!classes) least = std::min<double>(least, examples[i].label * outcome.scores[i]);
    for (size_t k = 0; k < count; ++k) {
      const float* scores = outcome.class_scores.data() + i * count;
      if (static_cast<int>(k) != examples[i].label && !std::isnan(scores[k]))
        least = std::min(least, static_cast<double>(scores[examples[i].label]) - scores[k]);
    }
  }
  return least;
}

TEST(WeightReplacement, TheSeparatorOfEveryRuleAnswersAndEndsTheBounds) {
  for (const CatalogueEntry& entry : Catalogue()) {
    for (const bool classes : {false, true}) {
      LearnerSettings kind;
      kind.rule = entry.rule;
      kind.wrapper = entry.wrapper;
      if (MakeLearner(kind, 1)->replaceable_weights() == nullptr) continue;
      if (classes && !entry.has_classes()) continue;
      SCOPED_TRACE(absl::StrCat(entry.name, classes ? " classes" : ""));
      const Drawn drawn{.classes = classes ? kClasses : 0};
      v1::Model settings = SettingsOf(drawn);
      testing::SetLearner(*settings.mutable_learner(), entry.name);
      LoneModel lone(settings);
      const std::vector<SvmExample> examples = Separable(drawn, 3);
      lone.Learn(Columns(examples).batch());
      const ModelAnalysis analysis = Analyzed(*lone.model).value();
      ASSERT_TRUE(analysis.separator.has_value());
      const uint64_t before = lone.model->revision();
      ASSERT_EQ(lone.model->ReplaceWeights(*analysis.separator, before).value(), before + 1);
      EXPECT_EQ(lone.model->revision(), before + 1);
      const ConvergenceReport report = MakeReport(*lone.model);
      EXPECT_EQ(report.updates(), before + 1);
      // The error of the latest examples begins again.
      EXPECT_EQ(report.window_examples(), 0U);
      EXPECT_FALSE(report.drift().has_window_examples());
      EXPECT_FALSE(report.has_bound_in_use());
      EXPECT_FALSE(report.has_update_bound());
      EXPECT_FALSE(report.has_updates_left());
      const double least = LeastMargin(lone, examples, classes);
      EXPECT_GT(least, 0);
      // ALMA keeps its weights within the unit ball.
      if (entry.rule != RuleKind::kMarginPerceptron) {
        EXPECT_NEAR(least, 1, 1e-5);
      }
    }
  }
}

TEST(WeightReplacement, RefusalsChangeNothing) {
  LoneModel lone(SettingsOf({.dimension = 2}));
  lone.Learn(Columns().AddDense({1, 2}, 1).AddDense({2, -3}, -1).batch());
  const std::string before = StateBytes(*lone.model);
  const NewWeights weights{{{{0}, {1}, 0.5F}}, {}, ~0U};
  EXPECT_TRUE(absl::IsAborted(lone.model->ReplaceWeights(weights, 7).status()));
  testing::Freeze(*lone.model, true);
  EXPECT_TRUE(
      absl::IsFailedPrecondition(lone.model->ReplaceWeights(weights, std::nullopt).status()));
  EXPECT_EQ(StateBytes(*lone.model), before);
}

// Names that have no weight yet, on which the best separator leans: in every class, once, and up to the cap.
TEST(WeightReplacement, NamesOfTheSeparatorGetWeightsUpToTheCap) {
  using Names = std::vector<std::string>;
  for (const bool classes : {false, true}) {
    for (const bool room : {true, false}) {
      v1::Model settings = testing::NamedSettings("m", classes ? (room ? 4 : 3) : (room ? 2 : 1));
      settings.mutable_stored_examples()->set_max_sample(10);
      settings.mutable_learner()->set_bias_input(0);
      if (classes) testing::SetClasses(ClassKind::kFixed, 3, settings);
      LoneModel lone(settings);
      const auto learn = [&](std::vector<std::pair<std::string, float>> features, int32_t label) {
        lone.Learn(testing::NamedColumns({{std::move(features), label}}).batch());
      };
      const int first = classes ? 0 : 1;
      learn({{"a", 1}}, first);
      if (classes) {
        learn({{"b", 1}}, 1);
        learn({{"c", 1}}, 2);
      }
      // Right by "a" alone.
      learn({{"a", 0.1F}, {"d", 3}}, first);
      const std::string before = StateBytes(*lone.model);
      const ModelAnalysis analysis = Analyzed(*lone.model).value();
      ASSERT_TRUE(analysis.separator.has_value());
      EXPECT_EQ(analysis.separator->new_names, Names{"d"});
      const auto revision = lone.model->ReplaceWeights(*analysis.separator, std::nullopt);
      EXPECT_EQ(absl::IsResourceExhausted(revision.status()), !room) << revision.status();
      if (!room) {
        EXPECT_EQ(StateBytes(*lone.model), before);
        continue;
      }
      const std::shared_ptr<Model> again = Reload(lone);
      EXPECT_EQ(LearnedState(*again), LearnedState(*lone.model));
      for (const WeightList& list : ListWeights(*again))
        EXPECT_EQ(list.names, classes ? Names({"a", "b", "c", "d"}) : Names({"a", "d"}));
    }
  }
}

TEST(WeightReplacement, TheAverageAndThePocketBeginAgain) {
  for (const std::string kind : {"averaged-perceptron", "pocket-perceptron"}) {
    v1::Model settings = DenseSettings("m", 2);
    testing::SetLearner(*settings.mutable_learner(), kind);
    settings.mutable_learner()->set_bias_input(0);
    LoneModel lone(settings);
    // A long run of right answers, so that the old weights would count for much.
    lone.Learn(Columns().AddDense({-8, 0}, 1).batch());
    for (int i = 0; i < 50; ++i) lone.Learn(Columns().AddDense({-1, 0}, 1).batch());
    ASSERT_OK(
        lone.model->ReplaceWeights({{{{0, 1}, {1, 0.5F}, 0}}, {}, ~0U}, std::nullopt).status());
    EXPECT_EQ(lone.Weights(2), (std::vector<float>{1, 0.5F}));
    // One example that they survive, one that they do not: w = (1, -1.5) afterwards.
    lone.Learn(Columns().AddDense({1, 0}, 1).batch());
    EXPECT_EQ(lone.Weights(2), (std::vector<float>{1, 0.5F}));
    lone.Learn(Columns().AddDense({0, 2}, -1).batch());
    // Two examples evaluated since: w after the first is (1, 0.5), after the second (1, -1.5). The
    // pocket's run of one stands.
    const std::vector<float> expected =
        kind == "averaged-perceptron" ? std::vector<float>{1, -0.5F} : std::vector<float>{1, 0.5F};
    EXPECT_EQ(lone.Weights(2), expected);
  }
}

TEST(WeightReplacement, NumbersThatNoExampleHasHadStayWithoutAClass) {
  LoneModel lone(SettingsOf({.dimension = 2, .classes = kClasses}, ClassKind::kNumbered));
  const std::vector<SvmExample> examples = {
      {0, {0, 1}, {1, 0.5F}}, {3, {0, 1}, {-1, 2}}, {0, {0, 1}, {2, 0}}, {3, {0, 1}, {0, 3}}};
  lone.Learn(Columns(examples).batch());
  const ModelAnalysis analysis = Analyzed(*lone.model).value();
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
  EXPECT_NEAR(LeastMargin(lone, examples, true), 1, 1e-5);
  EXPECT_EQ(LearnedState(*Reload(lone)), LearnedState(*lone.model));
}

TEST(WeightReplacement, AClassThatCameSinceTheAnalysisHasWeightsOfZero) {
  LoneModel lone(SettingsOf({.dimension = 3, .classes = kClasses}, ClassKind::kNumbered));
  lone.Learn(Columns().AddDense({1, 0, 0}, 0).AddDense({0, 1, 0}, 1).batch());
  const ModelAnalysis analysis = Analyzed(*lone.model).value();
  lone.Learn(Columns().AddDense({0, 0, 1}, 2).batch());
  ASSERT_OK(lone.model->ReplaceWeights(*analysis.separator, std::nullopt).status());
  const std::vector<WeightList> lists = ListWeights(*lone.model);
  ASSERT_EQ(lists.size(), 3U);
  EXPECT_FALSE(lists[0].values.empty());
  EXPECT_TRUE(lists[2].values.empty());
  EXPECT_EQ(lists[2].bias, 0);
  EXPECT_EQ(LearnedState(*Reload(lone)), LearnedState(*lone.model));
}

}  // namespace
}  // namespace perceptrond::model_analysis_test
