#include "core/learner/learner.h"

namespace perceptrond {

void Learner::EvaluateRows(const Batch& batch, size_t first, size_t max_features,
                           std::span<EvaluatedRow> evaluated) const {
  const auto dimension = static_cast<uint32_t>(size());
  for (size_t i = 0; i < evaluated.size(); ++i) {
    const Row row = batch.row(first + i);
    evaluated[i].code = CheckRow(row, dimension, max_features, &evaluated[i].squared_norm);
    if (evaluated[i].code == ValidationCode::kNone)
      evaluated[i].evaluation = Evaluate(row, batch.labels[first + i]);
  }
}

}  // namespace perceptrond
