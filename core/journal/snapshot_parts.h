// Cuts a snapshot into parts that can be stored: Protobuf writes no message of 2 GiB and more, and
// a large model's state is more.
#pragma once

#include <cstddef>
#include <functional>

#include "absl/status/status.h"
#include "perceptron/storage/v1/journal.pb.h"

namespace perceptrond {

// Calls `write` with the snapshot's parts, in order; there is at least one. A part takes about
// `part_bytes`; more only if one name, one StateRows or one retained row does. A snapshot that fits
// is its own only part. Stops at the first error and returns it.
absl::Status ForEachPart(
    const ::perceptron::storage::v1::Snapshot& snapshot, size_t part_bytes,
    const std::function<absl::Status(const ::perceptron::storage::v1::Snapshot&)>& write);

// Adds the next part to those before it. DATA_LOSS if it does not belong there.
absl::Status AppendPart(::perceptron::storage::v1::Snapshot part,
                        ::perceptron::storage::v1::Snapshot& whole);

}  // namespace perceptrond
