// The batch perceptron: gradient descent on the perceptron risk, one step for a whole pass over the
// data or for a mini-batch.
//
//   predict   two labels: sign(s), s = w . x + w_b b; several classes: the k of the greatest s_k
//   mistake   m <= 0, or as the tie rule has it (m, z: core/learner/linear_rule.h)
//   update    on a mistake the sum of its batch grows:  V += c z;  theta stays, and so do scores
//   step      when a batch ends:  theta += eta V, V = 0;  an update too, if V has grown. A batch
//             ends with a producer's pass, and with mini_batch = M > 0 also when the model has
//             evaluated a multiple of M examples
//   loss      max(0, -m): V is minus the gradient of its sum, the perceptron risk, over the batch
//   bound     if some theta* of norm 1 has theta* . z >= gamma everywhere, from zero weights and
//             with c = 1, in batches of at most n examples, Z = max ||z||: at most n (Z / gamma)^2
//             mistakes, and no more steps. For with q mistakes in a step theta . theta* grows by at
//             least q eta gamma and ||theta||^2 by at most q^2 (eta Z)^2 <= q n (eta Z)^2; then as
//             in Novikoff's proof
//   source    seed 002, batch gradient descent; Duda, Hart, Stork: Pattern Classification, 2001,
//             section 5.5 (batch perceptron), 5.12 (Kesler's construction)
//
// A mistake costs O(row), a step O(features of the batch's mistakes). Memory: twice the weights.
#pragma once

#include <vector>

#include "core/learner/linear_rule.h"
#include "core/learner/rule_learner.h"

namespace perceptrond {

class BatchPerceptron : public LinearRule {
 public:
  static constexpr size_t kArraysPerVector = 1;

  // V's part in one score vector.
  struct Sum {
    LinearWeights weights;
    // Indices of every weight that is not 0, and perhaps of more; not in the state, since the
    // weights tell.
    std::vector<uint32_t> indices;
  };
  struct Memory {
    std::vector<Sum> sums;
    // Mistakes in V, and how many examples had been evaluated before the first of them.
    uint64_t pending = 0;
    uint64_t first_age = 0;

    void Resize(size_t vectors, size_t size);
    void AppendTo(const ScoreVectors& vectors, LearnerStateView& state) const;
    bool Read(StateReader& state, ScoreVectors& vectors);
  };
  Memory memory;

  explicit BatchPerceptron(const LearnerSettings& settings)
      : step_size_(settings.step_size), mini_batch_(settings.mini_batch) {}

  double Loss(const SignedExample& z) const { return z.margin < 0 ? -z.margin : 0; }
  bool CallsForUpdate(const SignedExample& z) const { return z.mistake; }
  // Along which V grows.
  Step MakeStep(const SignedExample& /*z*/, double weight) const { return {weight}; }
  // Whether theta can add what V will be.
  bool CanMove(const ScoreVectors& vectors, const Move& move, const Row& row) const;
  void MakeMove(ScoreVectors& vectors, const Move& move, const Row& row);
  void FinishUpdate(ScoreVectors& vectors, const Target& target);
  // 0 for what is pending.
  double DualCoefficient(double length, uint64_t age) const {
    return memory.pending > 0 && age >= memory.first_age ? 0 : step_size_ * length;
  }

  bool IsFull(uint64_t age) const {
    return memory.pending > 0 && mini_batch_ > 0 &&
           age / mini_batch_ > memory.first_age / mini_batch_;
  }
  void EndBatch(ScoreVectors& vectors);

 private:
  const double step_size_;
  // M; 0: none.
  const uint64_t mini_batch_;
};

class BatchPerceptronLearner final : public RuleLearner<BatchPerceptron>, public BatchLearning {
 public:
  using RuleLearner::RuleLearner;

  BatchLearning* batch_learning() override { return this; }
  // A batch may be under way.
  ReplaceableWeights* replaceable_weights() override { return nullptr; }
  bool IsPending() const override { return rule().memory.pending > 0; }
  bool IsFull(uint64_t age) const override { return rule().IsFull(age); }
  void EndBatch() override { rule().EndBatch(vectors()); }
};

}  // namespace perceptrond
