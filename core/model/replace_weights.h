// How a model's weights are replaced by others, as by the separator of an analysis.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/model_core.h"

namespace perceptrond {

// Weights by index. In a named space indices from `first_new` on stand for new names: index
// first_new + i for new_names[i].
struct NewWeights {
  struct Vector {
    // Strictly ascending.
    std::vector<uint32_t> indices;
    // One an index, finite.
    std::vector<float> values;
    // The weight of the constant input.
    float bias_weight = 0;
  };
  // One; with several classes one a class, by number, empty for a class that the model does not
  // have. Classes without a vector get weights of 0.
  std::vector<Vector> vectors;
  std::vector<std::string> new_names;
  uint32_t first_new = std::numeric_limits<uint32_t>::max();
};

// Model::ReplaceWeights.
absl::StatusOr<uint64_t> ReplaceAllWeights(ModelCore& core, NewWeights weights,
                                           std::optional<uint64_t> expected_revision);

}  // namespace perceptrond
