#include "core/model/snapshot.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "core/features/feature_space.h"
#include "core/vector/kernels.h"

namespace perceptrond {
namespace {

namespace storage = ::perceptron::storage::v1;

// The widest space, and the weight that unknown names share.
constexpr uint64_t kMaxArray = uint64_t{FeatureSpace::kMaxFeatures} + 1;

// By its bits: -0 is kept too.
bool IsZero(float value) { return std::bit_cast<uint32_t>(value) == 0; }

void WriteArray(std::span<const float> array, storage::StateArray& stored) {
  stored.set_size(array.size());
  const size_t non_zero = array.size() - std::count_if(array.begin(), array.end(), IsZero);
  if (2 * non_zero >= array.size()) {
    stored.mutable_values()->Add(array.begin(), array.end());
    return;
  }
  // One more than there are: which weights are zero is nothing that a processor could guess, so
  // that each is written, and the next over it if it is.
  stored.mutable_indices()->Resize(static_cast<int>(non_zero) + 1, 0);
  stored.mutable_values()->Resize(static_cast<int>(non_zero) + 1, 0);
  uint32_t* const indices = stored.mutable_indices()->mutable_data();
  float* const values = stored.mutable_values()->mutable_data();
  size_t written = 0;
  for (size_t i = 0; i < array.size(); ++i) {
    indices[written] = static_cast<uint32_t>(i);
    values[written] = array[i];
    written += IsZero(array[i]) ? 0 : 1;
  }
  stored.mutable_indices()->Truncate(static_cast<int>(non_zero));
  stored.mutable_values()->Truncate(static_cast<int>(non_zero));
}

// What is written together: a snapshot is cut between them.
constexpr int kFeaturesTogether = 1 << 17;

void WriteRows(const RowStore& rows, storage::Snapshot& snapshot) {
  storage::StateRows* stored = nullptr;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (stored == nullptr || stored->indices_size() > kFeaturesTogether ||
        stored->coefficients_size() > kFeaturesTogether)
      stored = snapshot.add_rows();
    const Row row = rows.row(i);
    stored->mutable_indices()->Add(row.indices, row.indices + row.size);
    stored->mutable_values()->Add(row.values, row.values + row.size);
    stored->add_row_ends(static_cast<uint32_t>(stored->indices_size()));
    stored->add_coefficients(rows.coefficient(i));
  }
}

bool Ascend(std::span<const uint32_t> indices) {
  return std::adjacent_find(indices.begin(), indices.end(), std::greater_equal<>()) ==
         indices.end();
}

absl::Status ReadRows(const storage::StateRows& stored, RowStore& rows) {
  if (stored.row_ends_size() != stored.coefficients_size() ||
      stored.indices_size() != stored.values_size())
    return absl::DataLossError("a snapshot's rows contradict themselves");
  uint32_t begin = 0;
  for (int i = 0; i < stored.row_ends_size(); ++i) {
    const uint32_t end = stored.row_ends(i);
    if (end < begin || end > static_cast<uint32_t>(stored.indices_size()))
      return absl::DataLossError("a snapshot's row ends where it cannot");
    const std::span<const uint32_t> indices(stored.indices().data() + begin, end - begin);
    if (!Ascend(indices)) return absl::DataLossError("a snapshot's row does not ascend");
    rows.Push({indices.empty() ? kNoIndices : indices.data(), stored.values().data() + begin,
               indices.size()},
              stored.coefficients(i));
    begin = end;
  }
  return absl::OkStatus();
}

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
  // Names come in any order.
  if (!shape.named &&
      !Ascend({stored.indices().data(), static_cast<size_t>(stored.indices_size())}))
    return false;
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

storage::Snapshot WriteState(const LearnerStateView& state) {
  storage::Snapshot snapshot;
  for (const std::span<const float> array : state.arrays) WriteArray(array, *snapshot.add_arrays());
  for (const double scalar : state.scalars) snapshot.add_scalars(scalar);
  if (state.rows != nullptr) WriteRows(*state.rows, snapshot);
  return snapshot;
}

absl::StatusOr<LearnerState> ReadState(const storage::Snapshot& snapshot) {
  LearnerState state;
  for (const storage::StateArray& stored : snapshot.arrays()) {
    if (stored.size() > kMaxArray) return absl::DataLossError("a snapshot's array is too large");
    FloatArray& array = state.arrays.emplace_back();
    if (stored.indices().empty() && static_cast<uint64_t>(stored.values_size()) == stored.size()) {
      array.assign(stored.values().begin(), stored.values().end());
      continue;
    }
    if (stored.indices_size() != stored.values_size())
      return absl::DataLossError("a snapshot's array contradicts itself");
    array.resize(stored.size());
    for (int i = 0; i < stored.indices_size(); ++i) {
      if (stored.indices(i) >= array.size())
        return absl::DataLossError("a snapshot's array exceeds its size");
      array[stored.indices(i)] = stored.values(i);
    }
  }
  state.scalars.assign(snapshot.scalars().begin(), snapshot.scalars().end());
  for (const storage::StateRows& rows : snapshot.rows()) {
    if (absl::Status status = ReadRows(rows, state.rows); !status.ok()) return status;
  }
  return state;
}

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
    if (update.rival >= 0) row.set_rival(update.rival);
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
      if (one.has_rival()) update.rival = one.rival();
      continue;
    }
    const uint64_t hash = std::min(HashOf(row->Seen(unknown), names), ~uint64_t{0} - 1);
    examples.sample.emplace_back(hash, std::move(row));
  }
  return examples;
}

storage::Snapshot MakeSnapshot(const ModelReader& reader) {
  return MakeSnapshot(reader.core(), reader.state());
}

storage::Snapshot MakeSnapshot(const ModelCore& core, const ModelState& state) {
  storage::Snapshot snapshot = WriteState(state.learner->State());
  snapshot.set_revision(state.revision);
  for (uint32_t number = 1; number <= state.names.size(); ++number)
    snapshot.add_names(std::string(state.names.Name(number)));
  for (uint32_t number = 1; number <= state.class_names.size(); ++number)
    snapshot.add_class_names(std::string(state.class_names.Name(number)));
  if (state.frequencies != nullptr)
    *snapshot.mutable_document_frequencies() = ToStorage(state.frequencies->counts());
  if (const DocumentCounter* const documents = core.documents.get())
    *snapshot.mutable_document_counts() = ToStorage(documents->Copy());
  // Locks the ledger, which then has every update of this revision, before the examples are copied.
  const CurvePoints points = core.ledger.curve_points();
  if (!points.points().empty()) *snapshot.mutable_learning_curve() = points.ToStorage();
  const StoredExamplesCopy stored = core.ledger.stored_examples().Copy();
  if (!stored.updates.empty() || !stored.sample.empty())
    *snapshot.mutable_stored_rows() = ToStorage(stored);
  return snapshot;
}

}  // namespace perceptrond
