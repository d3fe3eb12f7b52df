#include "core/learner/confidence_rule.h"

#include <cmath>
#include <limits>

namespace perceptrond {

void ConfidenceRule::Memory::Resize(size_t vectors, size_t size) {
  if (variances.size() < vectors) variances.resize(vectors);
  for (Variances& one : variances) {
    if (one.features.size() < size) one.features.resize(size, 1.0F);
  }
}

void ConfidenceRule::Memory::AppendTo(const ScoreVectors& /*vectors*/,
                                      LearnerStateView& state) const {
  for (const Variances& one : variances) {
    Append(one.features, state);
    Append(one.bias, state);
  }
}

bool ConfidenceRule::Memory::Read(StateReader& state, ScoreVectors& vectors) {
  for (size_t k = 0; k < vectors.count(); ++k) {
    FloatArray features = state.Array();
    variances.push_back({std::move(features), state.Scalar()});
  }
  return true;
}

double ConfidenceRule::Variance(const ScoreVectors& vectors, size_t k, const Row& row) const {
  // Nothing has been learned about a class that does not exist.
  if (k >= memory.variances.size()) return vectors.AugmentedSquaredNorm(row);
  const Variances& variances = memory.variances[k];
  const double b = vectors.bias_input();
  return WeightedSquaredNorm(variances.features, row) + variances.bias * b * b;
}

bool ConfidenceRule::CanMove(const ScoreVectors& vectors, const Move& move, const Row& row) const {
  if (move.vector >= memory.variances.size())
    return vectors.StaysFinite(move.vector, move.length, row);
  const LinearWeights& linear = vectors[move.vector];
  const Variances& variances = memory.variances[move.vector];
  const double bias = linear.bias_weight + move.length * variances.bias * vectors.bias_input();
  return std::abs(bias) <= std::numeric_limits<float>::max() &&
         StaysFiniteAlong(linear.weights, move.length, variances.features, row);
}

void ConfidenceRule::MakeMove(ScoreVectors& vectors, const Move& move, const Row& row) {
  // The first example of a class may have margin enough.
  if (move.length == 0) return;
  LinearWeights& linear = vectors[move.vector];
  Variances& variances = memory.variances[move.vector];
  const double b = vectors.bias_input();
  AddScaledAlong(linear.weights, move.length, variances.features, row, linear.squared_norm);
  linear.bias_weight = static_cast<float>(linear.bias_weight + move.length * variances.bias * b);
  ShrinkVariances(variances.features, move.shrink, row);
  variances.bias =
      static_cast<float>(variances.bias - move.shrink * variances.bias * variances.bias * b * b);
}

}  // namespace perceptrond
