// The learner without settings: several learners, the members, learn side by side, and a weighted
// majority of their labels predicts.
//
//   members   core/learner/member_settings.cc lists them: N = 8, each with its rule's settings
//   predict   two labels: sign(s), s = (votes for +1 - votes for -1) / all votes; several classes:
//             the k of the greatest share of votes. A member whose score is 0, or whose greatest
//             two are equal, abstains
//   update    of each member by its own rule, where that calls for one; and of every member that
//             predicted wrongly: M += 1, M its mistakes
//   vote      beta^(M - M*), M* the fewest mistakes of a member that is not retired, beta = 0.8
//   retire    a member with M - M* > 62 + 2 sqrt(M*), for good: its vote is below 1e-6, and the
//             distance more than chance makes of equal members. Its weights are given up
//   loss      max(0, -y s); several classes: max(0, -m), m the share of the example's class less
//             the greatest of the others
//   bound     none by the best of all members: theirs (corollary 2.1) is of votes that are never
//             taken away, and the best over a whole stream may have been retired before it changed
//   source    Littlestone, Warmuth: The Weighted Majority Algorithm, Information and Computation
//             108, 1994, theorem 2.1 and corollary 2.1
//
// Votes follow from counts of mistakes, and these change in updates alone: the updates rebuild
// every bit. A mistake of the majority is one of some member, and so an update. The members' averages
// (core/learner/averaged.cc) are over the updates of this learner, not over examples, so that a
// prediction depends on the revision alone.
//
// A score costs those of the members that are not retired, an average two: at most 11. Memory: 14
// arrays, fewer as members retire. Norms are those of all members together.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "core/learner/decision.h"
#include "core/learner/learner.h"
#include "core/learner/member_settings.h"
#include "core/learner/settings.h"

namespace perceptrond {

// Thread contract: as Learner's.
class WeightedMajority final : public Learner,
                               public Predictor,
                               public BatchEvaluation,
                               public LearnedWeights,
                               public MemberVotes {
 public:
  // Scores of one vector that a score takes while no member is retired.
  static constexpr uint64_t kScores = 11;
  WeightedMajority(const LearnerSettings& settings, size_t size);

  Evaluation Evaluate(const Row& row, int32_t label) const override;
  bool CanUpdate(const Row& row, const Target& target, const Evaluation& evaluation) const override;
  void Update(const Row& row, const Target& target, const Evaluation& evaluation) override;
  void Grow(size_t size) override;
  size_t size() const override { return first().size(); }
  double augmented_squared_norm() const override;
  LearnerStateView State() const override;
  size_t max_arrays() const override { return max_arrays_; }
  bool Restore(LearnerState state) override;
  const Predictor& predictor() const override { return *this; }

  size_t scores() const override { return first().predictor().scores(); }
  bool HasLabel(int32_t label) const override { return first().predictor().HasLabel(label); }
  void Score(const Row& row, uint64_t age, std::span<double> scores) const override;
  uint64_t ScoreCost(uint64_t features) const override;
  int32_t Label(std::span<const double> scores) const override { return decision_.Label(scores); }
  // Shares of votes are no product with a vector.
  double squared_norm(uint64_t /*age*/) const override { return 0; }
  std::vector<ScoreTerm> Terms(uint64_t age) const override;

  const BatchEvaluation* batch_evaluation() const override {
    return decision_.is_multiclass ? nullptr : this;
  }
  void EvaluateRows(const Batch& batch, size_t first, size_t max_features,
                    std::span<EvaluatedRow> evaluated) const override;
  const LearnedWeights* learned_weights() const override { return this; }
  bool AreZero() const override;
  bool AreZero(uint32_t index) const override;
  const MemberVotes* member_votes() const override { return this; }
  std::vector<Member> Members() const override;

 private:
  struct MemberState {
    // Null: it is retired.
    std::unique_ptr<Learner> learner;
    uint64_t mistakes = 0;
    double vote = 1;
  };
  using MemberStates = std::array<MemberState, kMembers>;

  // What a member says of a labelled row.
  struct Opinion {
    Evaluation evaluation;
    // Of the label that it votes for.
    bool mistake = false;
  };

  // The first member that is not retired: there is always one, and all have one shape.
  const Learner& first() const;
  // Whether member m predicts with an average.
  bool IsAveraged(size_t m) const { return settings_[m].wrapper != WrapperKind::kNone; }
  // Sums of votes: for -1 and +1, or for each class.
  size_t vote_sums() const { return decision_.is_multiclass ? scores() : 2; }
  // Asks member m, and adds its vote to the sums.
  Opinion Ask(size_t m, const Row& row, int32_t label, std::span<double> votes) const;
  // Adds a vote for the label that a member's scores predict, unless they are tied.
  void AddVote(std::span<const double> scores, double vote, std::span<double> votes) const;
  // From sums of votes to scores, and to the majority's evaluation, but for `update`.
  void ToScores(std::span<const double> votes, std::span<double> scores) const;
  Evaluation EvaluateVotes(std::span<const double> votes, int32_t label) const;
  // Of the members that are not retired.
  static uint64_t FewestMistakes(const MemberStates& members);
  // Whether a member with this many mistakes beyond the fewest is to be retired.
  static bool IsBeaten(uint64_t excess, uint64_t fewest);
  // Votes from mistakes, and who is retired by them.
  static void CountVotes(MemberStates& members);

  const DecisionRule decision_;
  std::array<LearnerSettings, kMembers> settings_;
  MemberStates members_;
  size_t max_arrays_ = 0;
  // The age that members' averages count.
  uint64_t updates_ = 0;
};

}  // namespace perceptrond
