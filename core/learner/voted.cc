// The voted wrapper: predicts with the votes of all the weights there were, each as often as it
// survived an example; of the latest, that is, as many as the budget. The rule learns as without
// it.
//
//   predict   two labels: sign(v), v = sum of c_i sign(s_i) / sum of c_i in [-1, 1]: s_i the score
//             of the weights after update i, c_i how many examples were evaluated from that update
//             to the next. Several classes: the class with the most votes, each hypothesis voting
//             c_i times for the class it predicts; the score of a class is its share of the votes
//   state     the latest B updates, with the step t_i of each, and the weights w' before them:
//             s_i = s_(i-1) + t_i (x_i . x + b^2), from s' = w' . x + w'_b b
//   budget    with more than B updates the oldest is added to w', which loses its own vote: B + 1
//             hypotheses vote
//   bound     over the perceptron: its bound, on its updates. After one pass over m examples drawn
//             at random, all weights voting: an expected error of at most 2 / (m + 1) times the
//             mistakes expected on m + 1 of them, and so 2 (R / gamma)^2 / (m + 1) where a margin
//             gamma separates them
//   source    Freund, Schapire: Large Margin Classification Using the Perceptron Algorithm, Machine
//             Learning 37, 1999: figure 1, corollary 1; several classes: each hypothesis is one
//             over Kesler's long vector, and votes for the class it predicts
//
// For rules whose updates are multiples of z. Predictions depend on the revision and on how many
// examples were evaluated. A prediction costs O(B (row.size + K)), learning what the rule's does.
// Memory: as much again as the weights, and the rows. No vector makes the predictions, and the
// learner's weights cannot be replaced: the votes of weights that it never had would have to be
// replaced with them.
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <utility>

#include "core/learner/linear_predictor.h"
#include "core/sync/cancellation.h"
#include "core/vector/kernels.h"

namespace perceptrond {
namespace {

// Multiply-adds that a step of the merge of two rows takes as long as.
constexpr uint64_t kMergeWork = 6;

class Voted final : public LinearPredictor {
 public:
  Voted(const LearnerSettings& settings, const ScoreVectors& learned)
      : Voted(settings.budget, learned, learned) {}

  void Score(const Row& row, uint64_t age, std::span<double> scores) const override;
  uint64_t ScoreCost(uint64_t features) const override;
  double squared_norm(uint64_t /*age*/) const override { return 0; }
  std::vector<ScoreTerm> Terms(uint64_t age) const override;
  void AfterUpdate(const LinearUpdate& update) override;
  void Resize() override;
  size_t arrays_per_vector() const override { return 1; }
  void AppendTo(LearnerStateView& state) const override;
  std::unique_ptr<LinearPredictor> Read(StateReader& state,
                                        const ScoreVectors& read) const override;

 private:
  // An update besides its row and step.
  struct Kept {
    // Examples evaluated before it.
    uint64_t age = 0;
    // The classes that the update moved; used with several classes only.
    int32_t label = 0;
    int32_t rival = -1;
  };

  Voted(size_t budget, const ScoreVectors& learned, ScoreVectors below)
      : LinearPredictor(learned), budget_(budget), below_(std::move(below)) {}

  // Calls vote(c_i) for the weights before each update kept, then move(update, t_i (x_i . x + b^2))
  // for what it adds to their scores; and vote for the newest. O(B row.size).
  template <typename Vote, typename Move>
  void ForEachHypothesis(const Row& row, uint64_t age, const Vote& vote, const Move& move) const;
  void VoteOnLabel(const Row& row, uint64_t age, std::span<double> scores) const;
  void VoteOnClass(const Row& row, uint64_t age, std::span<double> scores) const;
  // Adds the oldest update kept to the weights before them.
  void Lower();
  bool ReadUpdates(StateReader& state, const ScoreVectors& read);

  const size_t budget_;
  // w', and how many examples had been evaluated when it came to be. Its classes are those that
  // existed then.
  ScoreVectors below_;
  uint64_t below_age_ = 0;
  // Coefficients: t_i. 0 for an update that only made a class exist.
  RowStore updates_;
  std::deque<Kept> kept_;
};

// How many examples each hypothesis survived, one after the other.
class Survival {
 public:
  explicit Survival(uint64_t begin) : begin_(begin) {}
  // The next hypothesis was superseded when `age` examples had been evaluated.
  double Until(uint64_t age) {
    const auto survived = static_cast<double>(std::max(age, begin_) - begin_);
    begin_ = std::max(age, begin_);
    return survived;
  }

 private:
  uint64_t begin_;
};

void Voted::AfterUpdate(const LinearUpdate& update) {
  const Target& target = update.target;
  const bool moved = !update.moves.empty();
  const int32_t rival = update.moves.size() > 1 ? static_cast<int32_t>(update.moves[1].vector) : -1;
  updates_.Push(moved ? update.row : Row{kNoIndices, nullptr, 0},
                moved ? update.moves[0].length : 0);
  kept_.push_back({target.age, target.label, rival});
  if (updates_.size() > budget_) Lower();
}

void Voted::Lower() {
  const Kept& oldest = kept_.front();
  const double step = updates_.coefficient(0);
  const Row row = updates_.row(0);
  const double b = below_.bias_input();
  if (!below_.is_multiclass()) {
    below_[0].Add(step, row, b);
  } else {
    below_.AddClass(oldest.label);
    if (oldest.rival >= 0) {
      below_[static_cast<size_t>(oldest.label)].Add(step, row, b);
      below_[static_cast<size_t>(oldest.rival)].Add(-step, row, b);
    }
  }
  below_age_ = oldest.age;
  updates_.Pop();
  kept_.pop_front();
}

void Voted::Score(const Row& row, uint64_t age, std::span<double> scores) const {
  if (below_.is_multiclass()) {
    VoteOnClass(row, age, scores);
  } else {
    VoteOnLabel(row, age, scores);
  }
}

template <typename Vote, typename Move>
void Voted::ForEachHypothesis(const Row& row, uint64_t age, const Vote& vote,
                              const Move& move) const {
  const SortedRow sorted(row);
  const double constant = below_.bias_input() * below_.bias_input();
  Survival survival(below_age_);
  for (size_t i = 0; i < updates_.size(); ++i) {
    if (!KeepGoing(kMergeWork * (row.size + updates_.row(i).size) + below_.count())) return;
    vote(survival.Until(kept_[i].age));
    move(kept_[i], updates_.coefficient(i) * (Dot(sorted, updates_.row(i)) + constant));
  }
  vote(survival.Until(age));
}

uint64_t Voted::ScoreCost(uint64_t features) const {
  const uint64_t one = kMergeWork * std::min(features, kManyFeatures) + below_.count();
  return LinearPredictor::ScoreCost(features) + updates_.size() * one +
         kMergeWork * updates_.features();
}

void Voted::VoteOnLabel(const Row& row, uint64_t age, std::span<double> scores) const {
  double votes = 0;
  double all = 0;
  double score = below_.Score(0, row);
  ForEachHypothesis(
      row, age,
      [&](double survived) {
        votes += survived * PredictLabel(score, below_.decision().tie_rule);
        all += survived;
      },
      [&](const Kept& /*update*/, double moved) { score += moved; });
  scores[0] = all > 0 ? votes / all : 0;
}

void Voted::VoteOnClass(const Row& row, uint64_t age, std::span<double> scores) const {
  // By class: the score by one hypothesis after the other, NaN while the class did not exist.
  ClassScores now(scores.size(), std::numeric_limits<double>::quiet_NaN());
  below_.Scores(row, {now.data(), below_.count()});
  double all = 0;
  for (size_t k = 0; k < scores.size(); ++k)
    scores[k] = HasLabel(static_cast<int32_t>(k)) ? 0 : std::numeric_limits<double>::quiet_NaN();
  ForEachHypothesis(
      row, age,
      [&](double survived) {
        const int32_t predicted = GreatestScore({now.data(), now.size()});
        if (predicted < 0) return;
        scores[static_cast<size_t>(predicted)] += survived;
        all += survived;
      },
      [&](const Kept& update, double moved) {
        double& own = now[static_cast<size_t>(update.label)];
        if (std::isnan(own)) own = 0;
        if (update.rival < 0) return;
        own += moved;
        now[static_cast<size_t>(update.rival)] -= moved;
      });
  for (double& score : scores) {
    if (all > 0) score /= all;
  }
}

std::vector<ScoreTerm> Voted::Terms(uint64_t age) const {
  std::vector<ScoreTerm> terms = TermsOf(below_);
  Survival survival(below_age_);
  const auto end_hypothesis = [&](uint64_t superseded) {
    const double survived = survival.Until(superseded);
    if (!terms.empty()) terms.back().votes = survived;
  };
  for (size_t i = 0; i < updates_.size(); ++i) {
    const Kept& update = kept_[i];
    end_hypothesis(update.age);
    ScoreTerm& moved = terms.emplace_back();
    moved.vector = updates_.row(i);
    moved.bias = below_.bias_input() * below_.bias_input();
    moved.coefficient = updates_.coefficient(i);
    if (!below_.is_multiclass()) continue;
    moved.score = static_cast<uint32_t>(update.label);
    if (update.rival >= 0) moved.rival = static_cast<uint32_t>(update.rival);
  }
  end_hypothesis(age);
  return terms;
}

void Voted::Resize() { below_.Grow(learned().size()); }

void Voted::AppendTo(LearnerStateView& state) const {
  if (below_.is_multiclass()) {
    // Its classes need not be the learner's.
    Append(below_, state);
  } else {
    AppendWeights(below_, state);
  }
  Append(static_cast<double>(below_age_), state);
  for (const Kept& update : kept_) {
    Append(static_cast<double>(update.age), state);
    if (!below_.is_multiclass()) continue;
    Append(update.label, state);
    Append(update.rival, state);
  }
  Append(updates_, state);
}

bool Voted::ReadUpdates(StateReader& state, const ScoreVectors& read) {
  below_age_ = state.Count();
  updates_ = state.Rows(budget_, read.size());
  for (size_t i = 0; i < updates_.size(); ++i) {
    Kept& update = kept_.emplace_back();
    update.age = state.Count();
    if (!read.is_multiclass()) continue;
    const double label = state.Scalar();
    const double rival = state.Scalar();
    const auto count = static_cast<double>(read.count());
    if (!(label >= 0 && label < count && rival >= -1 && rival < count)) return false;
    update.label = static_cast<int32_t>(label);
    update.rival = static_cast<int32_t>(rival);
  }
  return true;
}

std::unique_ptr<LinearPredictor> Voted::Read(StateReader& state, const ScoreVectors& read) const {
  std::optional<ScoreVectors> below =
      read.is_multiclass() ? ReadScoreVectors(state, read) : ReadWeights(state, read);
  if (!below.has_value() || below->count() > read.count() || below->size() != read.size())
    return nullptr;
  std::unique_ptr<Voted> restored(new Voted(budget_, learned(), *std::move(below)));
  return restored->ReadUpdates(state, read) ? std::move(restored) : nullptr;
}

}  // namespace

std::unique_ptr<LinearPredictor> MakeVoted(const LearnerSettings& settings,
                                           const ScoreVectors& learned) {
  return std::make_unique<Voted>(settings, learned);
}

}  // namespace perceptrond
