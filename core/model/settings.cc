#include "core/model/settings.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/model/class_settings.h"
#include "core/model/error.h"
#include "core/model/learner_settings.h"
#include "core/model/space_settings.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

// Of each label.
constexpr size_t kMaxLabelBytes = 256;

absl::StatusOr<StoredExamplesSettings> ReadStoredExamples(const v1::StoredExamples& stored) {
  const auto in_range = [](absl::string_view field, uint32_t value) {
    if (value <= StoredExamplesSettings::kMost) return absl::OkStatus();
    return InvalidSetting(absl::StrCat("model.stored_examples.", field),
                          absl::StrCat(value, " is above ", StoredExamplesSettings::kMost));
  };
  if (absl::Status status = in_range("max_updates", stored.max_updates()); !status.ok())
    return status;
  if (absl::Status status = in_range("max_sample", stored.max_sample()); !status.ok())
    return status;
  return StoredExamplesSettings{stored.max_updates(), stored.max_sample()};
}

// Names of the two labels, or none.
absl::Status CheckLabelNames(const std::vector<std::string>& labels) {
  if (!labels.empty() &&
      (labels.size() != 2 || labels[0] == labels[1] || labels[0].empty() || labels[1].empty() ||
       labels[0].size() > kMaxLabelBytes || labels[1].size() > kMaxLabelBytes)) {
    return InvalidSetting("model.label_names",
                          absl::StrCat("give two different names of at most ", kMaxLabelBytes,
                                       " bytes, that of -1 first: [\"ham\", \"spam\"]; or none"));
  }
  return absl::OkStatus();
}

}  // namespace

void FillDefaults(v1::Model& model) {
  if (!model.stored_examples().has_max_updates())
    model.mutable_stored_examples()->set_max_updates(StoredExamplesSettings::kDefaultUpdates);
  if (model.feature_space().has_named() && model.feature_space().named().max_features() == 0) {
    model.mutable_feature_space()->mutable_named()->set_max_features(
        DefaultFeatureCap(model.learner()));
  }
  if (model.has_feature_space()) FillDefaultOutputs(*model.mutable_feature_space());
  FillDefaults(*model.mutable_learner());
}

absl::StatusOr<ModelSettings> ReadSettings(const v1::Model& model) {
  absl::StatusOr<FeatureSpace> space = ReadSpace(model.feature_space());
  if (!space.ok()) return space.status();
  absl::StatusOr<LearnerSettings> learner = ReadLearner(model.learner(), space->mapped());
  if (!learner.ok()) return learner.status();
  absl::StatusOr<std::vector<Component>> components = ReadComponents(model.feature_space());
  if (!components.ok()) return components.status();
  ModelSettings settings{*space,
                         *std::move(learner),
                         {model.label_names().begin(), model.label_names().end()},
                         *std::move(components)};
  absl::StatusOr<StoredExamplesSettings> stored = ReadStoredExamples(model.stored_examples());
  if (!stored.ok()) return stored.status();
  settings.stored_examples = *stored;
  settings.example_space = *space;
  if (const auto& composition = model.feature_space().composition();
      composition.has_example_space()) {
    absl::StatusOr<FeatureSpace> examples = ReadSpace(composition.example_space());
    if (!examples.ok()) return examples.status();
    settings.example_space = *examples;
  }
  absl::Status labels = settings.is_multiclass() ? ReadClassNames(model, settings)
                                                 : CheckLabelNames(settings.label_names);
  if (!labels.ok()) return labels;
  if (absl::Status status = CheckMutableFields(model); !status.ok()) return status;
  return settings;
}

absl::Status CheckMutableFields(const v1::Model& model) {
  if (model.description().size() > 1024)
    return InvalidSetting("model.description", "has more than 1024 bytes");
  if (!(model.margin_of_interest() >= 0) || !std::isfinite(model.margin_of_interest())) {
    return InvalidSetting("model.margin_of_interest", "must be above 0 and finite, or 0 for none");
  }
  return absl::OkStatus();
}

bool IsModelId(absl::string_view id) {
  if (id.empty() || id.size() > 128 || !absl::ascii_isalnum(id[0])) return false;
  return std::all_of(id.begin(), id.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.';
  });
}

}  // namespace perceptrond
