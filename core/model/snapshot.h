// Snapshots: a model's whole state as the journal keeps it. Of a learner's arrays that are mostly
// zero only the other values are stored.
#pragma once

#include "absl/status/statusor.h"
#include "core/journal/journal.h"
#include "core/learner/learner.h"
#include "core/ledger/stored_examples.h"
#include "core/model/views.h"
#include "perceptron/storage/v1/journal.pb.h"

namespace perceptrond {

// A snapshot with arrays, scalars and rows.
::perceptron::storage::v1::Snapshot WriteState(const LearnerStateView& state);
// Equal to the bit to the state that was written. DATA_LOSS if an array or a row is inconsistent.
absl::StatusOr<LearnerState> ReadState(const ::perceptron::storage::v1::Snapshot& snapshot);

::perceptron::storage::v1::StoredRows ToStorage(const StoredExamplesCopy& examples);

// The model that rows belong to.
struct StoredRowShape {
  // Indices are below it.
  size_t size = 0;
  bool named = false;
};
// DATA_LOSS for a row that is inconsistent or does not fit; labels are not checked. Sampled rows
// are hashed again with `names`, the dictionary they were stored with.
absl::StatusOr<StoredExamplesCopy> FromStorage(const ::perceptron::storage::v1::StoredRows& stored,
                                               const StoredRowShape& shape,
                                               const Dictionary& names);

// The state of one revision: weights, names, classes, learning curve, stored examples. The time is
// not set. O(weights and stored examples).
storage::Snapshot MakeSnapshot(const ModelReader& reader);
// The same of a model's state, which the caller has locked.
storage::Snapshot MakeSnapshot(const ModelCore& core, const ModelState& state);
inline storage::Snapshot MakeSnapshot(const Model& model) {
  return MakeSnapshot(ModelReader(model, ComponentAccess::kNone));
}

}  // namespace perceptrond
