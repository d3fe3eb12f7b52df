#include "core/model/composition.h"

#include <algorithm>
#include <utility>

#include "core/model/explain.h"
#include "core/model/learn_batch.h"
#include "core/model/predict_batch.h"

namespace perceptrond {
namespace {

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

}  // namespace

absl::Status Composition::Compose(const Batch& batch, std::span<const RowError> row_errors,
                                  ComposedBatch& composed) const {
  const std::vector<Component>& components = settings().components;
  composed.row_errors.assign(row_errors.begin(), row_errors.end());
  composed.revisions.clear();
  PredictOutcome prediction;
  std::vector<StateFingerprint> fingerprints;
  for (size_t i = 0; i < components.size(); ++i) {
    const absl::StatusOr<std::shared_ptr<Model>> model =
        components_(components[i].name, ComponentAccess::kLoad);
    if (!model.ok()) return model.status();
    absl::Status status = (*model)->Predict(batch, composed.row_errors, 0, prediction);
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
  absl::Status status = Compose(call.batch, call.row_errors, composed);
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
  absl::Status status = Compose(batch, row_errors, composed);
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
  absl::Status status = Compose(batch, row_errors, composed);
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

std::optional<StateFingerprint> Composition::ComponentsFingerprint(ComponentAccess access) const {
  std::vector<StateFingerprint> fingerprints;
  for (const Component& component : settings().components) {
    const absl::StatusOr<std::shared_ptr<Model>> model = components_(component.name, access);
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

}  // namespace perceptrond
