#include "tests/bench/plain_loop.h"

namespace perceptrond::bench {

size_t PlainLearn(const PlainArrays& arrays, float* weights, float* scores, int32_t* predicted) {
  size_t mistakes = 0;
  size_t begin = 0;
  for (size_t row = 0; row < arrays.rows; ++row) {
    const size_t end = arrays.indices == nullptr ? begin + arrays.width : arrays.row_ends[row];
    const auto label = static_cast<float>(arrays.labels[row]);
    float score = 0;
    if (arrays.indices == nullptr) {
      for (size_t i = begin; i < end; ++i) score += weights[i - begin] * arrays.values[i];
    } else {
      for (size_t i = begin; i < end; ++i) score += weights[arrays.indices[i]] * arrays.values[i];
    }
    scores[row] = score;
    predicted[row] = score > 0 ? 1 : -1;
    if (label * score <= 0) {
      ++mistakes;
      for (size_t i = begin; i < end; ++i) {
        weights[arrays.indices == nullptr ? i - begin : arrays.indices[i]] +=
            label * arrays.values[i];
      }
    }
    begin = end;
  }
  return mistakes;
}

}  // namespace perceptrond::bench
