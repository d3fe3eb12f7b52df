#include "tests/bench/plain_loop.h"

namespace perceptrond::bench {
namespace {

// Several sums at once, so that the compiler uses vectors: it may not reorder one sum.
constexpr size_t kSums = 64;

float DenseScore(const float* weights, const float* values, size_t width) {
  float sums[kSums] = {};
  size_t i = 0;
  for (; i + kSums <= width; i += kSums) {
    for (size_t s = 0; s < kSums; ++s) sums[s] += weights[i + s] * values[i + s];
  }
  for (size_t half = kSums / 2; half > 0; half /= 2) {
    for (size_t s = 0; s < half; ++s) sums[s] += sums[s + half];
  }
  for (; i < width; ++i) sums[0] += weights[i] * values[i];
  return sums[0];
}

float SparseScore(const PlainArrays& arrays, const float* weights, size_t begin, size_t end) {
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
    const size_t end = arrays.indices == nullptr ? begin + arrays.width : arrays.row_ends[row];
    const auto label = static_cast<float>(arrays.labels[row]);
    float score = 0;
    if (arrays.indices == nullptr) {
      score = DenseScore(weights, arrays.values + begin, arrays.width);
    } else {
      score = SparseScore(arrays, weights, begin, end);
    }
    scores[row] = score;
    predicted[row] = score > 0 ? 1 : -1;
    if (label * score <= 0) {
      ++mistakes;
      for (size_t i = begin; i < end; ++i) {
        weights[arrays.indices == nullptr ? i - begin : WeightOf(arrays, i)] +=
            label * arrays.values[i];
      }
    }
    begin = end;
  }
  return mistakes;
}

}  // namespace perceptrond::bench
