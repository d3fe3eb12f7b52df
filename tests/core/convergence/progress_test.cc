// Counters and the window against a reference that remembers every example.
#include "core/convergence/progress.h"

#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace perceptrond {
namespace {

// Every example that was counted: its y s.
class BruteForce {
 public:
  void Add(double signed_score) { scores_.push_back(signed_score); }
  uint64_t Mistakes() const { return Mistakes(0); }
  uint64_t Streak() const {
    uint64_t streak = 0;
    while (streak < scores_.size() && scores_[scores_.size() - 1 - streak] > 0) ++streak;
    return streak;
  }
  size_t WindowBegin() const { return scores_.size() < 1000 ? 0 : scores_.size() - 1000; }
  double WindowError() const {
    return static_cast<double>(Mistakes(WindowBegin())) /
           static_cast<double>(scores_.size() - WindowBegin());
  }
  double WindowRisk() const {
    double risk = 0;
    for (size_t i = WindowBegin(); i < scores_.size(); ++i) risk += std::max(0.0, -scores_[i]);
    return risk / static_cast<double>(scores_.size() - WindowBegin());
  }
  size_t size() const { return scores_.size(); }

 private:
  uint64_t Mistakes(size_t begin) const {
    uint64_t mistakes = 0;
    for (size_t i = begin; i < scores_.size(); ++i) mistakes += scores_[i] <= 0 ? 1 : 0;
    return mistakes;
  }
  std::vector<double> scores_;
};

// Judges one example; y = +1.
void Judge(Tally& tally, double score) {
  Judgement judgement;
  judgement.score = score;
  judgement.mistake = score <= 0;
  tally.Judged(judgement, 1, 2);
  if (judgement.mistake) ++tally.updates;
}

// A stretch of correct answers, mostly ended by a mistake.
Tally Stretch(std::mt19937& random, BruteForce& all, unsigned longest) {
  std::uniform_real_distribution<double> uniform(0.01, 3);
  Tally tally;
  const auto add = [&](double score) {
    all.Add(score);
    Judge(tally, score);
  };
  for (unsigned i = random() % (longest + 1); i > 0; --i) add(uniform(random));
  if (random() % 4 != 0) add(random() % 10 == 0 ? 0.0 : -uniform(random));
  return tally;
}

TEST(Progress, AgreesWithAReferenceThatRemembersEverything) {
  for (const unsigned longest : {0U, 3U, 50U, 700U, 2500U}) {
    std::mt19937 random(longest + 1);
    Progress progress;
    BruteForce all;
    for (int i = 0; i < 300 && all.size() < 20000; ++i) {
      progress.Add(Stretch(random, all, longest));
      if (all.size() == 0) continue;
      const Report report = progress.MakeReport(0, TheoremContext());
      ASSERT_EQ(report.counters.examples, all.size());
      ASSERT_EQ(report.counters.mistakes, all.Mistakes());
      ASSERT_EQ(report.counters.updates, all.Mistakes());
      ASSERT_EQ(report.counters.streak, all.Streak());
      ASSERT_EQ(report.window_examples, all.size() - all.WindowBegin());
      ASSERT_NEAR(*report.window_error, all.WindowError(), 1e-12) << all.size();
      ASSERT_NEAR(*report.window_risk, all.WindowRisk(), 1e-9) << all.size();
      ASSERT_NEAR(*report.progressive_error,
                  static_cast<double>(all.Mistakes()) / static_cast<double>(all.size()), 1e-12);
    }
  }
}

TEST(Progress, AfterARestartCountsOnAndBeginsTheWindowAnew) {
  std::mt19937 random(1);
  Progress before;
  BruteForce all;
  for (int i = 0; i < 100; ++i) before.Add(Stretch(random, all, 5));
  Progress after(before.counters());
  EXPECT_EQ(after.MakeReport(0, TheoremContext()).window_examples, 0U);
  EXPECT_FALSE(after.MakeReport(0, TheoremContext()).window_error.has_value());
  BruteForce since;
  for (int i = 0; i < 20; ++i) {
    const Tally tally = Stretch(random, since, 5);
    before.Add(tally);
    after.Add(tally);
  }
  const Report report = after.MakeReport(0, TheoremContext());
  EXPECT_EQ(report.window_examples, since.size());
  EXPECT_NEAR(*report.window_error, since.WindowError(), 1e-12);
  EXPECT_EQ(report.counters.examples, before.counters().examples);
  EXPECT_EQ(report.counters.mistakes, before.counters().mistakes);
  EXPECT_EQ(report.counters.streak, before.counters().streak);
}

TEST(Progress, CountsRefusalsAndReplaysApart) {
  Progress progress;
  Tally tally;
  tally.Rejected(Fault::kNonFiniteValue);
  tally.Rejected(Fault::kNonFiniteValue);
  tally.Rejected(Fault::kUnknownLabel);
  tally.duplicates = 5;
  progress.Add(tally);
  const Counters& counters = progress.counters();
  EXPECT_EQ(counters.examples, 0U);
  EXPECT_EQ(counters.streak, 0U);
  EXPECT_EQ(counters.duplicates, 5U);
  EXPECT_EQ(counters.rejected[static_cast<size_t>(Fault::kNonFiniteValue)], 2U);
  EXPECT_EQ(counters.rejected[static_cast<size_t>(Fault::kUnknownLabel)], 1U);
}

TEST(Progress, KeepsTheLatestFloor) {
  Progress progress;
  PassSummary pass;
  pass.margin = 0.5;
  pass.squared_radius = 4;
  progress.AddPass(pass);
  pass.margin = 0.25;
  pass.squared_radius = 9;
  progress.AddPass(pass);
  TheoremContext context;
  context.applies = true;
  const Report report = progress.MakeReport(1, context);
  EXPECT_EQ(report.margin_floor, 0.25);
  EXPECT_EQ(report.update_bound, 144.0);
}

TEST(Progress, DropsAFloorThatTheCeilingContradicts) {
  Progress progress;
  PassSummary pass;
  pass.margin = 0.5;
  pass.squared_radius = 4;
  progress.AddPass(pass);
  Tally mistakes;
  mistakes.examples = mistakes.mistakes = mistakes.updates = 1;
  for (int i = 0; i < 4; ++i) progress.Add(mistakes);
  TheoremContext context;
  context.applies = true;
  // Four updates: ||theta|| / 4 is the ceiling.
  EXPECT_TRUE(progress.MakeReport(4, context).margin_floor.has_value());
  const Report report = progress.MakeReport(1, context);
  EXPECT_EQ(report.margin_ceiling, 0.25);
  EXPECT_FALSE(report.margin_floor.has_value());
  EXPECT_FALSE(report.update_bound.has_value());
}

TEST(PassProgress, SumsUpItsStretches) {
  std::mt19937 random(3);
  BruteForce all;
  PassProgress pass;
  double risk = 0;
  uint64_t revision = 7;
  for (int i = 0; i < 50; ++i) {
    const Tally tally = Stretch(random, all, 5);
    pass.Add(tally, revision);
    revision += tally.updates;
    risk += tally.risk;
  }
  const PassSummary summary = pass.End(3, revision, 2);
  EXPECT_EQ(summary.number, 3);
  EXPECT_EQ(summary.examples, all.size());
  EXPECT_EQ(summary.mistakes, all.Mistakes());
  EXPECT_EQ(summary.updates, all.Mistakes());
  EXPECT_NEAR(summary.risk, risk, 1e-9);
  EXPECT_FALSE(summary.converged);
  EXPECT_FALSE(summary.margin.has_value());
}

TEST(PassProgress, ConvergesOnOneRevisionWithTheSmallestMargin) {
  PassProgress pass;
  Tally tally;
  Judge(tally, 3);
  Judge(tally, 1.5);
  pass.Add(tally, 4);
  const PassSummary summary = pass.End(1, 4, 3);
  EXPECT_TRUE(summary.converged);
  EXPECT_EQ(summary.margin, 0.5);
}

TEST(PassProgress, DoesNotConvergeIfAnotherChangedTheModelBeforeTheMark) {
  PassProgress pass;
  Tally tally;
  Judge(tally, 3);
  pass.Add(tally, 4);
  EXPECT_FALSE(pass.End(1, 5, 3).converged);
}

TEST(PassProgress, DoesNotConvergeIfItsStretchesSawTwoRevisions) {
  PassProgress pass;
  Tally tally;
  Judge(tally, 3);
  pass.Add(tally, 4);
  pass.Add(tally, 5);
  EXPECT_FALSE(pass.End(1, 5, 3).converged);
}

TEST(PassProgress, OfNoExampleHasNotConverged) {
  Tally refused;
  refused.Rejected(Fault::kNonFiniteValue);
  PassProgress pass;
  pass.Add(refused, 4);
  const PassSummary summary = pass.End(1, 4, 3);
  EXPECT_FALSE(summary.converged);
  EXPECT_EQ(summary.rejected, 1U);
}

}  // namespace
}  // namespace perceptrond
