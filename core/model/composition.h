// What a model of other models learns from: their answers to each example, one feature each. (S16
// of the theory: seeds 003, 004)
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/model/row_error.h"
#include "core/model/settings.h"
#include "core/vector/batch.h"

namespace perceptrond {

class Model;

// The model of a name, as Store::Acquire gives it; without `load` only if it is in memory, and
// NOT_FOUND else.
using ComponentSource =
    std::function<absl::StatusOr<std::shared_ptr<Model>>(absl::string_view name, bool load)>;

// What a model's answers come from, as one number: another whenever they may be others, but for a
// chance of 2^-64. Made of the revision, the weights' norm (after a crash other weights may get a
// number that was lost with its update), and the age of rules whose answers depend on it.
using StateFingerprint = uint64_t;

// A batch of answers. Labels and weights are views of the batch it was made of.
struct ComposedBatch {
  std::vector<float> values;
  // Rows that were refused before, and those that a component refuses; ascending. They lie in the
  // batch as zeros.
  std::vector<RowError> row_errors;
  // One a component: the revision that it answered from.
  std::vector<uint64_t> revisions;
  Batch batch;
  // Of all components, in the states they answered from.
  StateFingerprint fingerprint = 0;
};

// Asks every component for the whole batch, each on one revision of its own, and changes nothing.
// INVALID_ARGUMENT for malformed columns; whatever `source` and the components say if one cannot be
// asked. Takes the components' locks one after the other: hold none of a model's.
absl::Status Compose(const std::vector<Component>& components, const ComponentSource& source,
                     const Batch& batch, std::span<const RowError> row_errors,
                     ComposedBatch& composed);

// What Compose would say of the components now. Nothing if one of them cannot be asked.
std::optional<StateFingerprint> FingerprintOf(const std::vector<Component>& components,
                                              const ComponentSource& source, bool load);

// Of a model that has the first and whose components have the second.
StateFingerprint CombineFingerprints(StateFingerprint own, StateFingerprint components);

}  // namespace perceptrond
