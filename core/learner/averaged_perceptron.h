// The averaged perceptron: learns as the perceptron does and answers with the average of the
// weights after every example it judged, so that weights count by how long they survived.
//
//   predict   sign(s), s = w~ . x + w~_b b,  w~ = (1 / T) sum of w after example t, t = 1 .. T
//   update    the perceptron's, on the perceptron's mistakes
//   state     besides w: u = sum over updates of (examples judged before it) x (its change), since
//             w~ = w - u / T; both counted from when weights were adopted, if they were
//   bound     the perceptron's, on its updates; the average generalises as the voted perceptron
//             does, by its leave-one-out analysis
//   source    Freund, Schapire: Large Margin Classification Using the Perceptron Algorithm, Machine
//             Learning 37, 1999; the sum u: Daume, A Course in Machine Learning, algorithm 7
//
// The average goes on moving towards w while correct examples come: an answer depends on the
// revision and on how many examples were judged.
#pragma once

#include <vector>

#include "core/learner/perceptron.h"

namespace perceptrond {

class AveragedPerceptron final : public Perceptron {
 public:
  AveragedPerceptron(const LearnerSettings& settings, size_t size);

  bool CanUpdate(const Row& row, const Target& target, const Evaluation& evaluation) const override;
  void Update(const Row& row, const Target& target, const Evaluation& evaluation) override;
  double Answer(const Row& row, uint64_t age) const override;
  double answer_squared_norm(uint64_t age) const override;
  Hypothesis AnswerHypothesis(uint64_t age) const override;
  std::optional<double> AnswerWeight(uint32_t index, uint64_t age) const override;
  // As long as it has been part of the average.
  std::optional<double> AnswerShare(const PastUpdate& update, uint64_t age) const override;
  // The average begins with them.
  void ReplaceWeights(const Row& weights, float offset_weight, uint64_t age) override;
  void Grow(size_t size) override;
  LearnerStateView State() const override;
  bool Restore(LearnerState state) override;

 private:
  // Examples of the average that came before so many were judged in all.
  double Since(uint64_t age) const { return static_cast<double>(age - origin_); }
  // The part of u in w~; none before the first example.
  double Share(uint64_t age) const { return age == origin_ ? 0 : 1 / Since(age); }

  // u.
  LinearWeights late_;
  // w . u, without the offset.
  CompensatedSum product_;
  // Examples judged before the average began.
  uint64_t origin_ = 0;
};

}  // namespace perceptrond
