#include "core/model/composition.h"

#include <algorithm>
#include <utility>

#include "absl/container/btree_set.h"
#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "core/error/stopped.h"
#include "core/model/cost.h"
#include "core/model/explain.h"
#include "core/sync/current_call.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

float Feature(Component::Output output, float score, int32_t label) {
  switch (output) {
    case Component::Output::kSign:
      return static_cast<float>(label);
    case Component::Output::kScore:
      return score;
    case Component::Output::kStep:
      break;
  }
  return label > 0 ? 1 : 0;
}

// Both ascend. Of a row that is in both, the error of `first` stays.
std::vector<RowError> Merge(std::vector<RowError> first, const std::vector<RowError>& second) {
  for (const RowError& error : second) {
    const auto found =
        std::lower_bound(first.begin(), first.end(), error.row,
                         [](const RowError& one, uint32_t row) { return one.row < row; });
    if (found == first.end() || found->row != error.row) first.insert(found, error);
  }
  return first;
}

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

// What decides how a text is split, on one server.
std::string TextSettings(v1::FeatureSpace::Text text) {
  text.clear_icu_version();
  return text.SerializeAsString();
}

// Whether an example can be sent to both.
bool TakeTheSame(const v1::FeatureSpace& a, const v1::FeatureSpace& b) {
  if (a.has_dense() != b.has_dense() || a.has_text() != b.has_text()) return false;
  // Texts are split once for all components.
  if (a.has_text()) return TextSettings(a.text()) == TextSettings(b.text());
  return !a.has_dense() || a.dense().dimension() == b.dense().dimension();
}

absl::Status ComponentNotFound(const std::string& name) {
  return MakeError(absl::StatusCode::kNotFound, "COMPONENT_NOT_FOUND",
                   absl::StrCat("there is no model \"", name,
                                "\"; create the components of a composition first"),
                   {{"model", name}});
}

absl::Status InUse(const std::string& name, const std::string& user) {
  return MakeError(
      absl::StatusCode::kFailedPrecondition, "MODEL_IN_USE",
      absl::StrCat("\"", user, "\" is a composition that uses \"", name, "\"; delete it first"),
      {{"model", name}, {"used_by", user}});
}

absl::StatusOr<storage::ModelHeader> FindComponent(Journal& journal, const std::string& name) {
  absl::StatusOr<storage::ModelHeader> found = journal.Find(name);
  if (absl::IsNotFound(found.status())) return ComponentNotFound(name);
  return found.ok() ? found : JournalError(found.status(), name);
}

// Adds or removes the mark of one component.
absl::Status Mark(Journal& journal, const std::string& component, const std::string& user,
                  bool uses) {
  absl::Status written;
  for (int conflict = 0; conflict < kMostConflicts; ++conflict) {
    const absl::StatusOr<storage::ModelHeader> before = journal.Find(component);
    if (!before.ok()) return JournalError(before.status(), component);
    storage::ModelHeader header = *before;
    google::protobuf::RepeatedPtrField<std::string>& users = *header.mutable_used_by();
    const auto position = std::find(users.begin(), users.end(), user);
    if ((position != users.end()) == uses) return absl::OkStatus();
    if (uses) {
      users.Add(std::string(user));
    } else {
      users.erase(position);
    }
    written = journal.Replace(header, *before);
    if (!absl::IsAborted(written)) break;
  }
  return JournalError(written, component);
}

absl::Status MarkAll(Journal& journal, const storage::ModelHeader& header, bool uses) {
  for (const std::string& component : ComponentsOf(header)) {
    absl::Status status = Mark(journal, component, header.model().name(), uses);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Composition::Compose(const Batch& batch, std::span<const RowError> row_errors,
                                  ComponentAccess access, ComposedBatch& composed) const {
  const std::vector<Component>& components = settings().components;
  composed.row_errors.assign(row_errors.begin(), row_errors.end());
  composed.revisions.clear();
  PredictOutcome prediction;
  std::vector<StateFingerprint> fingerprints;
  // The first component says what is wrong with malformed ones.
  const bool well_formed = !CheckColumns(batch);
  uint64_t cost = 0;
  for (size_t i = 0; i < components.size(); ++i) {
    if (!KeepGoing()) return StoppedError();
    const absl::StatusOr<std::shared_ptr<const Model>> model =
        components_(components[i].name, access);
    if (!model.ok()) return model.status();
    if (well_formed) {
      const absl::StatusOr<uint64_t> own = CheckCost(
          batch, core().limits.max_message_cost,
          [&](const Batch& some, uint64_t /*before*/) { return (*model)->EstimateCost(some); },
          composed.row_errors);
      if (!own.ok()) return own.status();
      cost += *own;
    }
    absl::Status status = CheckCost(cost, core().limits.max_message_cost);
    if (!status.ok()) return status;
    status = (*model)->Predict(batch, composed.row_errors, 0, prediction);
    if (!status.ok()) return status;
    fingerprints.push_back(prediction.fingerprint);
    // Predict has checked the columns: only now is the number of rows known.
    composed.values.resize(batch.rows() * components.size());
    composed.row_errors = Merge(std::move(composed.row_errors), prediction.row_errors);
    composed.revisions.push_back(prediction.revision);
    for (size_t row = 0; row < batch.rows(); ++row) {
      composed.values[row * components.size() + i] =
          Feature(components[i].output, prediction.scores[row], prediction.labels[row]);
    }
  }
  for (const RowError& error : composed.row_errors) {
    std::fill_n(composed.values.begin() + static_cast<ptrdiff_t>(error.row * components.size()),
                components.size(), 0.0F);
  }
  composed.fingerprint = CombineFingerprints(fingerprints);
  composed.batch = Batch();
  composed.batch.values = composed.values;
  composed.batch.dense_width = static_cast<uint32_t>(components.size());
  composed.batch.labels = batch.labels;
  composed.batch.label_names = batch.label_names;
  composed.batch.weights = batch.weights;
  return absl::OkStatus();
}

absl::Status Composition::Learn(const LearnCall& call, LearnOutcome& outcome) {
  outcome.Clear();
  ComposedBatch composed;
  absl::Status status = Compose(call.batch, call.row_errors, ComponentAccess::kLoad, composed);
  if (!status.ok()) return status;
  LearnCall predictions = call;
  predictions.batch = composed.batch;
  predictions.row_errors = composed.row_errors;
  predictions.components = composed.fingerprint;
  status = LearnBatch(core(), predictions, outcome);
  outcome.component_revisions = std::move(composed.revisions);
  return status;
}

absl::Status Composition::Predict(const Batch& batch, std::span<const RowError> row_errors,
                                  uint64_t min_revision, PredictOutcome& outcome,
                                  bool include_class_scores) const {
  ComposedBatch composed;
  absl::Status status = Compose(batch, row_errors, ComponentAccess::kToPredict, composed);
  if (!status.ok()) return status;
  status = PredictBatch(core(), composed.batch, composed.row_errors, min_revision,
                        include_class_scores, outcome);
  outcome.fingerprint = CombineFingerprints({outcome.fingerprint, composed.fingerprint});
  outcome.component_revisions = std::move(composed.revisions);
  return status;
}

absl::Status Composition::Explain(const Batch& batch, std::span<const RowError> row_errors,
                                  const ExplainOptions& options, ExplainOutcome& outcome) const {
  ComposedBatch composed;
  absl::Status status = Compose(batch, row_errors, ComponentAccess::kToPredict, composed);
  if (status.ok())
    status = ExplainBatch(core(), composed.batch, composed.row_errors, options, outcome);
  outcome.component_revisions = std::move(composed.revisions);
  if (!status.ok() || settings().space.map.kind != FeatureMap::Kind::kIdentity) return status;
  for (Explanation& explanation : outcome.explanations) {
    for (Contribution& contribution : explanation.contributions)
      contribution.part.name = settings().components[contribution.part.index].name;
  }
  return status;
}

uint64_t Composition::EstimateCost(const Batch& batch) const {
  // A dense row, as wide as there are components.
  const std::vector<float> values(settings().components.size());
  Batch row;
  row.values = values;
  row.dense_width = static_cast<uint32_t>(values.size());
  uint64_t cost = batch.rows() * core().EstimateCost(row);
  for (const Component& component : settings().components) {
    const absl::StatusOr<std::shared_ptr<const Model>> model =
        components_(component.name, ComponentAccess::kOnlyInMemory);
    if (model.ok()) cost += (*model)->EstimateCost(batch);
  }
  return cost;
}

std::optional<StateFingerprint> Composition::ComponentsFingerprint(ComponentAccess access) const {
  std::vector<StateFingerprint> fingerprints;
  for (const Component& component : settings().components) {
    const absl::StatusOr<std::shared_ptr<const Model>> model = components_(component.name, access);
    if (!model.ok()) return std::nullopt;
    const std::optional<StateFingerprint> fingerprint = (*model)->Fingerprint(access);
    if (!fingerprint.has_value()) return std::nullopt;
    fingerprints.push_back(*fingerprint);
  }
  return CombineFingerprints(fingerprints);
}

std::optional<StateFingerprint> Composition::Fingerprint(ComponentAccess access) const {
  const std::optional<StateFingerprint> components = ComponentsFingerprint(access);
  if (!components.has_value()) return std::nullopt;
  const Guarded<ModelState>::Reader state(core().state);
  return CombineFingerprints({core().Fingerprint(*state), *components});
}

absl::Status CheckComponents(Journal& journal, storage::ModelHeader& header) {
  const std::string& own = header.model().name();
  v1::FeatureSpace example_space;
  uint64_t models = 1;
  uint32_t depth = 0;
  for (int i = 0; i < InputsOf(header).size(); ++i) {
    const std::string& name = InputsOf(header)[i].model();
    if (current_caller != nullptr) {
      if (absl::Status status = current_caller->CheckRead(name); !status.ok()) return status;
    }
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
              "no vectors, or texts with other settings"));
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
    if (ComponentsOf(*found).contains(name)) return InUse(name, user);
  }
  return absl::OkStatus();
}

absl::Status CheckComponentsExist(const ModelsNow& models, const storage::ModelHeader& header) {
  for (const std::string& component : ComponentsOf(header)) {
    if (models.find(component) == nullptr) return ComponentNotFound(component);
  }
  return absl::OkStatus();
}

absl::Status CheckUnusedNow(const ModelsNow& models, absl::string_view name) {
  const storage::ModelHeader* const model = models.find(name);
  if (model == nullptr) return absl::OkStatus();
  const auto users = model->used_by();
  for (const std::string& user : users) {
    const storage::ModelHeader* const found = models.find(user);
    if (found != nullptr && ComponentsOf(*found).contains(std::string(name)))
      return InUse(std::string(name), user);
  }
  return absl::OkStatus();
}

}  // namespace perceptrond
