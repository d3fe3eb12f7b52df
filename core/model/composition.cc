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

AnswerStamp HashOf(const std::vector<AnswerStamp>& stamps) {
  return HashBytes(stamps.data(), stamps.size() * sizeof(AnswerStamp), 0);
}

// Both ascending; of a row that is in both, the first's finding.
std::vector<RefusedRow> Merge(std::vector<RefusedRow> first,
                              const std::vector<RefusedRow>& second) {
  for (const RefusedRow& row : second) {
    const auto place = std::lower_bound(
        first.begin(), first.end(), row.row,
        [](const RefusedRow& refused, uint32_t number) { return refused.row < number; });
    if (place == first.end() || place->row != row.row) first.insert(place, row);
  }
  return first;
}

}  // namespace

absl::Status Compose(const std::vector<Component>& components, const ComponentSource& source,
                     const Batch& batch, std::span<const RefusedRow> refused,
                     ComposedBatch& composed) {
  composed.refused.assign(refused.begin(), refused.end());
  composed.revisions.clear();
  PredictOutcome answers;
  std::vector<AnswerStamp> stamps;
  for (size_t i = 0; i < components.size(); ++i) {
    const absl::StatusOr<std::shared_ptr<Model>> model = source(components[i].name, true);
    if (!model.ok()) return model.status();
    absl::Status status = (*model)->Predict(batch, composed.refused, 0, answers);
    if (!status.ok()) return status;
    stamps.push_back(answers.stamp);
    // Of well-formed columns alone the number of rows is known.
    composed.values.resize(batch.rows() * components.size());
    composed.refused = Merge(std::move(composed.refused), answers.refused);
    composed.revisions.push_back(answers.revision);
    for (size_t row = 0; row < batch.rows(); ++row) {
      composed.values[row * components.size() + i] =
          Feature(components[i].output, answers.scores[row], answers.labels[row]);
    }
  }
  for (const RefusedRow& row : composed.refused) {
    std::fill_n(composed.values.begin() + static_cast<ptrdiff_t>(row.row * components.size()),
                components.size(), 0.0F);
  }
  composed.stamp = HashOf(stamps);
  composed.batch = Batch();
  composed.batch.values = composed.values;
  composed.batch.dense_width = static_cast<uint32_t>(components.size());
  composed.batch.labels = batch.labels;
  composed.batch.label_names = batch.label_names;
  composed.batch.weights = batch.weights;
  return absl::OkStatus();
}

std::optional<AnswerStamp> StampOf(const std::vector<Component>& components,
                                   const ComponentSource& source, bool load) {
  std::vector<AnswerStamp> stamps;
  for (const Component& component : components) {
    const absl::StatusOr<std::shared_ptr<Model>> model = source(component.name, load);
    if (!model.ok()) return std::nullopt;
    const std::optional<AnswerStamp> stamp = (*model)->Stamp(load);
    if (!stamp.has_value()) return std::nullopt;
    stamps.push_back(*stamp);
  }
  return HashOf(stamps);
}

AnswerStamp CombineStamps(AnswerStamp own, AnswerStamp components) {
  return HashOf({own, components});
}

}  // namespace perceptrond
