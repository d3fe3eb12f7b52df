// How an analysis is limited, cancelled, watched and repeated.
#include <future>
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

void ExpectSameBits(const Analysis& a, const Analysis& b) {
  EXPECT_EQ(a.margin_floor, b.margin_floor);
  EXPECT_EQ(a.margin_ceiling, b.margin_ceiling);
  ASSERT_EQ(a.support.size(), b.support.size());
  for (size_t k = 0; k < a.support.size(); ++k)
    EXPECT_EQ(a.support[k].multiplier, b.support[k].multiplier);
  ASSERT_EQ(a.separator->vectors[0].weights.size(), b.separator->vectors[0].weights.size());
  for (size_t k = 0; k < a.separator->vectors[0].weights.size(); ++k)
    EXPECT_EQ(a.separator->vectors[0].weights[k].weight, b.separator->vectors[0].weights[k].weight);
}

TEST(Repetition, GivesTheSameBits) {
  const SeparableData data = MakeSeparable(13, 1000, 30, 0.02, 1);
  ExpectSameBits(AnalyzeAll(data.examples, 1), AnalyzeAll(data.examples, 1));
}

TEST(Threads, AnalyzeAtOnceAsEachWouldAlone) {
  const SeparableData data = MakeSeparable(14, 1000, 30, 0.02, 1);
  const auto noise = Noise(15, 120, 20);
  const auto separate = [&] { return AnalyzeAll(data.examples, 1); };
  const auto certify = [&] { return AnalyzeAll(noise, 1); };
  auto first = std::async(std::launch::async, separate);
  auto second = std::async(std::launch::async, certify);
  auto third = std::async(std::launch::async, separate);
  auto fourth = std::async(std::launch::async, certify);
  const Analysis alone = separate();
  ExpectSameBits(first.get(), alone);
  ExpectSameBits(third.get(), alone);
  const Analysis a = second.get();
  const Analysis b = fourth.get();
  ASSERT_EQ(a.separability, Separability::kNotSeparable);
  ASSERT_EQ(a.certificate.size(), b.certificate.size());
  for (size_t k = 0; k < a.certificate.size(); ++k) {
    EXPECT_EQ(a.certificate[k].example, b.certificate[k].example);
    EXPECT_EQ(a.certificate[k].multiplier, b.certificate[k].multiplier);
  }
}

}  // namespace
}  // namespace perceptrond
