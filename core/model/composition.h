// What a model of other models learns from: their answers to each example, one feature each. (S16
// of the theory: seeds 003, 004)
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/model/refused_row.h"
#include "core/model/settings.h"
#include "core/vector/batch.h"

namespace perceptrond {

class Model;

// The model of a name, as Store::Acquire gives it.
using ComponentSource = std::function<absl::StatusOr<std::shared_ptr<Model>>(absl::string_view)>;

// A batch of answers. Labels and weights are views of the batch it was made of.
struct ComposedBatch {
  std::vector<float> values;
  // Rows that were refused before, and those that a component refuses; ascending. They lie in the
  // batch as zeros.
  std::vector<RefusedRow> refused;
  // One a component: the revision that it answered from.
  std::vector<uint64_t> revisions;
  Batch batch;
};

// Asks every component for the whole batch, each on one revision of its own, and changes nothing.
// INVALID_ARGUMENT for malformed columns; whatever `source` and the components say if one cannot be
// asked. Takes the components' locks one after the other: hold none of a model's.
absl::Status Compose(const std::vector<Component>& components, const ComponentSource& source,
                     const Batch& batch, std::span<const RefusedRow> refused,
                     ComposedBatch& composed);

}  // namespace perceptrond
