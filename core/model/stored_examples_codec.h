// Converts stored examples to and from their form in the journal.
#pragma once

#include "absl/status/statusor.h"
#include "core/model/stored_examples.h"
#include "perceptron/storage/v1/journal.pb.h"

namespace perceptrond {

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

}  // namespace perceptrond
