#include "tests/bench/plain_loop.h"

namespace perceptrond::bench {
namespace {

float Score(const PlainArrays& arrays, const float* weights, size_t begin, size_t end) {
  float score = 0;
  if (arrays.table == nullptr) {
    for (size_t i = begin; i < end; ++i) score += weights[arrays.indices[i]] * arrays.values[i];
  } else {
    for (size_t i = begin; i < end; ++i)
      score += weights[arrays.table[arrays.indices[i]]] * arrays.values[i];
  }
  return score;
}

size_t WeightOf(const PlainArrays& arrays, size_t i) {
  return arrays.table == nullptr ? arrays.indices[i] : arrays.table[arrays.indices[i]];
}

}  // namespace

size_t PlainLearn(const PlainArrays& arrays, float* weights, float* scores, int32_t* predicted) {
  size_t mistakes = 0;
  size_t begin = 0;
  for (size_t row = 0; row < arrays.rows; ++row) {
    const size_t end = arrays.row_ends[row];
    const auto label = static_cast<float>(arrays.labels[row]);
    const float score = Score(arrays, weights, begin, end);
    scores[row] = score;
    predicted[row] = score > 0 ? 1 : -1;
    if (label * score <= 0) {
      ++mistakes;
      for (size_t i = begin; i < end; ++i) weights[WeightOf(arrays, i)] += label * arrays.values[i];
    }
    begin = end;
  }
  return mistakes;
}

}  // namespace perceptrond::bench
