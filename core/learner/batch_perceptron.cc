#include "core/learner/batch_perceptron.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/vector/kernels.h"

namespace perceptrond {
namespace {

constexpr double kMax = std::numeric_limits<float>::max();

}  // namespace

void BatchPerceptron::Memory::Resize(size_t vectors, size_t size) {
  if (sums.size() < vectors) sums.resize(vectors);
  for (Sum& sum : sums) {
    if (sum.weights.weights.size() < size) sum.weights.weights.resize(size);
  }
}

void BatchPerceptron::Memory::AppendTo(const ScoreVectors& /*vectors*/,
                                       LearnerStateView& state) const {
  for (const Sum& sum : sums) Append(sum.weights, state);
  Append(static_cast<double>(pending), state);
  Append(static_cast<double>(first_age), state);
}

bool BatchPerceptron::Memory::Read(StateReader& state, ScoreVectors& vectors) {
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

bool BatchPerceptron::CanMove(const ScoreVectors& vectors, const Move& move, const Row& row) const {
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

void BatchPerceptron::MakeMove(ScoreVectors& vectors, const Move& move, const Row& row) {
  Sum& sum = memory.sums[move.vector];
  for (size_t i = 0; i < row.size; ++i) {
    if (sum.weights.weights[row.index(i)] == 0) sum.indices.push_back(row.index(i));
  }
  sum.weights.Add(move.length, row, vectors.bias_input());
}

void BatchPerceptron::FinishUpdate(ScoreVectors& /*vectors*/, const Target& target) {
  if (memory.pending++ == 0) memory.first_age = target.age;
}

void BatchPerceptron::EndBatch(ScoreVectors& vectors) {
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

}  // namespace perceptrond
