// A model's settings as the core reads them, and the one place that turns the API's settings into
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/features/feature_space.h"
#include "core/learner/settings.h"
#include "core/model/retention.h"

namespace perceptron::v1 {
class Model;
}

namespace perceptrond {

// Whether classes may come up that a model was not created with. See perceptron.v1.Classes.
enum class NewClasses : uint8_t { kNone, kNumbered, kNamed };

// A model whose answers another model takes for a feature.
struct Component {
  enum class Output : uint8_t { kStep, kSign, kScore };
  // "models/{model}".
  std::string name;
  Output output = Output::kStep;
};

// Fixed for a model's life.
struct ModelSettings {
  FeatureSpace space;
  LearnerSettings learner;
  // Empty, or the names of -1 and +1, or of the classes that there are from the start.
  std::vector<std::string> label_names;
  // Not empty: the space is dense, and feature i is the answer of components[i].
  std::vector<Component> components = {};
  RetentionSettings retention = {};
  NewClasses new_classes = NewClasses::kNone;
  // Where the examples live that the model is sent: `space`, or that of the components.
  FeatureSpace example_space = {};

  // Of more than the two labels -1 and +1; of several that have names.
  bool is_multiclass() const { return learner.classes.max > 0; }
  bool named_classes() const {
    return is_multiclass() && (!label_names.empty() || new_classes == NewClasses::kNamed);
  }
};

// Writes out the defaults of every setting left open, so that a stored model says all of them.
void FillDefaults(::perceptron::v1::Model& model);

// Reads settings that FillDefaults has been over. INVALID_ARGUMENT, reason INVALID_FIELD (or
// ZERO_START), naming the field that is out of range.
absl::StatusOr<ModelSettings> ReadSettings(const ::perceptron::v1::Model& model);

// What is asked of models that are to be created and not of those there are, which may be older
// than the demand: a step size that float32 can hold. INVALID_ARGUMENT (INVALID_FIELD).
absl::Status CheckNew(const ModelSettings& settings);

// Checks what UpdateModel may change: description and margin_of_interest. INVALID_ARGUMENT.
absl::Status CheckMutableFields(const ::perceptron::v1::Model& model);

// Whether the id may name a model: 1 to 128 letters, digits, '_', '-' or '.', the first a letter or
// digit.
bool IsModelId(absl::string_view id);

}  // namespace perceptrond
