// The learner auto beside its members, each learning by itself, and the vote as its paper has it.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "tests/core/learner/conformance.h"

namespace perceptrond::testing::weighted_majority_test {
namespace {

constexpr uint32_t kDimension = 8;
constexpr double kBeta = 0.8;

// Clouds about one point a class, with labels of which `noise` in a hundred are random; two labels
// for 0 classes.
Columns Clouds(uint32_t seed, uint32_t classes, uint32_t noise, size_t count) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Columns columns;
  for (size_t n = 0; n < count; ++n) {
    std::vector<float> x(kDimension);
    for (float& value : x) value = normal(random);
    auto label = static_cast<int32_t>(random() % std::max(2U, classes));
    x[static_cast<size_t>(label)] += 2;
    if (random() % 100 < noise) label = static_cast<int32_t>(random() % std::max(2U, classes));
    columns.AddDense(x, classes > 0 ? label : 2 * label - 1);
  }
  return columns;
}

std::unique_ptr<Learner> MakeAuto(uint32_t classes = 0, TieRule tie = TieRule::kMistake) {
  LearnerSettings settings;
  settings.rule = RuleKind::kAuto;
  settings.tie_rule = tie;
  settings.classes = {classes, classes, {}};
  return MakeLearner(settings, kDimension);
}

std::vector<MemberVotes::Member> MembersOf(const Learner& learner) {
  return learner.member_votes()->Members();
}

size_t CountRetired(const Learner& learner) {
  const auto members = MembersOf(learner);
  return static_cast<size_t>(
      std::count_if(members.begin(), members.end(), [](const auto& one) { return one.retired; }));
}

// The algorithm as Littlestone and Warmuth print it, over learners that know nothing of each other.
class Textbook {
 public:
  Textbook(const Learner& learner, uint32_t classes) : classes_(classes) {
    for (const MemberVotes::Member& member : MembersOf(learner))
      experts_.push_back({MakeLearner(member.settings, kDimension)});
  }

  // Predicts and learns; says whether the majority was wrong.
  bool Learn(const Row& row, int32_t label) {
    std::map<int32_t, double> votes;
    bool update = false;
    double fewest = 1e9;
    std::vector<double> scores(std::max(1U, classes_));
    for (Expert& expert : experts_) {
      if (expert.vote == 0) continue;
      const Evaluation evaluation = expert.learner->Evaluate(row, label);
      expert.learner->predictor().Score(row, updates_, scores);
      const int32_t predicted = Predict(scores);
      votes[predicted] += expert.vote;
      expert.wrong = predicted != label;
      update = update || expert.wrong || evaluation.update;
    }
    for (Expert& expert : experts_) {
      if (expert.vote == 0) continue;
      const Evaluation evaluation = expert.learner->Evaluate(row, label);
      if (evaluation.update) expert.learner->Update(row, {label, 1, updates_}, evaluation);
      if (expert.wrong) expert.vote *= kBeta;
      expert.mistakes += expert.wrong ? 1 : 0;
      fewest = std::min(fewest, expert.mistakes);
    }
    for (Expert& expert : experts_)
      if (expert.mistakes - fewest > 62 + 2 * std::sqrt(fewest)) expert.vote = 0;
    updates_ += update ? 1 : 0;
    const double own = votes[label];
    return std::any_of(votes.begin(), votes.end(),
                       [&](const auto& other) {
                         return other.first != label && other.first != kTie && other.second >= own;
                       }) ||
           own == 0;
  }
  uint64_t updates() const { return updates_; }
  // Parts of all votes.
  std::vector<double> Votes() const {
    double all = 0;
    for (const Expert& expert : experts_) all += expert.vote;
    std::vector<double> parts;
    for (const Expert& expert : experts_) parts.push_back(expert.vote / all);
    return parts;
  }

 private:
  static constexpr int32_t kTie = -7;
  struct Expert {
    std::unique_ptr<Learner> learner;
    double vote = 1;
    double mistakes = 0;
    bool wrong = false;
  };

  int32_t Predict(const std::vector<double>& scores) const {
    if (classes_ == 0) return scores[0] == 0 ? kTie : scores[0] > 0 ? 1 : -1;
    const auto greatest = std::max_element(scores.begin(), scores.end());
    if (std::count(scores.begin(), scores.end(), *greatest) > 1) return kTie;
    return static_cast<int32_t>(greatest - scores.begin());
  }

  const uint32_t classes_;
  std::vector<Expert> experts_;
  uint64_t updates_ = 0;
};

TEST(WeightedMajority, IsTheTextbooksVoteOfLearnersThatLearnAlone) {
  for (const uint32_t classes : {0U, 4U}) {
    const Columns columns = Clouds(3, classes, 20, 3000);
    const Batch batch = columns.batch();
    const std::unique_ptr<Learner> learner = MakeAuto(classes);
    Textbook textbook(*learner, classes);
    size_t mistakes = 0;
    size_t updates = 0;
    for (size_t i = 0; i < batch.rows(); ++i) {
      const bool wrong = learner->Evaluate(batch.row(i), batch.labels[i]).mistake;
      mistakes += wrong ? 1 : 0;
      ASSERT_EQ(wrong, textbook.Learn(batch.row(i), batch.labels[i])) << "row " << i;
      updates += Learn(*learner, batch.row(i), {batch.labels[i], 1, i}) ? 1 : 0;
    }
    EXPECT_GT(mistakes, 300U);
    EXPECT_EQ(updates, textbook.updates());
    const std::vector<double> votes = textbook.Votes();
    const auto members = MembersOf(*learner);
    for (size_t m = 0; m < members.size(); ++m) {
      EXPECT_NEAR(members[m].vote, votes[m], 1e-9) << members[m].name;
      EXPECT_EQ(members[m].retired, votes[m] == 0) << members[m].name;
    }
    EXPECT_GT(CountRetired(*learner), 0U) << "nothing was said of retiring";
  }
}

TEST(WeightedMajority, ARetiredMemberStaysSoAndCostsNothing) {
  const Columns columns = Clouds(7, 0, 30, 3000);
  const std::unique_ptr<Learner> learner = MakeAuto();
  EXPECT_EQ(learner->predictor().ScoreCost(100), 1100U);
  EXPECT_EQ(learner->State().arrays.size(), 14U);
  EXPECT_EQ(learner->max_arrays(), 14U);
  std::vector<MemberVotes::Member> before = MembersOf(*learner);
  for (size_t i = 0; i < columns.batch().rows(); ++i) {
    Learn(*learner, columns.batch().row(i), {columns.batch().labels[i], 1, i});
    const std::vector<MemberVotes::Member> members = MembersOf(*learner);
    for (size_t m = 0; m < members.size(); ++m) {
      if (!before[m].retired) continue;
      ASSERT_TRUE(members[m].retired);
      ASSERT_EQ(members[m].mistakes, before[m].mistakes);
      ASSERT_EQ(members[m].vote, 0);
    }
    before = members;
  }
  ASSERT_GT(CountRetired(*learner), 0U);
  EXPECT_LT(learner->predictor().ScoreCost(100), 1100U);
  EXPECT_LT(learner->State().arrays.size(), 14U);
  const std::unique_ptr<Learner> restored = MakeAuto();
  ASSERT_TRUE(restored->Restore(CopyOfState(*learner)));
  EXPECT_EQ(Bits(*restored), Bits(*learner));
  EXPECT_EQ(CountRetired(*restored), CountRetired(*learner));
}

TEST(WeightedMajority, AStateWithoutAVotingMemberIsRefused) {
  const std::unique_ptr<Learner> learner = MakeAuto();
  LearnerState none;
  // Updates; of each member its mistakes, and that it does not vote.
  none.scalars.assign(1 + 2 * 8, 0);
  EXPECT_FALSE(learner->Restore(none));
  LearnerState beaten = CopyOfState(*learner);
  beaten.scalars[1] = 63;
  EXPECT_FALSE(learner->Restore(beaten)) << "it would be retired";
  beaten.scalars[1] = 62;
  EXPECT_TRUE(learner->Restore(beaten));
}

}  // namespace
}  // namespace perceptrond::testing::weighted_majority_test
