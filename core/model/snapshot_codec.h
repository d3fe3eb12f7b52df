// A learner's state, to and from its stored form: arrays that are mostly zero keep only what is
// not.
#pragma once

#include "absl/status/statusor.h"
#include "core/learner/learner.h"
#include "perceptron/storage/v1/journal.pb.h"

namespace perceptrond {

// arrays, scalars and rows of a snapshot.
::perceptron::storage::v1::Snapshot WriteState(const LearnerStateView& state);
// The same bits again. DATA_LOSS if an array or a row contradicts itself.
absl::StatusOr<LearnerState> ReadState(const ::perceptron::storage::v1::Snapshot& snapshot);

}  // namespace perceptrond
