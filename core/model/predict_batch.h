// How a batch is predicted and explained.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "core/model/model.h"
#include "core/model/model_core.h"

namespace perceptrond {

// Model::Predict, for rows in the space that the model learns in: under the state's shared lock, on
// one revision.
absl::Status PredictBatch(const ModelCore& core, const Batch& batch,
                          std::span<const RowError> row_errors, uint64_t min_revision,
                          bool include_class_scores, PredictOutcome& outcome);

// Model::Explain, in the same way.
absl::Status ExplainBatch(const ModelCore& core, const Batch& batch,
                          std::span<const RowError> row_errors, const ExplainOptions& options,
                          ExplainOutcome& outcome);

}  // namespace perceptrond
