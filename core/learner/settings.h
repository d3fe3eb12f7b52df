// What a learner is told when it is made. See perceptron.v1.Learner for the meaning and the
// defaults.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace perceptrond {

enum class LearnerKind : uint8_t { kPerceptron };

// What a score of exactly 0 means.
enum class TieRule : uint8_t {
  // Mistake iff y s <= 0; predicts -1 at 0. (seeds 000, 003)
  kMistake,
  // Predicts +1 at 0; mistake iff the prediction differs from the label. (seed 004)
  kPositive,
  // Mistake iff y s < 0; predicts -1 at 0. (seed 002)
  kCorrect,
};

// Weights to start from. Indices are those of the feature space; names in a named space.
struct StartingWeights {
  std::vector<uint32_t> indices;
  std::vector<std::string> names;
  std::vector<float> values;
  // theta_0: the constant in the score.
  double offset = 0;

  bool all_zero() const {
    for (const float value : values) {
      if (value != 0) return false;
    }
    return offset == 0;
  }
};

struct LearnerSettings {
  LearnerKind kind = LearnerKind::kPerceptron;
  // eta, > 0.
  double step_size = 1;
  TieRule tie_rule = TieRule::kMistake;
  // b, the constant coordinate; 0: no offset.
  double offset_value = 1;
  StartingWeights start;
};

}  // namespace perceptrond
