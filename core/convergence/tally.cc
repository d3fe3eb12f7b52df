#include "core/convergence/tally.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/learner/catalogue.h"
#include "core/vector/kernels.h"

namespace perceptrond {
namespace {

// The largest change to a weight, if every change, the offset's too, is a whole number.
double WholeStep(const LearnerSettings& settings, const Row& row, const Target& target) {
  const double step = settings.step_size * target.weight;
  const float b[1] = {static_cast<float>(settings.bias_input)};
  if (b[0] != settings.bias_input) return std::numeric_limits<double>::infinity();
  return std::max(LargestWholeStep(step, row), LargestWholeStep(step, Row{nullptr, b, 1}));
}

// float32 rounds each of the weights that moved by at most 2^-24 of it, or by half of the least
// number.
double MostRounding(size_t moved, double norm) {
  return std::ldexp(1.01 * norm, -24) + std::ldexp(std::sqrt(static_cast<double>(moved)), -150);
}

}  // namespace

void NoteUpdate(const LearnerSettings& settings, const Learner& learner, const Row& row,
                const Target& target, Tally& tally) {
  if (target.weight != 1) ++tally.weighted_updates;
  if (!FindLearner(settings).convergence_theorem || !settings.knows_all_classes()) return;
  // The example's class and its rival move.
  const size_t moved = (settings.is_multiclass() ? 2 : 1) * (row.size + 1);
  const double norm = std::sqrt(std::max(0.0, learner.augmented_squared_norm()));
  tally.whole_step = WholeStep(settings, row, target);
  tally.scaled_norm = norm / settings.step_size;
  tally.rounding = MostRounding(moved, norm) / settings.step_size;
  tally.at_zero = norm == 0 && learner.learned_weights()->AreZero();
}

}  // namespace perceptrond
