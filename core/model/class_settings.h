// The part of core/model/settings.h that models of several classes have: see perceptron.v1.Classes.
#pragma once

#include "absl/status/status.h"
#include "core/model/settings.h"

namespace perceptron::v1 {
class Classes;
class Learner;
}  // namespace perceptron::v1

namespace perceptrond {

void FillDefaultClasses(::perceptron::v1::Classes& classes);

// max_features of a named space that leaves it open: so many that all classes' weights fit.
uint32_t DefaultFeatureCap(const ::perceptron::v1::Learner& learner);

// Whether the rule has several classes, and how many. `space` is the mapped one. INVALID_ARGUMENT.
absl::Status ReadClasses(const ::perceptron::v1::Learner& learner, const FeatureSpace& space,
                         LearnerSettings& settings);

// class_weights that are there, above 0 and finite. INVALID_ARGUMENT.
absl::Status ReadWeightsOfClasses(const ::perceptron::v1::Learner& learner, ClassSettings& classes);

// Whether classes may come up, and how many there are from the start, by name or number.
// INVALID_ARGUMENT.
absl::Status ReadClassNames(const ::perceptron::v1::Model& model, ModelSettings& settings);

}  // namespace perceptrond
