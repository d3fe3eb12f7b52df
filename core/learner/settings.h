// The settings a learner is created with. perceptron.v1.Learner has their meaning and defaults.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace perceptrond {

// When weights change, and by how much.
enum class RuleKind : uint8_t {
  kPerceptron,
  kMarginPerceptron,
  kPassiveAggressive,
  kPassiveAggressiveI,
  kPassiveAggressiveII,
  kArow,
  kLogisticRegression,
  kBatchPerceptron,
  kKernelPerceptron,
  kSoftConfidenceWeighted,
  kAuto,
};

// Which of the weights that a rule has learned make the predictions.
enum class WrapperKind : uint8_t {
  // The newest.
  kNone,
  // The average over all examples.
  kAveraged,
  // Those with the longest run of correct predictions.
  kPocket,
  // All of them, by vote.
  kVoted,
};

// What a score of exactly 0 means.
enum class TieRule : uint8_t {
  // Mistake iff y s <= 0; predicts -1 at 0.
  kMistake,
  // Predicts +1 at 0; mistake iff the prediction differs from the label.
  kPositive,
  // Mistake iff y s < 0; predicts -1 at 0.
  kCorrect,
};

// k in the kernel K(x, z) = k(x, z) + b^2.
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

// Weights to start from.
struct StartingWeights {
  struct Vector {
    // By the feature space's indices; in a named space 1 is the first of `names`.
    std::vector<uint32_t> indices;
    std::vector<float> values;
    // theta_0, the constant in the score.
    double bias = 0;
  };
  // Of a named space; none twice.
  std::vector<std::string> names;
  // One for two labels, or one for each class that exists from the start. Empty: all are zero.
  std::vector<Vector> vectors;

  bool all_zero() const {
    for (const Vector& vector : vectors) {
      if (vector.bias != 0) return false;
      for (const float value : vector.values) {
        if (value != 0) return false;
      }
    }
    return true;
  }
};

// The classes of a model. Two labels, -1 and +1, are no classes.
struct ClassSettings {
  // The most classes there may be, 2 to kMost; 0: the model has two labels.
  uint32_t max = 0;
  // Classes 0 to initial - 1 exist from the start.
  uint32_t initial = 0;
  // Weight of each class's examples; empty: all weigh 1.
  std::vector<double> weights;

  static constexpr uint32_t kMost = 10'000;
};

// How the steps of logistic regression change: core/learner/logistic_regression.h.
enum class StepSchedule : uint8_t { kConstant, kDecreasing, kAdaptive };

struct LearnerSettings {
  RuleKind rule = RuleKind::kPerceptron;
  WrapperKind wrapper = WrapperKind::kNone;
  // eta, > 0.
  double step_size = 1;
  TieRule tie_rule = TieRule::kMistake;
  // b, the constant input, >= 0; 0: there is no bias.
  double bias_input = 1;
  // C of PA-I, PA-II and SCW-I, > 0.
  double aggressiveness = 1;
  // alpha of the perceptron with margin, in (0, 1].
  double margin_slack = 0.9;
  // r of AROW, > 0.
  double regularization = 1;
  // eta of SCW-I, a probability in (0.5, 1).
  double confidence = 0.75;
  // Logistic regression learns from an example if its label has less than the probability 1 minus
  // this; in [0, 0.5).
  double update_threshold = 0;
  // Its steps.
  StepSchedule steps = StepSchedule::kConstant;
  // Examples per step of the batch perceptron; 0: it makes a step at the end of a pass only.
  uint32_t mini_batch = 0;
  // Rows that the voted and the kernel perceptron keep, >= 1.
  uint32_t budget = 1000;
  // The kernel perceptron's.
  KernelSettings kernel;
  // Rows that the pocket's ratchet compares weights on; 0: no ratchet.
  uint32_t ratchet_examples = 0;
  // Weights of the examples of -1 and of +1.
  double class_weights[2] = {1, 1};
  StartingWeights start;
  ClassSettings classes;

  bool is_multiclass() const { return classes.max > 0; }
  // No class appears mid-stream.
  bool knows_all_classes() const { return classes.initial == classes.max; }
  double class_weight(int32_t label) const {
    if (!is_multiclass()) return class_weights[label > 0 ? 1 : 0];
    return classes.weights.empty() ? 1 : classes.weights[static_cast<size_t>(label)];
  }
  // Every example weighs the same unless it says otherwise itself.
  bool weighs_classes_equally() const {
    for (const double weight : classes.weights) {
      if (weight != 1) return false;
    }
    return class_weights[0] == 1 && class_weights[1] == 1;
  }
};

}  // namespace perceptrond
