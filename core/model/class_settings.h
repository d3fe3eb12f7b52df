// The part of core/model/settings.h that concerns several classes: see perceptron.v1.Classes.
#pragma once

#include "absl/status/status.h"
#include "core/model/settings.h"

namespace perceptron::v1 {
class Classes;
class Learner;
}  // namespace perceptron::v1

namespace perceptrond {

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

}  // namespace perceptrond
