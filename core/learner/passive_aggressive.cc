#include "core/learner/passive_aggressive.h"

#include <algorithm>

namespace perceptrond {

double PassiveAggressive::Step(const Row& row, double signed_score, double weight) const {
  const double loss = Loss(signed_score);
  const double squared_norm = AugmentedSquaredNorm(row);
  const double most = weight * aggressiveness_;
  if (kind_ == LearnerKind::kPassiveAggressiveII) return loss / (squared_norm + 0.5 / most);
  // Nothing changes the score of an example that is all zeros.
  const double step = squared_norm > 0 ? loss / squared_norm : 0;
  return kind_ == LearnerKind::kPassiveAggressiveI ? std::min(most, step) : step;
}

}  // namespace perceptrond
