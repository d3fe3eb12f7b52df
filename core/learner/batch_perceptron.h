// The batch perceptron: gradient descent on the perceptron risk, a step for a whole pass over the
// data or for a mini-batch.
//
//   predict   sign(s), s = w . x + w_b b
//   mistake   y s <= 0, or as the tie rule has it
//   update    on a mistake the sum of its batch grows:  V += c y (x, b);  w stays, and so do scores
//   step      where a batch ends:  w += eta V, V = 0;  an update too, if V has grown. A batch ends
//             with a producer's pass, and with mini_batch = M > 0 also when the model has judged a
//             multiple of M examples
//   loss      max(0, -y s): V is minus the gradient of its sum, the perceptron risk, over the batch
//   bound     on data that (x, b) separates with margin gamma, from zero weights and with c = 1, in
//             batches of at most n examples: at most n (R / gamma)^2 mistakes, and no more steps.
//             For with m mistakes in a step w . u grows by at least m eta gamma and ||w||^2 by at
//             most m^2 (eta R)^2 <= m n (eta R)^2; then as in Novikoff's proof
//   source    seed 002, batch gradient descent; Duda, Hart, Stork: Pattern Classification, 2001,
//             section 5.5 (batch perceptron)
//
// A mistake costs O(row), a step O(features of the batch's mistakes). Memory: twice the
// perceptron's.
#pragma once

#include <vector>

#include "core/learner/linear_rule.h"

namespace perceptrond {

class BatchPerceptron final : public LinearRule<BatchPerceptron> {
 public:
  BatchPerceptron(const LearnerSettings& settings, size_t size);

  bool CanUpdate(const Row& row, const Target& target, const Evaluation& evaluation) const override;
  void Update(const Row& row, const Target& target, const Evaluation& evaluation) override;
  // None of what waits.
  std::optional<double> AnswerShare(const PastUpdate& update, uint64_t age) const override;
  // A batch may be under way.
  bool CanReplaceWeights() const override { return false; }
  bool BatchWaits() const override { return waiting_ > 0; }
  bool BatchIsFull(uint64_t age) const override;
  void EndBatch() override;
  void Grow(size_t size) override;
  LearnerStateView State() const override;
  bool Restore(LearnerState state) override;

  double Loss(double signed_score) const { return signed_score < 0 ? -signed_score : 0; }
  bool Moves(double /*signed_score*/, bool mistake) const { return mistake; }

 protected:
  // Along which V grows.
  double Step(const Row& /*row*/, double /*signed_score*/, double weight) const override {
    return weight;
  }

 private:
  const double step_size_;
  // M; 0: none.
  const uint64_t mini_batch_;
  // V.
  LinearWeights sum_;
  // Where V is not 0, and perhaps more; not in the state, since V has it.
  std::vector<uint32_t> places_;
  // Mistakes in V, and how many examples had been judged before the first of them.
  uint64_t waiting_ = 0;
  uint64_t first_age_ = 0;
};

}  // namespace perceptrond
