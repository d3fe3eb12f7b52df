// A model's settings as the core uses them, and the one place that reads them from the API's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/features/feature_space.h"
#include "core/learner/settings.h"

namespace perceptron::v1 {
class Model;
}

namespace perceptrond {

// Whether and how classes are added after a model was created. See perceptron.v1.Classes.
enum class NewClasses : uint8_t { kNone, kNumbered, kNamed };

// A model whose predictions are a feature of a composition.
struct Component {
  enum class Output : uint8_t { kStep, kSign, kScore };
  // "models/{model}".
  std::string name;
  Output output = Output::kStep;
};

// How many examples a model keeps. See perceptron.v1.StoredExamples.
struct StoredExamplesSettings {
  static constexpr uint32_t kMost = 1'000'000;
  static constexpr uint32_t kDefaultUpdates = 1000;

  uint32_t updates = kDefaultUpdates;
  uint32_t sample = 0;
  // The most bytes that each may take.
  size_t update_bytes = size_t{64} << 20;
  size_t sample_bytes = size_t{1} << 30;

  size_t most_bytes() const { return update_bytes + sample_bytes; }
};

// How long a model keeps the features of predictions for their labels. See
// perceptron.v1.StoredPredictions.
struct StoredPredictionsSettings {
  absl::Duration max_age;
  uint64_t max_bytes = 0;
  bool durable = false;
};

// Fixed for a model's life.
struct ModelSettings {
  FeatureSpace space;
  LearnerSettings learner;
  // The names of -1 and +1, or of the classes there are from the start; or empty.
  std::vector<std::string> label_names;
  // Not empty: a composition. The space is dense, and feature i is the prediction of components[i].
  std::vector<Component> components = {};
  StoredExamplesSettings stored_examples = {};
  // Absent: predictions are not kept.
  std::optional<StoredPredictionsSettings> stored_predictions = {};
  NewClasses new_classes = NewClasses::kNone;
  // The space of the examples that are sent: `space`, or that of the components.
  FeatureSpace example_space = {};

  // Several classes, instead of the labels -1 and +1.
  bool is_multiclass() const { return learner.classes.max > 0; }
  // Several classes that have names.
  bool named_classes() const {
    return is_multiclass() && (!label_names.empty() || new_classes == NewClasses::kNamed);
  }
};

// What the model stores if it may take so many bytes: at most a twelfth of them for updates, a third
// for the sample, and for each as many examples as it may have, of the largest that the space allows.
StoredExamplesSettings StoredExamplesWithin(const ModelSettings& settings, size_t max_model_bytes);

// Sets every setting that was left out to its default, so that a stored model states all of them.
void FillDefaults(::perceptron::v1::Model& model);

// Reads settings after FillDefaults, or any others, as a file may have them. INVALID_ARGUMENT
// (INVALID_FIELD or ZERO_START) naming the field that is out of range, or missing.
absl::StatusOr<ModelSettings> ReadSettings(const ::perceptron::v1::Model& model);

// Model.expire_after, which is in its range; absent: none.
std::optional<absl::Duration> ExpireAfter(const ::perceptron::v1::Model& model);

// Checks what UpdateModel may change: description, margin_of_interest and expire_after.
// INVALID_ARGUMENT.
absl::Status CheckMutableFields(const ::perceptron::v1::Model& model);

// Whether the id can name a model: 1 to kMaxIdBytes letters, digits, '_', '-' or '.', of which the first is
// a letter or digit.
bool IsModelId(absl::string_view id);

}  // namespace perceptrond
