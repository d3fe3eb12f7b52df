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
#pragma once

#include <vector>

#include "core/learner/linear_predictor.h"

namespace perceptrond {

class Averaged final : public LinearPredictor {
 public:
  explicit Averaged(const ScoreVectors& learned) : LinearPredictor(learned) { Resize(); }

  void Score(const Row& row, uint64_t age, std::span<double> scores) const override;
  void ScoreRows(const Batch& batch, size_t first, size_t max_features, uint64_t age,
                 std::span<ValidationCode> codes, std::span<double> scores) const override {
    Predictor::ScoreRows(batch, first, max_features, age, codes, scores);
  }
  double squared_norm(uint64_t age) const override;
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

}  // namespace perceptrond
