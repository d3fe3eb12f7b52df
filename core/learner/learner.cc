#include "core/learner/learner.h"

namespace perceptrond {

void Learner::JudgeRows(const Batch& batch, size_t first, size_t max_features,
                        std::span<JudgedRow> judged) const {
  const auto dimension = static_cast<uint32_t>(size());
  for (size_t i = 0; i < judged.size(); ++i) {
    const Row row = batch.row(first + i);
    judged[i].fault = CheckRow(row, dimension, max_features, &judged[i].squared_norm);
    if (judged[i].fault == Fault::kNone) judged[i].judgement = Judge(row, batch.labels[first + i]);
  }
}

}  // namespace perceptrond
