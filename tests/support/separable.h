// Random data whose margin is known because it was built with one.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "tests/support/svmlight.h"

namespace perceptrond::testing {

struct SeparableData {
  std::vector<SvmExample> examples;
  uint32_t dimension = 0;
  // Every augmented example (x, b) has y theta . (x, b) >= margin for one unit theta, so the
  // largest margin is at least this.
  double margin = 0;
  // Max of ||x||^2 + b^2.
  double squared_radius = 0;
};

// `count` examples of `dimension` features in [-1, 1], with margin at least `margin` in the space
// augmented by b. theta is drawn first; examples too near to its hyperplane are drawn again.
inline SeparableData MakeSeparable(uint32_t seed, size_t count, uint32_t dimension, double margin,
                                   double b) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> theta(dimension + 1);
  double norm = 0;
  for (double& t : theta) {
    t = normal(random);
    norm += t * t;
  }
  SeparableData data;
  data.dimension = dimension;
  data.margin = margin;
  while (data.examples.size() < count) {
    SvmExample example;
    double score = theta[dimension] * b;
    double squared = b * b;
    for (uint32_t i = 0; i < dimension; ++i) {
      const auto value = static_cast<float>(uniform(random));
      example.indices.push_back(i);
      example.values.push_back(value);
      score += theta[i] * value;
      squared += static_cast<double>(value) * value;
    }
    score /= std::sqrt(norm);
    if (std::abs(score) < margin) continue;
    example.label = score > 0 ? 1 : -1;
    data.squared_radius = std::max(data.squared_radius, squared);
    data.examples.push_back(std::move(example));
  }
  return data;
}

}  // namespace perceptrond::testing
