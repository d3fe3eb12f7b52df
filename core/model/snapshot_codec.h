// Converts a learner's state to and from its stored form. Of arrays that are mostly zero only the
// other values are stored.
#pragma once

#include "absl/status/statusor.h"
#include "core/learner/learner.h"
#include "perceptron/storage/v1/journal.pb.h"

namespace perceptrond {

// A snapshot with arrays, scalars and rows.
::perceptron::storage::v1::Snapshot WriteState(const LearnerStateView& state);
// Equal to the bit to the state that was written. DATA_LOSS if an array or a row is inconsistent.
absl::StatusOr<LearnerState> ReadState(const ::perceptron::storage::v1::Snapshot& snapshot);

}  // namespace perceptrond
