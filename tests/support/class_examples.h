// Random examples of several classes, separable with a known margin or not.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/support/svmlight.h"

namespace perceptrond::testing {

// Examples of K classes. With margin >= 0 only those that a random W of norm 1 separates by it;
// else some have another class than W says.
struct DrawnClasses {
  uint32_t classes;
  uint32_t dimension;
  size_t count;
  double b;
  double margin;
};

inline std::vector<SvmExample> DrawClasses(uint32_t seed, const DrawnClasses& drawn) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<std::vector<double>> w(drawn.classes, std::vector<double>(drawn.dimension + 1));
  double squared = 0;
  for (auto& block : w) {
    for (double& weight : block) {
      weight = normal(random);
      squared += weight * weight;
    }
  }
  std::vector<SvmExample> examples;
  while (examples.size() < drawn.count) {
    std::vector<float> x(drawn.dimension);
    for (float& value : x) value = normal(random);
    std::vector<double> scores;
    for (const auto& block : w) {
      scores.push_back(block.back() * drawn.b);
      for (uint32_t j = 0; j < drawn.dimension; ++j) scores.back() += block[j] * x[j];
    }
    const auto best = std::max_element(scores.begin(), scores.end());
    const auto label = static_cast<int>(best - scores.begin());
    const double top = *best;
    *best = -std::numeric_limits<double>::infinity();
    const double margin =
        (top - *std::max_element(scores.begin(), scores.end())) / std::sqrt(squared);
    if (margin < drawn.margin) continue;
    const bool noise = drawn.margin < 0 && random() % 8 == 0;
    SvmExample& example = examples.emplace_back();
    example.label = noise ? static_cast<int>(random() % drawn.classes) : label;
    example.values = x;
    for (uint32_t j = 0; j < drawn.dimension; ++j) example.indices.push_back(j);
  }
  return examples;
}

}  // namespace perceptrond::testing
