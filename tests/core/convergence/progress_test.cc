// Counters and the window against a reference that remembers every example.
#include "core/convergence/progress.h"

#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/convergence/curve_points.h"
#include "gtest/gtest.h"
#include "tests/core/convergence/progress_updates.h"

namespace perceptrond {
namespace {

using testing::Applies;
using testing::UpdateTo;

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
  double ErrorOfLast(uint64_t examples) const {
    return static_cast<double>(Mistakes(scores_.size() - examples)) / static_cast<double>(examples);
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

// Evaluates one example; y = +1.
void Evaluate(Tally& tally, double score) {
  Evaluation evaluation;
  evaluation.score = score;
  evaluation.mistake = score <= 0;
  tally.AddEvaluation(evaluation, 1, 2);
  if (evaluation.mistake) ++tally.updates;
}

// A stretch of correct answers, mostly ended by a mistake.
Tally Stretch(std::mt19937& random, BruteForce& all, unsigned longest) {
  std::uniform_real_distribution<double> uniform(0.01, 3);
  Tally tally;
  const auto add = [&](double score) {
    all.Add(score);
    Evaluate(tally, score);
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
      const ConvergenceReport report = progress.MakeReport(0, TheoremContext());
      ASSERT_EQ(report.examples(), all.size());
      ASSERT_EQ(report.mistakes(), all.Mistakes());
      ASSERT_EQ(report.updates(), all.Mistakes());
      ASSERT_EQ(report.streak(), all.Streak());
      ASSERT_EQ(report.window_examples(), all.size() - all.WindowBegin());
      ASSERT_NEAR(report.window_error(), all.WindowError(), 1e-12) << all.size();
      ASSERT_NEAR(report.window_risk(), all.WindowRisk(), 1e-9) << all.size();
      ASSERT_NEAR(report.progressive_error(),
                  static_cast<double>(all.Mistakes()) / static_cast<double>(all.size()), 1e-12);
    }
  }
}

TEST(Progress, HasTheLatestHundredsOfTheWindowWhenItIsLoaded) {
  for (const unsigned longest : {0U, 3U, 50U, 700U, 2500U}) {
    std::mt19937 random(longest + 1);
    BruteForce all;
    Progress progress;
    Progress reloaded;
    for (int i = 0; i < 1000 && all.size() < 20000; ++i) {
      const Tally tally = Stretch(random, all, longest);
      progress.Add(tally);
      reloaded.Add(tally);
      // To the bit, however often it was loaded.
      const Progress::Counters stored = progress.StoredCounters();
      ASSERT_EQ(reloaded.StoredCounters().SerializeAsString(), stored.SerializeAsString());
      if (random() % 4 != 0 || all.size() == 0) continue;
      reloaded = Progress(stored);
      const ConvergenceReport report = reloaded.MakeReport(0, TheoremContext());
      ASSERT_LE(report.window_examples(), std::min<uint64_t>(all.size(), 1000));
      ASSERT_GT(report.window_examples() + 100, std::min<uint64_t>(all.size(), 1000));
      ASSERT_NEAR(report.window_error(), all.ErrorOfLast(report.window_examples()), 1e-12);
    }
  }
}

TEST(Progress, AStoredWindowThatCannotBeIsAsGoodAsItMayBe) {
  Progress::Counters counters;
  counters.mutable_report()->set_examples(150);
  counters.set_window_start(1000);
  counters.set_window_end(150);
  counters.add_window_mistakes(7);
  EXPECT_EQ(Progress(counters).MakeReport(0, TheoremContext()).window_examples(), 0U);
  // One mistake right after a start is no error of 100 % on the learning curve.
  Progress later(counters);
  Tally mistake;
  Evaluate(mistake, -1);
  later.Add(mistake);
  const ConvergenceReport short_window = later.MakeReport(0, TheoremContext());
  EXPECT_FALSE(MakePoint(short_window, absl::UnixEpoch()).has_window_error());
  counters.set_window_start(10);
  // An older server kept the fields that it does not know as they were.
  counters.set_window_end(100);
  EXPECT_EQ(Progress(counters).MakeReport(0, TheoremContext()).window_examples(), 0U);
  counters.set_window_end(150);
  counters.clear_window_mistakes();
  for (int i = 0; i < 50; ++i) counters.add_window_mistakes(1000000);
  counters.add_window_risks(NAN);
  const ConvergenceReport report = Progress(counters).MakeReport(0, TheoremContext());
  EXPECT_EQ(report.window_error(), 1);
  EXPECT_EQ(report.window_risk(), 0);
}

TEST(Progress, CountsRefusalsAndReplaysApart) {
  Progress progress;
  Tally tally;
  tally.AddRowError(ValidationCode::kNonFiniteValue);
  tally.AddRowError(ValidationCode::kNonFiniteValue);
  tally.AddRowError(ValidationCode::kUnknownLabel);
  tally.duplicates = 5;
  progress.Add(tally);
  const ConvergenceReport& counters = progress.counters().report();
  EXPECT_EQ(counters.examples(), 0U);
  EXPECT_EQ(counters.streak(), 0U);
  EXPECT_EQ(counters.duplicates(), 5U);
  EXPECT_EQ(counters.row_errors().at(ReasonName(ValidationCode::kNonFiniteValue)), 2U);
  EXPECT_EQ(counters.row_errors().at(ReasonName(ValidationCode::kUnknownLabel)), 1U);
}

TEST(Progress, TheErrorCeilingNeedsAStreakLongEnoughAndExamplesThatComeOnce) {
  Progress progress;
  progress.Add(UpdateTo(1));
  Tally right;
  right.examples = 3;
  progress.Add(right);
  EXPECT_FALSE(progress.MakeReport(1, Applies()).has_error_ceiling());
  right.examples = 997;
  progress.Add(right);
  // k = 1, m = 1000.
  EXPECT_NEAR(progress.MakeReport(1, Applies()).error_ceiling(), std::log(2 / 0.05) / 1000, 1e-12);
  progress.AddPass(PassSummary(), 0);
  EXPECT_FALSE(progress.MakeReport(1, Applies()).has_error_ceiling());
}

// A hundred thousand right answers of one kind, with mistakes among them that the model has no room
// for: the weights err on a tenth of the stream.
TEST(Progress, AMistakeThatCouldNotBeLearnedEndsTheStreakAndIsNotForgotten) {
  Progress progress;
  progress.Add(UpdateTo(1));
  Tally right;
  right.examples = 9;
  Tally unlearned;
  unlearned.AddRowError(ValidationCode::kFeatureCap);
  unlearned.unlearned = true;
  for (int i = 0; i < 1000; ++i) {
    progress.Add(right);
    progress.Add(unlearned);
    EXPECT_EQ(progress.MakeReport(1, Applies()).streak(), 0U);
  }
  right.examples = 10'000;
  progress.Add(right);
  const Progress restored(progress.counters());
  for (const Progress* one : {&std::as_const(progress), &restored}) {
    EXPECT_EQ(one->counters().report().streak(), 10'000U);
    EXPECT_FALSE(one->MakeReport(1, Applies()).has_error_ceiling());
  }
  // Other weights, and their first run.
  progress.Add(UpdateTo(2));
  progress.Add(right);
  EXPECT_TRUE(progress.MakeReport(4, Applies()).has_error_ceiling());
}

TEST(Progress, TheErrorCeilingIsOfTheWeightsThatHadTheStreak) {
  Progress progress;
  progress.Add(UpdateTo(1));
  Tally right;
  right.examples = 1000;
  progress.Add(right);
  TheoremContext others = Applies();
  others.separate_prediction_weights = true;
  EXPECT_TRUE(progress.MakeReport(1, Applies()).has_error_ceiling());
  EXPECT_FALSE(progress.MakeReport(1, others).has_error_ceiling());
}

TEST(Progress, HasConvergedUntilTheNextUpdateOrAMistakeThatCouldNotBeLearned) {
  Progress progress;
  const auto state = [&] { return progress.MakeReport(1, Applies()).state(); };
  PassSummary pass;
  pass.set_converged(true);
  Tally unlearned;
  unlearned.AddRowError(ValidationCode::kWeightOverflow);
  unlearned.unlearned = true;
  for (const Tally& change : {UpdateTo(1), unlearned}) {
    progress.Add(change);
    EXPECT_EQ(state(), ::perceptron::v1::CONVERGENCE_STATE_LEARNING);
    progress.AddPass(pass, 0);
    EXPECT_EQ(state(), ::perceptron::v1::CONVERGENCE_STATE_CONVERGED);
  }
  // A malformed row says nothing of the weights.
  Tally malformed;
  malformed.AddRowError(ValidationCode::kNonFiniteValue);
  progress.Add(malformed);
  EXPECT_EQ(state(), ::perceptron::v1::CONVERGENCE_STATE_CONVERGED);
}

TEST(Progress, DriftsWhileARiseOfTheErrorIsRecent) {
  Progress progress;
  std::mt19937 random(11);
  std::uniform_real_distribution<double> uniform;
  const auto feed = [&](int examples, double error) {
    for (int i = 0; i < examples; ++i) {
      Tally tally = uniform(random) < error ? UpdateTo(1) : Tally();
      tally.examples = 1;
      progress.Add(tally);
    }
    return progress.MakeReport(1, TheoremContext());
  };
  // Falls as it does while a model learns, and stands.
  feed(500, 0.5);
  EXPECT_EQ(feed(4000, 0.05).drift().detections(), 0U);
  const ConvergenceReport drifting = feed(400, 0.5);
  EXPECT_EQ(drifting.state(), ::perceptron::v1::CONVERGENCE_STATE_DRIFTING);
  EXPECT_GE(drifting.drift().detections(), 1U);
  EXPECT_LT(drifting.drift().error_before(), drifting.drift().error_after());
  const ConvergenceReport later = feed(3000, 0.5);
  EXPECT_EQ(later.state(), ::perceptron::v1::CONVERGENCE_STATE_LEARNING);
  EXPECT_NEAR(later.drift().window_error(), 0.5, 0.05);
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
  EXPECT_EQ(summary.number(), 3);
  EXPECT_EQ(summary.examples(), all.size());
  EXPECT_EQ(summary.mistakes(), all.Mistakes());
  EXPECT_EQ(summary.updates(), all.Mistakes());
  EXPECT_NEAR(summary.risk(), risk, 1e-9);
  EXPECT_FALSE(summary.converged());
  EXPECT_FALSE(summary.has_margin());
}

TEST(PassProgress, ConvergesOnOneRevisionWithTheSmallestMargin) {
  PassProgress pass;
  Tally tally;
  Evaluate(tally, 3);
  Evaluate(tally, 1.5);
  pass.Add(tally, 4);
  const PassSummary summary = pass.End(1, 4, 3);
  EXPECT_TRUE(summary.converged());
  // 2 is the largest squared norm.
  EXPECT_NEAR(summary.margin(), 0.5, 1e-11);
  EXPECT_LE(summary.margin(), 0.5);
}

TEST(PassProgress, DoesNotConvergeIfTheModelChangedMeanwhileOrThereWasNoExample) {
  Tally tally;
  Evaluate(tally, 3);
  PassProgress before_the_mark;
  before_the_mark.Add(tally, 4);
  EXPECT_FALSE(before_the_mark.End(1, 5, 3).converged());
  PassProgress two_revisions;
  two_revisions.Add(tally, 4);
  two_revisions.Add(tally, 5);
  EXPECT_FALSE(two_revisions.End(1, 5, 3).converged());
  Tally row_errors;
  row_errors.AddRowError(ValidationCode::kNonFiniteValue);
  PassProgress no_example;
  no_example.Add(row_errors, 4);
  const PassSummary summary = no_example.End(1, 4, 3);
  EXPECT_FALSE(summary.converged());
  EXPECT_EQ(summary.row_errors(), 1U);
}

}  // namespace
}  // namespace perceptrond
