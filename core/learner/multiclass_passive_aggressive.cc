#include "core/learner/multiclass_passive_aggressive.h"

#include <algorithm>

namespace perceptrond {

double MulticlassPassiveAggressive::Step(const Row& row, const Target& target,
                                         const Evaluation& evaluation) const {
  const double loss = Loss(evaluation.score);
  const double squared_norm = 2 * AugmentedSquaredNorm(row);
  const double most = target.weight * aggressiveness_;
  if (kind_ == LearnerKind::kPassiveAggressiveII) return loss / (squared_norm + 0.5 / most);
  // Nothing changes the scores of an example that is all zeros.
  const double step = squared_norm > 0 ? loss / squared_norm : 0;
  return kind_ == LearnerKind::kPassiveAggressiveI ? std::min(most, step) : step;
}

}  // namespace perceptrond
