// What a learner is told when it is made. See perceptron.v1.Learner for the meaning and the
// defaults.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace perceptrond {

enum class LearnerKind : uint8_t {
  kPerceptron,
  kAveragedPerceptron,
  kPocket,
  kMarginPerceptron,
  kPassiveAggressive,
  kPassiveAggressiveI,
  kPassiveAggressiveII,
  kArow,
  kLogisticRegression,
  kBatchPerceptron,
  kVotedPerceptron,
  kKernelPerceptron,
};

// What a score of exactly 0 means.
enum class TieRule : uint8_t {
  // Mistake iff y s <= 0; predicts -1 at 0. (seeds 000, 003)
  kMistake,
  // Predicts +1 at 0; mistake iff the prediction differs from the label. (seed 004)
  kPositive,
  // Mistake iff y s < 0; predicts -1 at 0. (seed 002)
  kCorrect,
};

// k of the kernel perceptron: K(x, z) = k(x, z) + b^2.
struct KernelSettings {
  enum class Kind : uint8_t {
    // x . z
    kLinear,
    // (coef0 + x . z)^degree
    kPolynomial,
    // exp(-gamma ||x - z||^2)
    kRbf,
  };
  Kind kind = Kind::kRbf;
  // 1 to 16.
  uint32_t degree = 2;
  // >= 0.
  double coef0 = 1;
  // > 0.
  double gamma = 1;
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

// What a model of several classes was created with.
struct ClassSettings {
  // 0: two classes, -1 and +1. Else 2 to kMost.
  uint32_t max = 0;
  // How many of them there are from the start: 0, 1, ...
  uint32_t initial = 0;
  // How much examples of each count; empty: each counts 1.
  std::vector<double> weights;

  static constexpr uint32_t kMost = 10'000;
};

struct LearnerSettings {
  LearnerKind kind = LearnerKind::kPerceptron;
  // eta, > 0.
  double step_size = 1;
  TieRule tie_rule = TieRule::kMistake;
  // b, the constant coordinate; 0: no offset.
  double offset_value = 1;
  // C of PA-I and PA-II, > 0.
  double aggressiveness = 1;
  // alpha of the perceptron with margin, in (0, 1].
  double margin_slack = 0.9;
  // r of AROW, > 0.
  double regularization = 1;
  // Of logistic regression, in [0, 0.5).
  double update_threshold = 0;
  // Of the batch perceptron: a step every so many examples; 0: at the end of a pass only.
  uint32_t mini_batch = 0;
  // Rows that the voted and the kernel perceptron keep, >= 1.
  uint32_t budget = 1000;
  // Of the kernel perceptron.
  KernelSettings kernel;
  // Rows that the pocket's ratchet goes by; 0: no ratchet.
  uint32_t ratchet_examples = 0;
  // How much examples of -1 and of +1 count.
  double class_weights[2] = {1, 1};
  StartingWeights start;
  ClassSettings classes;

  double class_weight(int32_t label) const {
    if (classes.max == 0) return class_weights[label > 0 ? 1 : 0];
    return classes.weights.empty() ? 1 : classes.weights[static_cast<size_t>(label)];
  }
};

}  // namespace perceptrond
