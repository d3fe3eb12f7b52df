#include "core/model/components.h"

#include <algorithm>

#include "absl/container/btree_set.h"
#include "absl/strings/str_cat.h"
#include "core/model/error.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

constexpr uint32_t kMaxDepth = 16;
constexpr uint32_t kMaxModels = 4096;
constexpr absl::string_view kField = "model.feature_space.composition.inputs";

using Inputs = google::protobuf::RepeatedPtrField<v1::FeatureSpace::Composition::Input>;

const Inputs& InputsOf(const storage::ModelHeader& header) {
  return header.model().feature_space().composition().inputs();
}

// Each component once, though it may be several inputs.
absl::btree_set<std::string> ComponentsOf(const storage::ModelHeader& header) {
  absl::btree_set<std::string> names;
  for (const auto& input : InputsOf(header)) names.insert(input.model());
  return names;
}

// The space of the examples that are sent to a model.
const v1::FeatureSpace& ExampleSpace(const v1::FeatureSpace& space) {
  return space.has_composition() ? space.composition().example_space() : space;
}

// Whether an example can be sent to both.
bool TakeTheSame(const v1::FeatureSpace& a, const v1::FeatureSpace& b) {
  if (a.has_dense() != b.has_dense()) return false;
  return !a.has_dense() || a.dense().dimension() == b.dense().dimension();
}

absl::StatusOr<storage::ModelHeader> FindComponent(Journal& journal, const std::string& name) {
  absl::StatusOr<storage::ModelHeader> found = journal.Find(name);
  if (found.ok() || !absl::IsNotFound(found.status()))
    return found.ok() ? found : JournalError(found.status(), name);
  return MakeError(absl::StatusCode::kNotFound, "COMPONENT_NOT_FOUND",
                   absl::StrCat("there is no model \"", name,
                                "\" ; create the components of a composition first"),
                   {{"model", name}});
}

// Adds or removes the mark of one component.
absl::Status Mark(Journal& journal, const std::string& component, const std::string& user,
                  bool uses) {
  absl::StatusOr<storage::ModelHeader> header = journal.Find(component);
  if (!header.ok()) return JournalError(header.status(), component);
  google::protobuf::RepeatedPtrField<std::string>& users = *header->mutable_used_by();
  const auto position = std::find(users.begin(), users.end(), user);
  if ((position != users.end()) == uses) return absl::OkStatus();
  if (uses) {
    users.Add(std::string(user));
  } else {
    users.erase(position);
  }
  return JournalError(journal.Replace(*header), component);
}

absl::Status MarkAll(Journal& journal, const storage::ModelHeader& header, bool uses) {
  for (const std::string& component : ComponentsOf(header)) {
    absl::Status status = Mark(journal, component, header.model().name(), uses);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckComponents(Journal& journal, storage::ModelHeader& header) {
  const std::string& own = header.model().name();
  v1::FeatureSpace example_space;
  uint64_t models = 1;
  uint32_t depth = 0;
  for (int i = 0; i < InputsOf(header).size(); ++i) {
    const std::string& name = InputsOf(header)[i].model();
    if (name == own) {
      return InvalidField("COMPOSITION_CYCLE", absl::StrCat(kField, "[", i, "].model"),
                          absl::StrCat("\"", name, "\" cannot be a component of itself"));
    }
    absl::StatusOr<storage::ModelHeader> component = FindComponent(journal, name);
    if (!component.ok()) return component.status();
    if (component->model().learner().has_classes()) {
      return InvalidField(
          "INVALID_FIELD", absl::StrCat(kField, "[", i, "].model"),
          absl::StrCat("\"", name, "\" has several classes; components have two labels"));
    }
    const v1::FeatureSpace& space = ExampleSpace(component->model().feature_space());
    if (i == 0) example_space = space;
    if (!TakeTheSame(example_space, space)) {
      return InvalidField(
          "INVALID_FIELD", absl::StrCat(kField, "[", i, "].model"),
          absl::StrCat(
              "\"", InputsOf(header)[0].model(), "\" and \"", name,
              "\" do not take the same examples: one takes vectors of another dimension, or "
              "no vectors"));
    }
    models += std::max<uint64_t>(component->composition_models(), 1);
    depth = std::max(depth, component->composition_depth());
  }
  if (InputsOf(header).empty()) return absl::OkStatus();
  if (depth + 1 > kMaxDepth || models > kMaxModels) {
    return InvalidField(
        "INVALID_FIELD", kField,
        absl::StrCat("an example would pass through ", models, " models, ", depth + 1,
                     " deep; at most ", kMaxModels, " and ", kMaxDepth, " are allowed"));
  }
  // The map of the first component is its own; it does not change what is sent.
  example_space.clear_map();
  *header.mutable_model()->mutable_feature_space()->mutable_composition()->mutable_example_space() =
      example_space;
  header.set_composition_depth(depth + 1);
  header.set_composition_models(static_cast<uint32_t>(models));
  return absl::OkStatus();
}

absl::Status MarkComponents(Journal& journal, const storage::ModelHeader& header) {
  return MarkAll(journal, header, true);
}

absl::Status UnmarkComponents(Journal& journal, const storage::ModelHeader& header) {
  return MarkAll(journal, header, false);
}

absl::Status CheckUnused(Journal& journal, const storage::ModelHeader& header) {
  const std::string& name = header.model().name();
  for (const std::string& user : header.used_by()) {
    absl::StatusOr<storage::ModelHeader> found = journal.Find(user);
    if (absl::IsNotFound(found.status())) continue;
    if (!found.ok()) return JournalError(found.status(), user);
    if (!ComponentsOf(*found).contains(name)) continue;
    return MakeError(
        absl::StatusCode::kFailedPrecondition, "MODEL_IN_USE",
        absl::StrCat("\"", user, "\" is a composition that uses \"", name, "\"; delete it first"),
        {{"model", name}, {"used_by", user}});
  }
  return absl::OkStatus();
}

}  // namespace perceptrond
