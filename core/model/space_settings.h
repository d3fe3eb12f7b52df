// The part of core/model/settings.h that concerns feature spaces: see perceptron.v1.FeatureSpace.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "core/features/feature_space.h"
#include "core/model/settings.h"

namespace perceptron::v1 {
class FeatureSpace;
}

namespace perceptrond {

// Sets outputs of components that were left out. The cap of a named space depends on the learner:
// see FillDefaultClasses.
void FillDefaultOutputs(::perceptron::v1::FeatureSpace& space);

// The space of the examples that are sent, with its feature map; of a composition the dense space
// of its components' outputs. INVALID_ARGUMENT.
absl::StatusOr<FeatureSpace> ReadSpace(const ::perceptron::v1::FeatureSpace& space);

// The components of a composition; empty for other spaces. INVALID_ARGUMENT.
absl::StatusOr<std::vector<Component>> ReadComponents(const ::perceptron::v1::FeatureSpace& space);

}  // namespace perceptrond
