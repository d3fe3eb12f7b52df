// The margin's floor and ceiling: which passes and updates set them, and what they prove for good.
#include <array>
#include <limits>

#include "core/convergence/progress.h"
#include "gtest/gtest.h"
#include "tests/core/convergence/progress_updates.h"

namespace perceptrond {
namespace {

using testing::Applies;
using testing::UpdateTo;

TEST(ProgressBounds, KeepsTheLatestFloor) {
  Progress progress;
  PassSummary pass;
  pass.set_margin(0.5);
  progress.AddPass(pass, 4);
  pass.set_margin(0.25);
  progress.AddPass(pass, 9);
  TheoremContext context;
  context.applies = true;
  const ConvergenceReport report = progress.MakeReport(1, context);
  EXPECT_EQ(report.margin_floor(), 0.25);
  EXPECT_EQ(report.update_bound(), 144.0);
}

TEST(ProgressBounds, APassThatIsRightWithoutAMarginLeavesNoFloor) {
  Progress progress;
  PassSummary pass;
  pass.set_converged(true);
  pass.set_margin(0.5);
  progress.AddPass(pass, 4);
  TheoremContext context;
  context.applies = true;
  EXPECT_EQ(progress.MakeReport(1, context).margin_floor(), 0.5);
  PassSummary changed;
  progress.AddPass(changed, 0);
  EXPECT_EQ(progress.MakeReport(1, context).margin_floor(), 0.5);
  pass.clear_margin();
  progress.AddPass(pass, 0);
  const ConvergenceReport report = progress.MakeReport(1, context);
  EXPECT_FALSE(report.has_margin_floor());
  EXPECT_FALSE(report.has_update_bound());
}

TEST(ProgressBounds, AFloorThatTheCeilingContradictedStaysAway) {
  Progress progress;
  PassSummary pass;
  pass.set_margin(0.5);
  progress.AddPass(pass, 4);
  progress.Add(UpdateTo(1));
  EXPECT_TRUE(progress.MakeReport(1, Applies()).has_margin_floor());
  progress.Add(UpdateTo(0.5));
  EXPECT_FALSE(progress.MakeReport(0.25, Applies()).has_margin_floor());
  progress.Add(UpdateTo(3));
  const ConvergenceReport report = progress.MakeReport(9, Applies());
  EXPECT_FALSE(report.has_margin_floor());
  EXPECT_FALSE(report.has_update_bound());
}

// A model with the proof that no margin exceeds 0.1, beside an earlier pass with one of 0.5.
Progress Contradicted() {
  Progress progress;
  PassSummary pass;
  pass.set_margin(0.5);
  progress.AddPass(pass, 4);
  for (const double norm : {1.0, 0.2}) progress.Add(UpdateTo(norm));
  return progress;
}

void ExpectProof(const ConvergenceReport& report) {
  EXPECT_NEAR(report.margin_ceiling(), 0.1, 1e-9);
  EXPECT_TRUE(report.margin_refuted());
  EXPECT_EQ(report.state(), ::perceptron::v1::CONVERGENCE_STATE_REFUTED);
  EXPECT_FALSE(report.has_margin_floor());
  EXPECT_FALSE(report.has_update_bound());
}

TEST(ProgressBounds, AProofStandsAfterARollbackToTheStart) {
  const Progress now = Contradicted();
  Progress progress(RollBackCounters(now.counters(), Progress().counters()));
  ExpectProof(progress.MakeReport(0, Applies(0.5)));
  progress.Add(UpdateTo(1));
  ExpectProof(progress.MakeReport(1, Applies(0.5)));
}

TEST(ProgressBounds, AProofOfTheDataStandsAfterTheWeightsAreReplaced) {
  Progress progress = Contradicted();
  progress.AddWeightReplacement(3);
  ExpectProof(progress.MakeReport(1, Applies(0.5)));
  progress.Add(UpdateTo(0));
  const ConvergenceReport report = progress.MakeReport(0, Applies(0.5));
  ExpectProof(report);
  EXPECT_FALSE(report.has_not_separable());
  EXPECT_FALSE(report.has_bound_in_use());
}

TEST(ProgressBounds, ComingBackToZeroProvesThatNothingSeparatesForGood) {
  Progress progress;
  progress.Add(UpdateTo(1));
  EXPECT_TRUE(progress.MakeReport(1, Applies()).has_not_separable());
  EXPECT_FALSE(progress.MakeReport(1, Applies()).not_separable());
  progress.Add(UpdateTo(0));
  progress.Add(UpdateTo(1));
  const ConvergenceReport report = progress.MakeReport(1, Applies());
  EXPECT_EQ(report.not_separable(), true);
  EXPECT_EQ(report.state(), ::perceptron::v1::CONVERGENCE_STATE_NOT_SEPARABLE);
  EXPECT_FALSE(progress.MakeReport(1, TheoremContext()).has_not_separable());
}

TEST(ProgressBounds, ZeroProvesNothingWhereArithmeticMayHaveRounded) {
  for (const double step : {0x1p25, std::numeric_limits<double>::infinity()}) {
    Progress progress;
    Tally update = UpdateTo(1);
    update.whole_step = step;
    update.rounding = 1e-3;
    progress.Add(update);
    update = UpdateTo(0);
    update.rounding = 1e-3;
    progress.Add(update);
    const ConvergenceReport report = progress.MakeReport(0, Applies());
    EXPECT_TRUE(report.has_not_separable());
    EXPECT_FALSE(report.not_separable());
    // The ceiling allows for what rounding may have taken away.
    EXPECT_GT(report.margin_ceiling(), 0);
  }
}

// It may have been over a part of the data seen.
TEST(ProgressBounds, APassWithoutAnUpdateSaysNothingOfTheUpdatesLeft) {
  Progress progress;
  progress.Add(UpdateTo(1));
  PassSummary pass;
  pass.set_converged(true);
  pass.set_margin(0.5);
  progress.AddPass(pass, 4);
  // Whatever the rule.
  for (const TheoremContext& context : {Applies(), TheoremContext()}) {
    const ConvergenceReport report = progress.MakeReport(1, context);
    EXPECT_EQ(report.state(), ::perceptron::v1::CONVERGENCE_STATE_CONVERGED);
    EXPECT_FALSE(report.has_updates_left());
  }
}

TEST(ProgressBounds, AProofOfInseparabilityLowersTheCeilingAndRemovesFloorAndBounds) {
  namespace v1 = ::perceptron::v1;
  Progress progress;
  progress.Add(UpdateTo(1));
  PassSummary pass;
  pass.set_converged(true);
  pass.set_margin(0.25);
  progress.AddPass(pass, 4);
  v1::Analysis analysis;
  analysis.set_separability(v1::SEPARABILITY_SEPARABLE);
  analysis.set_margin_lower(0.3);
  analysis.set_margin_upper(0.4);
  progress.AddAnalysis(analysis);
  EXPECT_EQ(progress.MakeReport(1, Applies()).margin_ceiling(), 0.4);
  EXPECT_TRUE(progress.MakeReport(1, Applies()).has_update_bound());
  analysis = v1::Analysis();
  analysis.set_separability(v1::SEPARABILITY_NOT_SEPARABLE);
  progress.AddAnalysis(analysis);
  // Also for a rule that the theorem says nothing of.
  for (const TheoremContext& context : {Applies(), TheoremContext()}) {
    const ConvergenceReport report = progress.MakeReport(1, context);
    EXPECT_EQ(report.state(), v1::CONVERGENCE_STATE_NOT_SEPARABLE);
    ASSERT_TRUE(report.has_margin_ceiling());
    EXPECT_EQ(report.margin_ceiling(), 0);
    EXPECT_FALSE(report.has_margin_floor());
    EXPECT_FALSE(report.has_update_bound());
    EXPECT_FALSE(report.has_updates_left());
  }
}

// Two examples that can be separated.
::perceptron::v1::Analysis AnalysisOfTwo() {
  ::perceptron::v1::Analysis analysis;
  analysis.set_separability(::perceptron::v1::SEPARABILITY_SEPARABLE);
  analysis.set_examples(2);
  analysis.set_margin_lower(0.3);
  analysis.set_margin_upper(0.4);
  return analysis;
}

TEST(ProgressBounds, AProofRemovesTheVerdictOfAnAnalysisThatHadNotItsExamples) {
  namespace v1 = ::perceptron::v1;
  v1::Analysis analysis = AnalysisOfTwo();
  Progress progress;
  progress.Add(UpdateTo(1));
  progress.AddAnalysis(analysis);
  EXPECT_TRUE(progress.MakeReport(1, Applies()).analysis().has_margin_lower());
  progress.Add(UpdateTo(0));
  // Also of one that came after the proof.
  for (int i = 0; i < 2; ++i) {
    // Also of a model that is not in memory.
    for (const ConvergenceReport& report :
         {progress.MakeReport(0, Applies()), progress.MakeStoredReport(Applies())}) {
      EXPECT_EQ(report.state(), v1::CONVERGENCE_STATE_NOT_SEPARABLE);
      EXPECT_EQ(report.analysis().examples(), 2U);
      EXPECT_EQ(report.analysis().separability(), v1::SEPARABILITY_UNSPECIFIED);
      EXPECT_FALSE(report.analysis().has_margin_lower());
      EXPECT_FALSE(report.analysis().has_margin_upper());
    }
    progress.AddAnalysis(analysis);
  }
  analysis.set_separability(v1::SEPARABILITY_NOT_SEPARABLE);
  progress.AddAnalysis(analysis);
  EXPECT_EQ(progress.MakeReport(0, Applies()).analysis().separability(),
            v1::SEPARABILITY_NOT_SEPARABLE);
}

TEST(ProgressBounds, AProofRemovesALargerMarginOfAnAnalysisOfAPartOfTheData) {
  namespace v1 = ::perceptron::v1;
  Progress progress;
  progress.Add(UpdateTo(1));
  progress.AddAnalysis(AnalysisOfTwo());
  const auto reports = [&] {
    return std::array{progress.MakeReport(0, Applies(0.5)),
                      progress.MakeStoredReport(Applies(0.5))};
  };
  // Refuted by the analysis itself, whose margins stand.
  for (const ConvergenceReport& report : reports()) {
    EXPECT_EQ(report.state(), v1::CONVERGENCE_STATE_REFUTED);
    EXPECT_EQ(report.analysis().separability(), v1::SEPARABILITY_SEPARABLE);
    EXPECT_EQ(report.analysis().margin_lower(), 0.3);
  }
  // A ceiling of 0.1 for all data.
  progress.Add(UpdateTo(0.2));
  for (const ConvergenceReport& report : reports()) {
    EXPECT_EQ(report.state(), v1::CONVERGENCE_STATE_REFUTED);
    EXPECT_EQ(report.analysis().examples(), 2U);
    EXPECT_EQ(report.analysis().separability(), v1::SEPARABILITY_UNSPECIFIED);
    EXPECT_FALSE(report.analysis().has_margin_lower());
    EXPECT_FALSE(report.analysis().has_margin_upper());
  }
  EXPECT_FALSE(progress.MakeStoredReport(Applies(0.5)).analysis().has_current());
}

}  // namespace
}  // namespace perceptrond
