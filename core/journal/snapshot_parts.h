// Splits a snapshot into parts that can be stored: Protobuf writes no message of 2 GiB or more, and
// the state of a large model is larger.
#pragma once

#include <cstddef>
#include <functional>

#include "absl/status/status.h"
#include "perceptron/storage/v1/journal.pb.h"

namespace perceptrond {

// Calls `write` with each part of the snapshot, in order; there is at least one. A part takes about
// `part_bytes`, or more if one name, one StateRows or one stored example does. A snapshot that fits
// is its own only part. Stops at the first error and returns it.
absl::Status ForEachPart(
    const ::perceptron::storage::v1::Snapshot& snapshot, size_t part_bytes,
    const std::function<absl::Status(const ::perceptron::storage::v1::Snapshot&)>& write);

// Appends the next part. DATA_LOSS if it does not fit the parts before.
absl::Status AppendPart(::perceptron::storage::v1::Snapshot part,
                        ::perceptron::storage::v1::Snapshot& whole);

}  // namespace perceptrond
