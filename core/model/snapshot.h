// A model's whole state, as the journal keeps it.
#pragma once

#include "core/journal/journal.h"
#include "core/model/model_reader.h"

namespace perceptrond {

// The state of one revision: weights, names, classes, learning curve, stored examples. The time is
// not set. O(weights and stored examples).
storage::Snapshot MakeSnapshot(const ModelReader& reader);
inline storage::Snapshot MakeSnapshot(const Model& model) {
  return MakeSnapshot(ModelReader(model, ComponentAccess::kNone));
}

}  // namespace perceptrond
