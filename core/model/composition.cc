#include "core/model/composition.h"

#include <algorithm>

#include "core/features/hashing.h"
#include "core/model/model.h"

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

StateFingerprint HashOf(const std::vector<StateFingerprint>& stamps) {
  return HashBytes(stamps.data(), stamps.size() * sizeof(StateFingerprint), 0);
}

// Both ascending; of a row that is in both, the first's finding.
std::vector<RowError> Merge(std::vector<RowError> first, const std::vector<RowError>& second) {
  for (const RowError& row : second) {
    const auto place = std::lower_bound(
        first.begin(), first.end(), row.row,
        [](const RowError& row_errors, uint32_t number) { return row_errors.row < number; });
    if (place == first.end() || place->row != row.row) first.insert(place, row);
  }
  return first;
}

}  // namespace

absl::Status Compose(const std::vector<Component>& components, const ComponentSource& source,
                     const Batch& batch, std::span<const RowError> row_errors,
                     ComposedBatch& composed) {
  composed.row_errors.assign(row_errors.begin(), row_errors.end());
  composed.revisions.clear();
  PredictOutcome answers;
  std::vector<StateFingerprint> stamps;
  for (size_t i = 0; i < components.size(); ++i) {
    const absl::StatusOr<std::shared_ptr<Model>> model = source(components[i].name, true);
    if (!model.ok()) return model.status();
    absl::Status status = (*model)->Predict(batch, composed.row_errors, 0, answers);
    if (!status.ok()) return status;
    stamps.push_back(answers.fingerprint);
    // Of well-formed columns alone the number of rows is known.
    composed.values.resize(batch.rows() * components.size());
    composed.row_errors = Merge(std::move(composed.row_errors), answers.row_errors);
    composed.revisions.push_back(answers.revision);
    for (size_t row = 0; row < batch.rows(); ++row) {
      composed.values[row * components.size() + i] =
          Feature(components[i].output, answers.scores[row], answers.labels[row]);
    }
  }
  for (const RowError& row : composed.row_errors) {
    std::fill_n(composed.values.begin() + static_cast<ptrdiff_t>(row.row * components.size()),
                components.size(), 0.0F);
  }
  composed.fingerprint = HashOf(stamps);
  composed.batch = Batch();
  composed.batch.values = composed.values;
  composed.batch.dense_width = static_cast<uint32_t>(components.size());
  composed.batch.labels = batch.labels;
  composed.batch.label_names = batch.label_names;
  composed.batch.weights = batch.weights;
  return absl::OkStatus();
}

std::optional<StateFingerprint> FingerprintOf(const std::vector<Component>& components,
                                              const ComponentSource& source, bool load) {
  std::vector<StateFingerprint> stamps;
  for (const Component& component : components) {
    const absl::StatusOr<std::shared_ptr<Model>> model = source(component.name, load);
    if (!model.ok()) return std::nullopt;
    const std::optional<StateFingerprint> fingerprint = (*model)->Fingerprint(load);
    if (!fingerprint.has_value()) return std::nullopt;
    stamps.push_back(*fingerprint);
  }
  return HashOf(stamps);
}

StateFingerprint CombineFingerprints(StateFingerprint own, StateFingerprint components) {
  return HashOf({own, components});
}

}  // namespace perceptrond
