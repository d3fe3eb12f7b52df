// The weights that a model starts from: see perceptron.v1.Learner.starting_weights.
#pragma once

#include "absl/status/statusor.h"
#include "core/features/feature_space.h"
#include "core/learner/settings.h"

namespace perceptron::v1 {
class Learner;
}

namespace perceptrond {

// Reads starting weights, which `space` must have; none are all 0. INVALID_ARGUMENT
// (INVALID_FIELD).
absl::StatusOr<StartingWeights> ReadStart(const ::perceptron::v1::Learner& learner,
                                          const FeatureSpace& space);

}  // namespace perceptrond
