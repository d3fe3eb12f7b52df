// One example's features, seen where they lie: the form that every learner takes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace perceptrond {

// Where a sparse row without features points: null indices would make it dense.
inline constexpr uint32_t kNoIndices[1] = {};

// A view of one row, sparse or dense. Owns nothing: the arrays must outlive it. Any thread may read
// it.
struct Row {
  // Sparse: `size` indices. Dense: null, and value i belongs to feature i.
  const uint32_t* indices = nullptr;
  // `size` values, or null: every value is 1.
  const float* values = nullptr;
  size_t size = 0;

  uint32_t index(size_t i) const {
    return indices == nullptr ? static_cast<uint32_t>(i) : indices[i];
  }
  float value(size_t i) const { return values == nullptr ? 1.0F : values[i]; }
};

}  // namespace perceptrond
