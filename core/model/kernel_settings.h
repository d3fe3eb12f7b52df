// The kernel perceptron's kernel, from the API's settings. See perceptron.v1.Kernel.
#pragma once

#include "absl/status/statusor.h"
#include "core/learner/settings.h"

namespace perceptron::v1 {
class Kernel;
}

namespace perceptrond {

// Writes out the defaults of what is left open.
void FillDefaults(::perceptron::v1::Kernel& kernel);

// Reads a kernel that FillDefaults has been over. INVALID_ARGUMENT, reason INVALID_FIELD, naming
// the field of model.learner.kernel that is out of range.
absl::StatusOr<KernelSettings> ReadKernel(const ::perceptron::v1::Kernel& kernel);

}  // namespace perceptrond
