#include "core/learner/voted.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/vector/kernels.h"

namespace perceptrond {
namespace {

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

}  // namespace

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

void Voted::VoteOnLabel(const Row& row, uint64_t age, std::span<double> scores) const {
  const SortedRow sorted(row);
  const double constant = below_.bias_input() * below_.bias_input();
  Survival survival(below_age_);
  double votes = 0;
  double all = 0;
  double score = below_.Score(0, row);
  const auto vote = [&](uint64_t until) {
    const double survived = survival.Until(until);
    votes += survived * PredictLabel(score, below_.decision().tie_rule);
    all += survived;
  };
  for (size_t i = 0; i < updates_.size(); ++i) {
    vote(kept_[i].age);
    score += updates_.coefficient(i) * (Dot(sorted, updates_.row(i)) + constant);
  }
  vote(age);
  scores[0] = all > 0 ? votes / all : 0;
}

void Voted::VoteOnClass(const Row& row, uint64_t age, std::span<double> scores) const {
  const SortedRow sorted(row);
  const double constant = below_.bias_input() * below_.bias_input();
  Survival survival(below_age_);
  // By class: the score by one hypothesis after the other, NaN while the class did not exist.
  ClassScores now(scores.size(), std::numeric_limits<double>::quiet_NaN());
  below_.Scores(row, {now.data(), below_.count()});
  double all = 0;
  for (size_t k = 0; k < scores.size(); ++k)
    scores[k] = HasLabel(static_cast<int32_t>(k)) ? 0 : std::numeric_limits<double>::quiet_NaN();
  const auto vote = [&](uint64_t until) {
    const double survived = survival.Until(until);
    const int32_t predicted = GreatestScore({now.data(), now.size()});
    if (predicted < 0) return;
    scores[static_cast<size_t>(predicted)] += survived;
    all += survived;
  };
  for (size_t i = 0; i < updates_.size(); ++i) {
    const Kept& update = kept_[i];
    vote(update.age);
    double& own = now[static_cast<size_t>(update.label)];
    if (std::isnan(own)) own = 0;
    if (update.rival < 0) continue;
    const double moved = updates_.coefficient(i) * (Dot(sorted, updates_.row(i)) + constant);
    own += moved;
    now[static_cast<size_t>(update.rival)] -= moved;
  }
  vote(age);
  for (double& score : scores) {
    if (all > 0) score /= all;
  }
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

}  // namespace perceptrond
