#include "core/model/retention_codec.h"

#include <algorithm>
#include <utility>

#include "core/vector/kernels.h"

namespace perceptrond {
namespace {

namespace storage = ::perceptron::storage::v1;

void Write(const RetainedRow& row, storage::RetainedRow& stored) {
  stored.set_dense(row.dense);
  stored.mutable_indices()->Add(row.indices.begin(), row.indices.end());
  stored.mutable_values()->Add(row.values.begin(), row.values.end());
  stored.set_label(row.label);
  for (const std::string& name : row.unknown) stored.add_names(name);
}

bool Fits(const storage::RetainedRow& stored, const RetainedShape& shape) {
  if (!AllFinite({stored.values().data(), static_cast<size_t>(stored.values_size())})) return false;
  if (stored.dense()) {
    return !shape.named && stored.indices().empty() && stored.names().empty() &&
           static_cast<size_t>(stored.values_size()) <= shape.size;
  }
  if (stored.indices_size() != stored.values_size()) return false;
  const bool inside = std::all_of(stored.indices().begin(), stored.indices().end(),
                                  [&](uint32_t index) { return index < shape.size; });
  const auto unknown = shape.named ? std::count(stored.indices().begin(), stored.indices().end(),
                                                Dictionary::kUnknown)
                                   : 0;
  return inside && stored.names_size() == unknown;
}

RetainedRowPtr Read(const storage::RetainedRow& stored) {
  auto row = std::make_shared<RetainedRow>();
  row->dense = stored.dense();
  row->indices.assign(stored.indices().begin(), stored.indices().end());
  row->values.assign(stored.values().begin(), stored.values().end());
  row->label = stored.label();
  row->unknown.assign(stored.names().begin(), stored.names().end());
  return row;
}

}  // namespace

storage::Retained ToStorage(const RetainedExamples& examples) {
  storage::Retained stored;
  stored.mutable_rows()->Reserve(
      static_cast<int>(examples.updates.size() + examples.sample.size()));
  for (const RetainedUpdate& update : examples.updates) {
    storage::RetainedRow& row = *stored.add_rows();
    Write(*update.row, row);
    row.set_revision(update.revision);
    row.set_weight(update.weight);
    row.set_score(update.score);
    if (update.age.has_value()) row.set_age(*update.age);
  }
  for (const auto& [hash, row] : examples.sample) Write(*row, *stored.add_rows());
  if (examples.hash_limit != ~uint64_t{0}) stored.set_hash_limit(examples.hash_limit);
  return stored;
}

absl::StatusOr<RetainedExamples> FromStorage(const storage::Retained& stored,
                                             const RetainedShape& shape, const Dictionary& names) {
  RetainedExamples examples;
  examples.hash_limit = stored.hash_limit() == 0 ? ~uint64_t{0} : stored.hash_limit();
  std::vector<absl::string_view> unknown;
  for (const storage::RetainedRow& one : stored.rows()) {
    if (!Fits(one, shape)) return absl::DataLossError("a retained example contradicts itself");
    RetainedRowPtr row = Read(one);
    if (one.revision() > 0) {
      RetainedUpdate& update = examples.updates.emplace_back();
      update = {std::move(row), one.revision(), one.weight(), one.score(), std::nullopt};
      if (one.has_age()) update.age = one.age();
      continue;
    }
    const uint64_t hash = std::min(HashOf(row->Seen(unknown), names), ~uint64_t{0} - 1);
    examples.sample.emplace_back(hash, std::move(row));
  }
  return examples;
}

}  // namespace perceptrond
