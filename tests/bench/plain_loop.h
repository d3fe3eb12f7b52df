// A plain loop over the same arrays: the perceptron as anyone would write it in C, built
// with -O3 -march=native (see CMakeLists.txt).
#pragma once

#include <cstddef>
#include <cstdint>

namespace perceptrond::bench {

// Arrays that do not overlap. table: where the weight of each index is; null: at the index.
struct PlainArrays {
  const uint32_t* row_ends;
  const uint32_t* indices;
  const float* values;
  const int32_t* labels;
  size_t rows;
  const uint32_t* table = nullptr;
};

// Evaluates every row, learns from the mistakes, and fills a score and a prediction a row.
// Returns the mistakes.
size_t PlainLearn(const PlainArrays& arrays, float* weights, float* scores, int32_t* predicted);

}  // namespace perceptrond::bench
