// How an analysis is limited, cancelled and watched.
#include <limits>

#include "tests/core/convergence/separation_checks.h"
#include "tests/support/separable.h"

namespace perceptrond {
namespace {

using testing::AnalyzeAll;
using testing::AnalyzeWith;
using testing::ExpectCeiling;
using testing::ExpectSeparates;
using testing::MakeSeparable;
using testing::Noise;
using testing::RowsOf;
using testing::SeparableData;

TEST(Limits, ACertificateOfMoreRowsIsNotClaimed) {
  AnalysisOptions options;
  options.max_certificate_rows = 61;
  const Analysis analysis = AnalyzeWith(Noise(9, 400, 60), options);
  EXPECT_EQ(analysis.separability, Separability::kUndecided);
  EXPECT_EQ(analysis.end, AnalysisEnd::kCertificateTooLarge);
  EXPECT_TRUE(analysis.certificate.empty());
}

TEST(Limits, EndWithTheBoundsProvenByThen) {
  const SeparableData data = MakeSeparable(10, 3000, 20, 0.02, 1);
  AnalysisOptions options;
  options.max_rounds = 2;
  const Analysis rounds = AnalyzeWith(data.examples, options);
  EXPECT_EQ(rounds.end, AnalysisEnd::kOutOfRounds);
  EXPECT_EQ(rounds.rounds, 2U);
  EXPECT_GE(rounds.margin_ceiling, data.margin);
  ExpectCeiling(data.examples, 1, rounds);
  options = AnalysisOptions();
  options.max_support_rows = 3;
  const Analysis support = AnalyzeWith(data.examples, options);
  EXPECT_EQ(support.end, AnalysisEnd::kTooManySupportRows);
  EXPECT_GE(support.margin_ceiling, data.margin);
}

TEST(Cancelling, AtAnyCallEndsWithTrueBounds) {
  const SeparableData data = MakeSeparable(11, 4000, 100, 0.01, 1);
  const auto rows = RowsOf(data.examples);
  int calls = 0;
  Analyze(rows, AnalysisOptions(), [&](const AnalysisProgress&) { return ++calls > 0; });
  ASSERT_GT(calls, 3);
  for (int at = 1; at <= calls; ++at) {
    int left = at;
    const Analysis analysis =
        Analyze(rows, AnalysisOptions(), [&](const AnalysisProgress&) { return --left > 0; });
    ASSERT_EQ(left, 0) << "called again after it cancelled";
    EXPECT_EQ(analysis.end, AnalysisEnd::kCancelled);
    EXPECT_GE(analysis.margin_ceiling, data.margin);
    EXPECT_EQ(analysis.separability == Separability::kSeparable, analysis.margin_floor > 0);
    if (analysis.separator) ExpectSeparates(data.examples, 1, *analysis.separator);
  }
}

TEST(Progress, NeverLosesABound) {
  const SeparableData data = MakeSeparable(12, 4000, 100, 0.01, 1);
  AnalysisProgress last;
  last.margin_ceiling = std::numeric_limits<double>::infinity();
  const auto rows = RowsOf(data.examples);
  const auto watch = [&](const AnalysisProgress& now) {
    EXPECT_GE(now.margin_floor, last.margin_floor);
    EXPECT_LE(now.margin_ceiling, last.margin_ceiling);
    EXPECT_GE(now.round, last.round);
    EXPECT_GE(now.working_rows, last.working_rows);
    EXPECT_LE(now.working_rows, rows.size());
    last = now;
    return true;
  };
  const Analysis analysis = Analyze(rows, AnalysisOptions(), watch);
  EXPECT_GE(analysis.margin_floor, last.margin_floor);
  EXPECT_LE(analysis.margin_ceiling, last.margin_ceiling);
}

}  // namespace
}  // namespace perceptrond
