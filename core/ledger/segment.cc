#include "core/ledger/segment.h"

namespace perceptrond {
namespace {

// A record ends when its rows have this many features, so that reading it back takes little memory.
constexpr int kMaxRecordFeatures = 1 << 17;

// Approximate.
size_t MemoryOf(const UpdateRow& update) {
  size_t bytes = sizeof(UpdateRow) + update.new_class.size();
  if (update.row != nullptr)
    bytes += update.row->values.size() * (sizeof(float) + sizeof(uint32_t));
  for (const std::string& name : update.new_names) bytes += sizeof(std::string) + name.size();
  return bytes;
}

// Appends the update's features. A batch's end is an empty sparse row.
void AppendFeatures(storage::UpdateRecord& record, const UpdateRow& update) {
  if (update.row != nullptr) {
    record.mutable_indices()->Add(update.row->indices.begin(), update.row->indices.end());
    record.mutable_values()->Add(update.row->values.begin(), update.row->values.end());
  }
  if (record.dense_width() == 0) record.add_row_ends(record.indices_size());
}

// What every update has.
void AppendUpdate(storage::UpdateRecord& record, const UpdateRow& update) {
  record.add_labels(update.row == nullptr ? 0 : update.row->label);
  if (update.weight != 1 || record.weights_size() > 0) {
    record.mutable_weights()->Resize(record.labels_size() - 1, 1.0F);
    record.add_weights(update.weight);
  }
  if (update.age.has_value()) record.add_ages(*update.age);
  for (const std::string& name : update.new_names) record.add_new_names(name);
  if (!update.new_class.empty()) record.add_new_classes(update.new_class);
  record.set_squared_norm(update.squared_norm);
}

void AppendRow(storage::UpdateRecord& record, const UpdateRow& update) {
  AppendFeatures(record, update);
  if (update.row == nullptr) record.add_batch_ends(static_cast<uint32_t>(record.labels_size()));
  AppendUpdate(record, update);
}

uint32_t DenseWidth(const UpdateRow& update) {
  if (update.row == nullptr || !update.row->dense) return 0;
  return static_cast<uint32_t>(update.row->values.size());
}

}  // namespace

void PendingRecords::Add(const UpdateRow& update) {
  AppendRow(Open(update, DenseWidth(update)), update);
  bytes_ += MemoryOf(update);
}

void PendingRecords::AddWeightReplacement(const UpdateRow& update,
                                          std::span<const ReplacementVector> vectors) {
  storage::UpdateRecord& record = records_.emplace_back();
  record.set_first_revision(update.revision);
  record.set_replaces_weights(true);
  for (const ReplacementVector& one : vectors) {
    for (size_t i = 0; i < one.weights.size; ++i) {
      record.add_indices(one.weights.index(i));
      record.add_values(one.weights.value(i));
    }
    record.add_row_ends(record.indices_size());
    record.add_bias_weights(one.bias_weight);
  }
  AppendUpdate(record, update);
  bytes_ += MemoryOf(update) + record.indices_size() * (sizeof(float) + sizeof(uint32_t));
}

void PendingRecords::AddCurvePoint(const LearningCurvePoint& point) {
  *records_.back().add_learning_curve() = point;
}

std::vector<storage::UpdateRecord> PendingRecords::Take() {
  bytes_ = 0;
  return std::exchange(records_, {});
}

storage::UpdateRecord& PendingRecords::Open(const UpdateRow& update, uint32_t dense_width) {
  if (records_.empty() || records_.back().replaces_weights() ||
      records_.back().dense_width() != dense_width ||
      records_.back().values_size() > kMaxRecordFeatures) {
    storage::UpdateRecord& record = records_.emplace_back();
    record.set_first_revision(update.revision);
    record.set_dense_width(dense_width);
  }
  return records_.back();
}

}  // namespace perceptrond
