// The averaged wrapper: predicts with the average of the weights after every example evaluated, so
// that weights count by how long they survived. The rule learns as without it.
//
//   predict   by the scores of w~ = (1 / T) sum of w after example t, t = 1 .. T
//   state     u = sum over updates of (examples evaluated before it) x (its change), since
//             w~ = w - u / T; both count from when weights were replaced, if they were
//   bound     over the perceptron: its bound, on its updates; the average generalises as the voted
//             perceptron does, by its leave-one-out analysis
//   source    Freund, Schapire: Large Margin Classification Using the Perceptron Algorithm, Machine
//             Learning 37, 1999; several classes: Collins, Discriminative Training Methods for
//             Hidden Markov Models, EMNLP 2002, section 2.5; the sum u: Daume, A Course in Machine
//             Learning, algorithm 7
//
// For rules whose updates are multiples of z. The average moves towards w while correct examples
// come: a prediction depends on the revision and on how many examples were evaluated. Memory: as
// much again as the weights. Several classes: an average over a class counts its weights as 0
// before it existed.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/learner/linear_predictor.h"
#include "core/vector/kernels.h"

namespace perceptrond {
namespace {

class Averaged final : public LinearPredictor, public PredictionWeights {
 public:
  explicit Averaged(const ScoreVectors& learned) : LinearPredictor(learned) { Resize(); }

  void Score(const Row& row, uint64_t age, std::span<double> scores) const override;
  double squared_norm(uint64_t age) const override;
  std::vector<ScoreTerm> Terms(uint64_t age) const override;
  PredictionWeights* weights() override { return this; }
  Hypothesis MakeHypothesis(size_t k, uint64_t age) const override;
  double FeatureWeight(size_t k, uint32_t index, uint64_t age) const override;
  // The part of the average's examples that came after it.
  std::optional<double> PartOfUpdate(uint64_t update_age, uint64_t age) const override {
    return 1 - Share(age) * Since(update_age);
  }
  // The average begins with the new weights.
  void WeightsReplaced(uint64_t age) override;
  bool CanUpdate(const LinearUpdate& update) const override;
  void BeforeUpdate(const LinearUpdate& update) override;
  void AfterUpdate(const LinearUpdate& update) override;
  void Resize() override;
  size_t arrays_per_vector() const override { return 1; }
  void AppendTo(LearnerStateView& state) const override;
  std::unique_ptr<LinearPredictor> Read(StateReader& state,
                                        const ScoreVectors& read) const override;

 private:
  // Examples that the average had counted when the model had evaluated `age`.
  double Since(uint64_t age) const { return static_cast<double>(age - origin_); }
  // The part of u in w~; 0 before the first example.
  double Share(uint64_t age) const { return age == origin_ ? 0 : 1 / Since(age); }

  // u, by vector.
  std::vector<LinearWeights> late_;
  // w . u, without the biases; and, during an update, its terms before.
  CompensatedSum product_;
  std::vector<double> products_before_;
  // Examples evaluated before the average began.
  uint64_t origin_ = 0;
};

void Averaged::Score(const Row& row, uint64_t age, std::span<double> scores) const {
  learned().Scores(row, scores);
  const double share = Share(age);
  for (size_t k = 0; k < scores.size(); ++k) {
    // NaN, for a class that does not exist, stays.
    if (!std::isnan(scores[k])) scores[k] -= share * late_[k].Score(row, learned().bias_input());
  }
}

double Averaged::squared_norm(uint64_t age) const {
  const double share = Share(age);
  double late = 0;
  for (const LinearWeights& one : late_) late += one.squared_norm.value();
  return std::max(0.0,
                  SquaredNorm(learned()) - 2 * share * product_.value() + share * share * late);
}

std::vector<ScoreTerm> Averaged::Terms(uint64_t age) const {
  std::vector<ScoreTerm> terms = TermsOf(learned());
  const size_t classes = terms.size();
  for (size_t i = 0; i < classes; ++i) {
    const size_t k = terms[i].score;
    terms.push_back(TermOf(late_[k], learned().bias_input(), -Share(age), k));
  }
  return terms;
}

Hypothesis Averaged::MakeHypothesis(size_t k, uint64_t age) const {
  const double share = Share(age);
  const LinearWeights& late = late_[k];
  Hypothesis average = perceptrond::MakeHypothesis(learned(), k);
  for (size_t i = 0; i < average.weights.size(); ++i)
    average.weights[i] = static_cast<float>(average.weights[i] - share * late.weights[i]);
  average.bias -= share * late.bias_weight * learned().bias_input();
  return average;
}

double Averaged::FeatureWeight(size_t k, uint32_t index, uint64_t age) const {
  return learned()[k].weights[index] - Share(age) * late_[k].weights[index];
}

void Averaged::WeightsReplaced(uint64_t age) {
  late_.clear();
  Resize();
  product_ = CompensatedSum();
  origin_ = age;
}

bool Averaged::CanUpdate(const LinearUpdate& update) const {
  const double b = learned().bias_input();
  return std::all_of(update.moves.begin(), update.moves.end(), [&](const Move& move) {
    const double length = move.length * Since(update.target.age);
    if (move.vector < late_.size()) return late_[move.vector].StaysFinite(length, update.row, b);
    return std::abs(length * b) <= std::numeric_limits<float>::max() &&
           StepStaysFinite(length, update.row);
  });
}

void Averaged::BeforeUpdate(const LinearUpdate& update) {
  products_before_.clear();
  for (const Move& move : update.moves) {
    products_before_.push_back(
        DotAt(learned()[move.vector].weights, late_[move.vector].weights, update.row));
  }
}

void Averaged::AfterUpdate(const LinearUpdate& update) {
  for (size_t i = 0; i < update.moves.size(); ++i) {
    const Move& move = update.moves[i];
    LinearWeights& late = late_[move.vector];
    product_.Add(-products_before_[i]);
    late.Add(move.length * Since(update.target.age), update.row, learned().bias_input());
    product_.Add(DotAt(learned()[move.vector].weights, late.weights, update.row));
  }
}

void Averaged::Resize() {
  late_.resize(learned().count());
  for (LinearWeights& one : late_) one.weights.resize(learned().size());
}

void Averaged::AppendTo(LearnerStateView& state) const {
  for (const LinearWeights& one : late_) Append(one, state);
  Append(product_, state);
  // Left out at 0, so that a state without replaced weights has one form.
  if (origin_ > 0) Append(static_cast<double>(origin_), state);
}

std::unique_ptr<LinearPredictor> Averaged::Read(StateReader& state,
                                                const ScoreVectors& read) const {
  auto restored = std::make_unique<Averaged>(learned());
  restored->late_.clear();
  for (size_t k = 0; k < read.count(); ++k) restored->late_.push_back(LinearWeights::Read(state));
  restored->product_ = state.Sum();
  if (state.HasMoreScalars()) {
    restored->origin_ = state.Count();
    // Zero is left out.
    if (restored->origin_ == 0) return nullptr;
  }
  return restored;
}

}  // namespace

std::unique_ptr<LinearPredictor> MakeAveraged(const LearnerSettings& /*settings*/,
                                              const ScoreVectors& learned) {
  return std::make_unique<Averaged>(learned);
}

}  // namespace perceptrond
