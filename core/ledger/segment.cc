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

storage::DocumentFrequencies ToStorage(const DocumentCounts& counts) {
  storage::DocumentFrequencies stored;
  stored.set_documents(counts.documents);
  stored.mutable_counts()->Add(counts.counts.begin(), counts.counts.end());
  stored.mutable_slot_distances()->Reserve(static_cast<int>(counts.slots.size()));
  uint32_t before = 0;
  for (const uint32_t slot : counts.slots) {
    stored.add_slot_distances(slot - before);
    before = slot;
  }
  return stored;
}

absl::StatusOr<DocumentCounts> FromStorage(const storage::DocumentFrequencies& stored,
                                           uint32_t slots) {
  DocumentCounts counts;
  counts.documents = stored.documents();
  counts.counts.assign(stored.counts().begin(), stored.counts().end());
  bool sound = stored.counts_size() == stored.slot_distances_size();
  uint64_t slot = 0;
  for (const uint32_t distance : stored.slot_distances()) {
    sound = sound && (counts.slots.empty() || distance > 0);
    slot += distance;
    if (!sound || slot >= slots) return absl::DataLossError("document frequencies are wrong");
    counts.slots.push_back(static_cast<uint32_t>(slot));
  }
  for (const uint32_t count : counts.counts)
    sound = sound && count > 0 && count <= counts.documents;
  if (!sound) return absl::DataLossError("document frequencies are wrong");
  return counts;
}

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

void PendingRecords::AddFrequencyChange(const UpdateRow& update, const DocumentCounts& counts) {
  storage::UpdateRecord& record = records_.emplace_back();
  record.set_first_revision(update.revision);
  record.set_arithmetic_version(1);
  *record.mutable_document_frequencies() = ToStorage(counts);
  AppendUpdate(record, update);
  bytes_ += MemoryOf(update) + counts.slots.size() * 2 * sizeof(uint32_t);
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
      records_.back().has_document_frequencies() || records_.back().dense_width() != dense_width ||
      records_.back().values_size() > kMaxRecordFeatures) {
    storage::UpdateRecord& record = records_.emplace_back();
    record.set_first_revision(update.revision);
    record.set_dense_width(dense_width);
  }
  return records_.back();
}

}  // namespace perceptrond
