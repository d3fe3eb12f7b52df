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
//   source    Duda, Hart, Stork: Pattern Classification, 2001, section 5.5 (batch perceptron), 5.12
//             (Kesler's construction)
//
// A mistake costs O(row), a step O(features of the batch's mistakes). Memory: twice the weights.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/learner/linear_rule.h"
#include "core/learner/rule_learner.h"
#include "core/vector/kernels.h"

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

  uint64_t ExamplesUntilFull(uint64_t age) const {
    if (memory.pending == 0 || mini_batch_ == 0) return std::numeric_limits<uint64_t>::max();
    const uint64_t end = (memory.first_age / mini_batch_ + 1) * mini_batch_;
    return age < end ? end - age : 0;
  }
  void EndBatch(ScoreVectors& vectors);

 private:
  const double step_size_;
  // M, the examples per step; 0 if a step is made only at the end of a pass.
  const uint64_t mini_batch_;
};

inline void BatchPerceptron::Memory::Resize(size_t vectors, size_t size) {
  if (sums.size() < vectors) sums.resize(vectors);
  for (Sum& sum : sums) {
    if (sum.weights.weights.size() < size) sum.weights.weights.resize(size);
  }
}

inline void BatchPerceptron::Memory::AppendTo(const ScoreVectors& /*vectors*/,
                                              LearnerStateView& state) const {
  for (const Sum& sum : sums) Append(sum.weights, state);
  Append(static_cast<double>(pending), state);
  Append(static_cast<double>(first_age), state);
}

inline bool BatchPerceptron::Memory::Read(StateReader& state, ScoreVectors& vectors) {
  sums.resize(vectors.count());
  for (Sum& sum : sums) {
    sum.weights = LinearWeights::Read(state);
    const FloatArray& weights = sum.weights.weights;
    for (uint32_t i = 0; i < weights.size(); ++i) {
      if (weights[i] != 0) sum.indices.push_back(i);
    }
  }
  pending = state.Count();
  first_age = state.Count();
  return true;
}

inline bool BatchPerceptron::CanMove(const ScoreVectors& vectors, const Move& move,
                                     const Row& row) const {
  constexpr double kMax = std::numeric_limits<float>::max();
  const double b = vectors.bias_input();
  if (move.vector >= vectors.count()) {
    // Rounding may not lead beyond the limit later.
    const double step = move.length * step_size_ * (1 + 1e-6);
    return vectors.StaysFinite(move.vector, move.length, row) &&
           vectors.StaysFinite(move.vector, step, row);
  }
  const LinearWeights& linear = vectors[move.vector];
  const LinearWeights& sum = memory.sums[move.vector].weights;
  const double bias = sum.bias_weight + move.length * b;
  return std::abs(bias) <= kMax &&
         std::abs(linear.bias_weight + step_size_ * static_cast<float>(bias)) <= kMax &&
         StaysFiniteBy(linear.weights, step_size_, sum.weights, move.length, row);
}

inline void BatchPerceptron::MakeMove(ScoreVectors& vectors, const Move& move, const Row& row) {
  Sum& sum = memory.sums[move.vector];
  for (size_t i = 0; i < row.size; ++i) {
    if (sum.weights.weights[row.index(i)] == 0) sum.indices.push_back(row.index(i));
  }
  sum.weights.Add(move.length, row, vectors.bias_input());
}

inline void BatchPerceptron::FinishUpdate(ScoreVectors& /*vectors*/, const Target& target) {
  if (memory.pending++ == 0) memory.first_age = target.age;
}

inline void BatchPerceptron::EndBatch(ScoreVectors& vectors) {
  for (size_t k = 0; k < memory.sums.size(); ++k) {
    Sum& sum = memory.sums[k];
    // In an order that a restored learner repeats.
    std::sort(sum.indices.begin(), sum.indices.end());
    sum.indices.erase(std::unique(sum.indices.begin(), sum.indices.end()), sum.indices.end());
    LinearWeights& linear = vectors[k];
    ApplySum(linear.weights, step_size_, sum.weights.weights, sum.indices, linear.squared_norm);
    linear.bias_weight =
        static_cast<float>(linear.bias_weight + step_size_ * sum.weights.bias_weight);
    sum.indices.clear();
    sum.weights.bias_weight = 0;
    sum.weights.squared_norm = CompensatedSum();
  }
  memory.pending = 0;
  memory.first_age = 0;
}

class BatchPerceptronLearner final : public RuleLearner<BatchPerceptron>, public BatchLearning {
 public:
  using RuleLearner::RuleLearner;

  BatchLearning* batch_learning() override { return this; }
  // A batch may be under way.
  ReplaceableWeights* replaceable_weights() override { return nullptr; }
  bool IsPending() const override { return rule().memory.pending > 0; }
  uint64_t ExamplesUntilFull(uint64_t age) const override { return rule().ExamplesUntilFull(age); }
  void EndBatch() override { rule().EndBatch(vectors()); }
};

}  // namespace perceptrond
