#include "core/learner/margin_perceptron.h"

namespace perceptrond {

void MarginPerceptron::LimitNorm(ScoreVectors& vectors) {
  // Below it the weights come near the limits of float32.
  constexpr double kSmallestScale = 1e-9;
  const double norm = std::sqrt(AugmentedSquaredNorm(vectors));
  if (norm > 1) vectors.set_scale(vectors.scale() / norm);
  if (vectors.scale() < kSmallestScale) vectors.ApplyScale();
}

void MarginPerceptron::FinishUpdate(ScoreVectors& vectors, const Target& /*target*/) {
  ++memory.updates;
  LimitNorm(vectors);
}

void MarginPerceptron::Memory::AppendTo(const ScoreVectors& vectors,
                                        LearnerStateView& state) const {
  Append(vectors.scale(), state);
  Append(static_cast<double>(updates), state);
}

bool MarginPerceptron::Memory::Read(StateReader& state, ScoreVectors& vectors) {
  const double scale = state.Scalar();
  updates = state.Count();
  vectors.set_scale(scale);
  return scale > 0;
}

}  // namespace perceptrond
