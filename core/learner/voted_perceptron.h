// The voted perceptron: learns as the perceptron does and answers with the votes of all the weights
// it had, each as often as it survived an example; of the latest, that is, as many as the budget.
//
//   predict   sign(v), v = sum of c_i sign(s_i) / sum of c_i in [-1, 1]: s_i the score of the
//   weights
//             after update i, c_i how many examples were judged from that update to the next
//   update    the perceptron's, on the perceptron's mistakes
//   state     besides w: the latest B updates (x_i, t_i = eta c y_i), and the weights w' below
//   them:
//             s_i = s_(i-1) + t_i (x_i . x + b^2), from s' = w' . x + w'_b b
//   budget    with more than B updates the oldest is added to w', which loses its own vote: B + 1
//             weights vote
//   bound     the perceptron's, on its updates. After one pass over m examples drawn at random, all
//             weights voting: an expected error of at most 2 / (m + 1) times the mistakes expected
//             on m + 1 of them, and so 2 (R / gamma)^2 / (m + 1) where a margin gamma separates
//             them
//   source    Freund, Schapire: Large Margin Classification Using the Perceptron Algorithm, Machine
//             Learning 37, 1999: figure 1, corollary 1
//
// Answers depend on the revision and on how many examples were judged. An answer costs
// O(B row.size), learning what the perceptron's does. Memory: twice the perceptron's, and the rows.
// No one hyperplane answers: AnswerHypothesis is what it learns with.
#pragma once

#include <deque>

#include "core/learner/perceptron.h"

namespace perceptrond {

class VotedPerceptron final : public Perceptron {
 public:
  VotedPerceptron(const LearnerSettings& settings, size_t size)
      : Perceptron(settings, size), budget_(settings.budget), below_(linear()) {}

  void Update(const Row& row, const Target& target, const Evaluation& evaluation) override;
  double Answer(const Row& row, uint64_t age) const override;
  double answer_squared_norm(uint64_t /*age*/) const override { return 0; }
  // Votes of weights that it never had would have to go with them.
  bool CanReplaceWeights() const override { return false; }
  void Grow(size_t size) override;
  LearnerStateView State() const override;
  bool Restore(LearnerState state) override;

 private:
  // Adds the oldest update kept to the weights below.
  void Lower();

  const size_t budget_;
  // w', and how many examples had been judged when it came to be.
  LinearWeights below_;
  uint64_t below_age_ = 0;
  // Coefficients: t_i. And how many examples had been judged before each.
  RowStore updates_;
  std::deque<uint64_t> ages_;
};

}  // namespace perceptrond
