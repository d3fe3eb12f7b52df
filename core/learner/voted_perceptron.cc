#include "core/learner/voted_perceptron.h"

#include <algorithm>
#include <utility>

#include "core/learner/state.h"
#include "core/vector/sorted_row.h"

namespace perceptrond {
namespace {

// Sums votes, hypothesis by hypothesis.
class Votes {
 public:
  Votes(TieRule tie_rule, uint64_t begin) : tie_rule_(tie_rule), begin_(begin) {}
  // The hypothesis that scores so gave way when `age` examples had been judged.
  void Add(double score, uint64_t age) {
    const auto survived = static_cast<double>(std::max(age, begin_) - begin_);
    sum_ += survived * PredictByTieRule(score, tie_rule_);
    all_ += survived;
    begin_ = std::max(age, begin_);
  }
  double share() const { return all_ > 0 ? sum_ / all_ : 0; }

 private:
  const TieRule tie_rule_;
  uint64_t begin_;
  double sum_ = 0;
  double all_ = 0;
};

}  // namespace

void VotedPerceptron::Update(const Row& row, const Target& target, const Evaluation& evaluation) {
  Perceptron::Update(row, target, evaluation);
  updates_.Push(row, target.label * Step(row, evaluation.score, target.weight));
  ages_.push_back(target.age);
  if (updates_.size() > budget_) Lower();
}

void VotedPerceptron::Lower() {
  below_.Add(updates_.coefficient(0), updates_.row(0), offset_value());
  below_age_ = ages_.front();
  updates_.Pop();
  ages_.pop_front();
}

double VotedPerceptron::Answer(const Row& row, uint64_t age) const {
  const SortedRow sorted(row);
  const double constant = offset_value() * offset_value();
  Votes votes(tie_rule(), below_age_);
  double score = below_.Score(row, offset_value());
  for (size_t i = 0; i < updates_.size(); ++i) {
    votes.Add(score, ages_[i]);
    score += updates_.coefficient(i) * (Dot(sorted, updates_.row(i)) + constant);
  }
  votes.Add(score, age);
  return votes.share();
}

void VotedPerceptron::Grow(size_t size) {
  LinearLearner::Grow(size);
  if (size > below_.weights.size()) below_.weights.resize(size);
}

LearnerStateView VotedPerceptron::State() const {
  LearnerStateView state = LinearLearner::State();
  below_.AppendTo(state);
  Append(static_cast<double>(below_age_), state);
  for (const uint64_t age : ages_) Append(static_cast<double>(age), state);
  Append(updates_, state);
  return state;
}

bool VotedPerceptron::Restore(LearnerState state) {
  StateReader reader(std::move(state));
  LinearWeights weights = LinearWeights::From(reader);
  LinearWeights below = LinearWeights::From(reader);
  const uint64_t below_age = reader.Count();
  RowStore updates = reader.Rows(budget_);
  std::deque<uint64_t> ages;
  for (size_t i = 0; i < updates.size(); ++i) ages.push_back(reader.Count());
  if (!reader.Done()) return false;
  linear() = std::move(weights);
  below_ = std::move(below);
  below_age_ = below_age;
  updates_ = std::move(updates);
  ages_ = std::move(ages);
  return true;
}

}  // namespace perceptrond
