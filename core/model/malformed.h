// A batch whose columns do not fit together, or have a form that the model does not take.
#pragma once

#include "absl/status/status.h"
#include "core/vector/check.h"

namespace perceptrond {

// INVALID_ARGUMENT, with the finding's reason, naming the field of the columns.
absl::Status Malformed(const ValidationError& error);

}  // namespace perceptrond
