// The averaged perceptron of several classes: learns as the perceptron does and answers with the
// average of each class's weights after every example it judged.
//
//   predict   the k of the greatest s_k = w~_k . x + w~_kb b,  w~_k = (1 / T) sum of w_k after
//   example
//             t, t = 1 .. T; zero before the class came up
//   update    the perceptron's (multiclass_perceptron.h), on the perceptron's mistakes
//   state     besides w_k: u_k = sum over updates of (examples judged before it) x (its change),
//   since
//             w~_k = w_k - u_k / T
//   bound     the perceptron's, on its updates
//   source    Collins: Discriminative Training Methods for Hidden Markov Models, EMNLP 2002,
//   section
//             2.5, on multiclass labels; the sum u: Daume, A Course in Machine Learning, algorithm
//             7
#pragma once

#include <vector>

#include "core/learner/multiclass_perceptron.h"

namespace perceptrond {

class MulticlassAveragedPerceptron final : public MulticlassPerceptron {
 public:
  MulticlassAveragedPerceptron(const LearnerSettings& settings, size_t size);

  bool CanUpdate(const Row& row, const Target& target, const Evaluation& evaluation) const override;
  void Update(const Row& row, const Target& target, const Evaluation& evaluation) override;
  double answer_squared_norm(uint64_t age) const override;
  Hypothesis ClassHypothesis(size_t number, uint64_t age) const override;
  double ClassWeight(size_t number, uint32_t index, uint64_t age) const override;
  void Grow(size_t size) override;
  LearnerStateView State() const override;
  size_t most_arrays() const override { return 2 * max_classes(); }
  bool Restore(LearnerState state) override;

 protected:
  double AnswerOf(size_t number, const Row& row, uint64_t age) const override;
  void AddClasses(size_t classes) override;

 private:
  // Moves w and u of one class.
  void Move(int32_t label, double step, uint64_t age, const Row& row);

  // u, by class.
  std::vector<LinearWeights> late_;
  // Sum of w_k . u_k, without the offsets.
  CompensatedSum product_;
};

}  // namespace perceptrond
