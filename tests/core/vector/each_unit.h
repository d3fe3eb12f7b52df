// Tests that are run with each vector unit.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "core/vector/simd.h"
#include "gtest/gtest.h"

namespace perceptrond::testing {

inline double Times(float a, float b) { return static_cast<double>(a) * static_cast<double>(b); }

// One vector unit that this machine and the build have.
class UnitTest : public ::testing::TestWithParam<const simd::Loops*> {
 protected:
  static const simd::Loops& unit() { return *GetParam(); }

  std::vector<float> Floats(size_t size) {
    std::vector<float> values(size);
    // Magnitudes differ, so that another order of additions shows.
    for (float& value : values) value = normal_(random_) * std::exp2(8 * normal_(random_));
    return values;
  }

  // Strictly ascending, below 2 * size + 2, odd and even, neighbours and gaps.
  std::vector<uint32_t> AscendingIndices(size_t size) {
    std::vector<uint32_t> result;
    uint32_t at = random_() % 2;
    for (size_t i = 0; i < size; ++i, at += 1 + random_() % 2) result.push_back(at);
    return result;
  }

  std::mt19937 random_{7};
  std::normal_distribution<float> normal_;
};

}  // namespace perceptrond::testing
