#include "core/learner/predictor.h"

namespace perceptrond {

void Predictor::ScoreRows(const Batch& batch, size_t first, size_t max_features, uint64_t age,
                          std::span<ValidationCode> codes, std::span<double> scores) const {
  const auto dimension = static_cast<uint32_t>(size());
  const size_t k = this->scores();
  for (size_t i = 0; i < codes.size(); ++i) {
    const Row row = batch.row(first + i);
    double squared_norm = 0;
    codes[i] = CheckRow(row, dimension, max_features, &squared_norm);
    if (codes[i] == ValidationCode::kNone) Score(row, age, scores.subspan(i * k, k));
  }
}

}  // namespace perceptrond
