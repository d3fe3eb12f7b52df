// The part of core/model/settings.h that concerns learners: see perceptron.v1.Learner.
#pragma once

#include "absl/status/statusor.h"
#include "core/features/feature_space.h"
#include "core/learner/settings.h"

namespace perceptron::v1 {
class Learner;
}

namespace perceptrond {

// Sets every setting of the learner that was left out to its default.
void FillDefaults(::perceptron::v1::Learner& learner);

// Reads a learner after FillDefaults. `space` is the space of the weights. INVALID_ARGUMENT
// (INVALID_FIELD or ZERO_START) naming the field that is out of range, or that the learner does not
// have.
absl::StatusOr<LearnerSettings> ReadLearner(const ::perceptron::v1::Learner& learner,
                                            const FeatureSpace& space);

}  // namespace perceptrond
