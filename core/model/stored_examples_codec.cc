#include "core/model/stored_examples_codec.h"

#include <algorithm>
#include <utility>

#include "core/vector/kernels.h"

namespace perceptrond {
namespace {

namespace storage = ::perceptron::storage::v1;

void Write(const StoredRow& row, storage::StoredRow& stored) {
  stored.set_dense(row.dense);
  stored.mutable_indices()->Add(row.indices.begin(), row.indices.end());
  stored.mutable_values()->Add(row.values.begin(), row.values.end());
  stored.set_label(row.label);
  for (const std::string& name : row.unknown) stored.add_names(name);
}

bool Fits(const storage::StoredRow& stored, const StoredRowShape& shape) {
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

StoredRowPtr Read(const storage::StoredRow& stored) {
  auto row = std::make_shared<StoredRow>();
  row->dense = stored.dense();
  row->indices.assign(stored.indices().begin(), stored.indices().end());
  row->values.assign(stored.values().begin(), stored.values().end());
  row->label = stored.label();
  row->unknown.assign(stored.names().begin(), stored.names().end());
  return row;
}

}  // namespace

storage::StoredRows ToStorage(const StoredExamplesCopy& examples) {
  storage::StoredRows stored;
  stored.mutable_rows()->Reserve(
      static_cast<int>(examples.updates.size() + examples.sample.size()));
  for (const StoredUpdate& update : examples.updates) {
    storage::StoredRow& row = *stored.add_rows();
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

absl::StatusOr<StoredExamplesCopy> FromStorage(const storage::StoredRows& stored,
                                               const StoredRowShape& shape,
                                               const Dictionary& names) {
  StoredExamplesCopy examples;
  examples.hash_limit = stored.hash_limit() == 0 ? ~uint64_t{0} : stored.hash_limit();
  std::vector<absl::string_view> unknown;
  for (const storage::StoredRow& one : stored.rows()) {
    if (!Fits(one, shape)) return absl::DataLossError("a stored example is inconsistent");
    StoredRowPtr row = Read(one);
    if (one.revision() > 0) {
      StoredUpdate& update = examples.updates.emplace_back();
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
