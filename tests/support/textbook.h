// The perceptron as a textbook has it, in float64 and plain loops. Uses nothing of core/.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/support/svmlight.h"

namespace perceptrond::testing {

struct Textbook {
  explicit Textbook(size_t dimension, double bias_input = 1, double step_size = 1)
      : weights(dimension), bias_input(bias_input), step_size(step_size) {}

  double Score(const SvmExample& example) const {
    double score = bias * bias_input;
    for (size_t i = 0; i < example.indices.size(); ++i) {
      if (example.indices[i] < weights.size())
        score += weights[example.indices[i]] * static_cast<double>(example.values[i]);
    }
    return score;
  }
  // Learns one example by the rule "mistake iff y s <= 0". Says whether it was one.
  bool Learn(const SvmExample& example) {
    if (example.label * Score(example) > 0) return false;
    for (size_t i = 0; i < example.indices.size(); ++i) {
      weights[example.indices[i]] += step_size * example.label * example.values[i];
    }
    bias += step_size * example.label * bias_input;
    return true;
  }
  // Learns all in their order and counts the mistakes.
  uint64_t Pass(const std::vector<SvmExample>& examples) {
    uint64_t mistakes = 0;
    for (const SvmExample& example : examples) mistakes += Learn(example) ? 1 : 0;
    return mistakes;
  }
  std::vector<double> weights;
  double bias_input;
  double step_size;
  // The constant coordinate's weight.
  double bias = 0;
};

}  // namespace perceptrond::testing
