// The part of core/settings/settings.h that concerns learners: the rule and its settings
// (learner_settings.cc), several classes (class_settings.cc) and starting weights
// (start_settings.cc). See perceptron.v1.Learner.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/features/feature_space.h"
#include "core/learner/settings.h"
#include "core/settings/settings.h"

namespace perceptron::v1 {
class Classes;
class Learner;
}  // namespace perceptron::v1

namespace perceptrond {

// Sets every setting of the learner that was left out to its default.
void FillDefaults(::perceptron::v1::Learner& learner);

// Reads a learner. `space` is the space of the weights. INVALID_ARGUMENT (INVALID_FIELD or
// ZERO_START) naming the field that is out of range or missing, or that the learner does not have.
absl::StatusOr<LearnerSettings> ReadLearner(const ::perceptron::v1::Learner& learner,
                                            const FeatureSpace& space);

void FillDefaultClasses(::perceptron::v1::Classes& classes);

// The default max_features of a named space: as many as leave room for the weights of all classes.
uint32_t DefaultFeatureCap(const ::perceptron::v1::Learner& learner);

// Reads how many classes there may be; `space` is the space of the weights. INVALID_ARGUMENT, also
// if the learner has two labels only.
absl::Status ReadClasses(const ::perceptron::v1::Learner& learner, const FeatureSpace& space,
                         LearnerSettings& settings);

// Reads class_weights, which are above 0 and finite: one a class. INVALID_ARGUMENT.
absl::Status ReadWeightsOfClasses(const ::perceptron::v1::Learner& learner, ClassSettings& classes);

// Reads whether classes are added later, and which there are from the start. INVALID_ARGUMENT.
absl::Status ReadClassNames(const ::perceptron::v1::Model& model, ModelSettings& settings);

// Reads starting weights, which `space` must have; none are all 0. INVALID_ARGUMENT
// (INVALID_FIELD).
absl::StatusOr<StartingWeights> ReadStart(const ::perceptron::v1::Learner& learner,
                                          const FeatureSpace& space);

}  // namespace perceptrond
