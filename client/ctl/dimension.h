// Examples and the dimension of a dense model.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "client/row.h"

namespace perceptrond::client {

// The smallest dimension that the row fits. O(1) if its indices ascend, as they must.
uint64_t NeededDimension(const Row& row);

// FAILED_PRECONDITION if the row does not fit a model of this dimension: it has a larger index, or
// as a dense row another number of values. The message says what to do; indices in it count from
// `index_base`.
absl::Status CheckDimension(const Row& row, uint32_t dimension, int index_base);

// Removes what is beyond the dimension. False: there was nothing.
bool DropUnseen(uint32_t dimension, Row* row);

}  // namespace perceptrond::client
