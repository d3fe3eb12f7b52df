// Analyses of stored examples, and their figures in reports.
#include "core/model/model_analysis.h"

#include <cmath>
#include <random>

#include "core/learner/catalogue.h"
#include "gtest/gtest.h"
#include "tests/core/model/analysed_model.h"
#include "tests/support/learners.h"
#include "tests/support/models.h"
#include "tests/support/separable.h"

namespace perceptrond {
namespace {

using testing::Analyzed;
using testing::Columns;
using testing::DenseSettings;
using testing::LoneModel;
using testing::MakeSeparable;
using testing::Reload;
using testing::Sampled;
using testing::SeparableData;
using testing::SvmExample;
namespace v1 = ::perceptron::v1;

// The reference: all of the rows, straight into the solver, whose claims have tests of their own.
Analysis Solve(const std::vector<SvmExample>& examples, double b) {
  std::vector<LabelledRow> rows;
  for (const SvmExample& example : examples) {
    rows.push_back({{example.indices.empty() ? kNoIndices : example.indices.data(),
                     example.values.data(), example.indices.size()},
                    example.label});
  }
  AnalysisOptions options;
  options.bias_input = b;
  return Analyze(rows, options, [](const AnalysisProgress&) { return true; });
}

struct Setup {
  uint32_t dimension;
  double margin;
  double bias_input;
  double step_size;
  uint32_t sample;
};

void PrintTo(const Setup& setup, std::ostream* out) {
  *out << "d=" << setup.dimension << " margin=" << setup.margin << " b=" << setup.bias_input
       << " eta=" << setup.step_size << " sample=" << setup.sample;
}

class AnalysedRun : public ::testing::TestWithParam<Setup> {
 protected:
  static constexpr size_t kExamples = 240;
  static constexpr size_t kStretch = 40;

  static v1::Model Settings() {
    v1::Model settings = Sampled(GetParam().dimension, GetParam().sample);
    settings.mutable_learner()->set_bias_input(GetParam().bias_input);
    testing::SetNumber(*settings.mutable_learner(), "step_size", GetParam().step_size);
    return settings;
  }
  // Updates until a pass over the data seen changes nothing.
  static uint64_t UpdatesToConverge(LoneModel& lone, const std::vector<SvmExample>& seen) {
    const uint64_t before = lone.model->revision();
    for (uint64_t revision = before + 1; revision != lone.model->revision();) {
      revision = lone.model->revision();
      lone.Learn(Columns(seen).batch());
    }
    return lone.model->revision() - before;
  }
};

// Whatever the moment of the analysis and of the report: no figure is wrong.
TEST_P(AnalysedRun, EveryFigureIsValidOrAbsent) {
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    const SeparableData data = MakeSeparable(seed, kExamples, GetParam().dimension,
                                             GetParam().margin, GetParam().bias_input);
    for (size_t analysed = kStretch; analysed <= kExamples; analysed += kStretch) {
      LoneModel lone(Settings());
      for (size_t at = 0; at < kExamples; at += kStretch) {
        lone.Learn(Columns(data.examples, at, at + kStretch).batch());
        const size_t seen = at + kStretch;
        if (seen == analysed) ASSERT_OK(Analyzed(*lone.model).status());
        if (seen < analysed) continue;
        const std::vector<SvmExample> so_far(
            data.examples.begin(), data.examples.begin() + static_cast<std::ptrdiff_t>(seen));
        const Analysis truth = Solve(so_far, GetParam().bias_input);
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
        LoneModel on(Settings());
        on.Learn(Columns(so_far).batch());
        ASSERT_EQ(on.model->revision(), lone.model->revision());
        EXPECT_LE(UpdatesToConverge(on, so_far), report.updates_left());
      }
    }
  }
}

// The sample holds every example.
class CompleteRun : public AnalysedRun {};

// The same data again change nothing of what is known of them.
TEST_P(CompleteRun, RepetitionsLeaveTheAnalysisCurrent) {
  const SeparableData data =
      MakeSeparable(4, kExamples, GetParam().dimension, GetParam().margin, GetParam().bias_input);
  LoneModel lone(Settings());
  lone.Learn(Columns(data.examples).batch());
  ASSERT_OK(Analyzed(*lone.model).status());
  const uint64_t most = lone.model->revision() + MakeReport(*lone.model).updates_left();
  UpdatesToConverge(lone, data.examples);
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

// An example that counts less takes more updates than the bound; that it was right so far says
// nothing.
TEST_P(CompleteRun, ExamplesThatCountOtherwiseEndWhatIsSaidOfUpdates) {
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    const SeparableData data = MakeSeparable(seed, kExamples, GetParam().dimension,
                                             GetParam().margin, GetParam().bias_input);
    LoneModel lone(Settings());
    const Columns columns(data.examples);
    const uint64_t updates = UpdatesToConverge(lone, data.examples);
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
      // It has converged all the same, which is no bound.
      EXPECT_EQ(report.updates_left(), 0U);
      EXPECT_FALSE(report.has_update_bound());
      // What they say of the data, or of the updates made, is as true as before.
      EXPECT_TRUE(report.has_margin_ceiling());
      EXPECT_TRUE(report.has_margin_floor());
      EXPECT_TRUE(report.has_bound_in_use());
    }
  }
}

const auto kComplete = ::testing::Values(
    Setup{2, 0.1, 1, 1, 1000}, Setup{2, 0.05, 0, 1, 1000}, Setup{5, 0.1, 1, 0.1, 240},
    Setup{5, 0.1, 0, 8, 1000}, Setup{20, 0.05, 0.25, 1, 1000}, Setup{20, 0.05, 4, 0.003, 1000});

INSTANTIATE_TEST_SUITE_P(Separable, AnalysedRun, kComplete);
INSTANTIATE_TEST_SUITE_P(Separable, CompleteRun, kComplete);
INSTANTIATE_TEST_SUITE_P(SeparableAndSampled, AnalysedRun,
                         ::testing::Values(Setup{5, 0.1, 1, 1, 100}));

TEST(ModelAnalysis, ACertificateIsAProofForEveryLearnerOfTheFeaturesSpace) {
  const Columns xor_ = Columns()
                           .AddDense({-1, -1.5}, 1)
                           .AddDense({1, 1.5}, 1)
                           .AddDense({-1, 1.5}, -1)
                           .AddDense({1, -1.5}, -1);
  for (const CatalogueEntry& entry : Catalogue()) {
    if (entry.form == Form::kKernel) continue;
    v1::Model settings = Sampled(2);
    testing::SetLearner(*settings.mutable_learner(), entry.name);
    settings.set_margin_of_interest(0.5);
    LoneModel lone(settings);
    lone.Learn(xor_.batch());
    const ModelAnalysis analysis = Analyzed(*lone.model).value();
    EXPECT_EQ(analysis.analysis.separability, Separability::kNotSeparable) << entry.name;
    EXPECT_EQ(analysis.analysis.certificate.size(), 4U);
    EXPECT_FALSE(analysis.separator.has_value());
    // More data do not undo it, nor does a restart.
    lone.Learn(Columns().AddDense({3, 1}, 1).batch());
    for (const std::shared_ptr<Model>& model : {lone.model, Reload(lone)}) {
      const ConvergenceReport report = MakeReport(*model);
      EXPECT_EQ(report.not_separable(), true);
      EXPECT_EQ(report.margin_refuted(), true);
      EXPECT_EQ(report.state(), ::perceptron::v1::CONVERGENCE_STATE_NOT_SEPARABLE);
      EXPECT_FALSE(report.has_margin_floor());
      EXPECT_FALSE(report.has_update_bound());
      EXPECT_FALSE(report.has_updates_left());
      EXPECT_EQ(report.margin_ceiling(), 0) << entry.name;
    }
  }
}

// Whatever the rule: no run is said to be bound by what it goes beyond, and the plain perceptron's
// is.
TEST(ModelAnalysis, BoundsUpdatesOnlyOfTheRulesThatTheTheoremSpeaksOf) {
  for (const CatalogueEntry& entry : Catalogue()) {
    if (entry.form == Form::kKernel) continue;
    v1::Model settings = Sampled(5);
    testing::SetLearner(*settings.mutable_learner(), entry.name);
    LoneModel lone(settings);
    const SeparableData data = MakeSeparable(3, 200, 5, 0.2, 1);
    const Columns columns(data.examples);
    ASSERT_OK((lone.Learn(columns.batch(), 1), Analyzed(*lone.model).status()));
    for (int64_t pass = 2; pass <= 20; ++pass) {
      lone.Learn(columns.batch(), pass);
      const ConvergenceReport report = MakeReport(*lone.model);
      ASSERT_TRUE(report.has_margin_floor()) << entry.name;
      ASSERT_EQ(report.has_update_bound(), entry.convergence_theorem) << entry.name;
      const bool converged = report.state() == ::perceptron::v1::CONVERGENCE_STATE_CONVERGED;
      ASSERT_EQ(report.has_updates_left(), entry.convergence_theorem || converged) << entry.name;
      ASSERT_TRUE(!converged || report.updates_left() == 0) << entry.name;
      ASSERT_LE(static_cast<double>(report.updates()),
                (report.has_update_bound() ? report.update_bound() : INFINITY));
    }
    if (!MakeReport(*lone.model).has_update_bound()) continue;
    // Weights from elsewhere end it.
    const ModelAnalysis analysis = Analyzed(*lone.model).value();
    if (!lone.model->ReplaceWeights(*analysis.separator, std::nullopt).ok()) continue;
    EXPECT_FALSE(MakeReport(*lone.model).has_update_bound()) << entry.name;
  }
}

// XOR, which nothing separates but a kernel.
TEST(ModelAnalysis, OfAKernelsSpaceIsRefusedAndEntersNothing) {
  v1::Model settings = Sampled(2);
  settings.mutable_learner()->mutable_kernel_perceptron();
  settings.mutable_learner()->mutable_kernel_perceptron()->mutable_kernel()->mutable_polynomial();
  settings.set_margin_of_interest(0.01);
  LoneModel lone(settings);
  const Columns xor_ =
      Columns().AddDense({0, 0}, -1).AddDense({0, 1}, 1).AddDense({1, 0}, 1).AddDense({1, 1}, -1);
  int64_t pass = 1;
  while (!lone.Learn(xor_.batch(), pass).pass->converged()) ASSERT_LT(++pass, 100);
  const absl::Status status = Analyzed(*lone.model).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(testing::ReasonOf(status), "KERNEL_SPACE");
  for (const std::shared_ptr<Model>& model : {lone.model, Reload(lone)}) {
    const ConvergenceReport report = MakeReport(*model);
    EXPECT_EQ(report.state(), ::perceptron::v1::CONVERGENCE_STATE_CONVERGED);
    EXPECT_FALSE(report.has_analysis());
    EXPECT_FALSE(report.has_margin_ceiling());
    EXPECT_FALSE(report.has_margin_floor());
    EXPECT_FALSE(report.has_update_bound());
    EXPECT_EQ(report.updates_left(), 0U);
    EXPECT_FALSE(report.has_margin_refuted());
    EXPECT_FALSE(report.has_not_separable());
    // (1, 1) with itself: (1 + 2)^2, and 1 for the offset.
    EXPECT_DOUBLE_EQ(report.radius(), std::sqrt(10));
  }
}

TEST(ModelAnalysis, NothingStoredIsSaid) {
  LoneModel lone(DenseSettings("m", 2));
  EXPECT_TRUE(absl::IsFailedPrecondition(Analyzed(*lone.model).status()));
}

TEST(ModelAnalysis, CancellingReportsNothing) {
  const SeparableData data = MakeSeparable(1, 300, 5, 0.05, 1);
  LoneModel lone(Sampled(5));
  lone.Learn(Columns(data.examples).batch());
  const auto status =
      AnalyzeModel(*lone.model, {}, [](const ModelAnalysisProgress&) { return false; }).status();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_EQ(testing::ReasonOf(status), "ANALYSIS_CANCELLED");
  EXPECT_FALSE(MakeReport(*lone.model).has_analysis());
}

}  // namespace
}  // namespace perceptrond
