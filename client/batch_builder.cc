#include "client/batch_builder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/era_names.h"
#include "client/error.h"
#include "core/vector/name.h"

namespace perceptrond::client {
namespace {

absl::Status Invalid(std::string_view reason, std::string_view message) {
  return MakeError(absl::StatusCode::kInvalidArgument, reason, message);
}

constexpr char kNotUtf8[] = "is not UTF-8; if it is Latin-1, iconv -f LATIN1 -t UTF-8 converts it";

// Whether no value has an exponent of ones. Without a branch, so that compilers vectorize it.
bool AllFinite(const std::vector<float>& values) {
  constexpr uint32_t kExponent = 0x7f80'0000;
  uint32_t bad = 0;
  for (const float value : values)
    bad |= static_cast<uint32_t>((std::bit_cast<uint32_t>(value) & kExponent) == kExponent);
  return bad == 0;
}

// IsValidUtf8(), eight bytes of ASCII at a time.
bool IsUtf8(std::string_view text) {
  uint64_t eight = 0;
  for (; text.size() >= sizeof eight; text.remove_prefix(sizeof eight)) {
    std::memcpy(&eight, text.data(), sizeof eight);
    if ((eight & 0x8080'8080'8080'8080) != 0) break;
  }
  return IsValidUtf8(text);
}

// At most what the row takes in a message.
size_t BytesOf(const Row& row) {
  const size_t features = row.feature_count();
  const size_t index_bytes = row.kind == RowKind::kDense ? 0 : 4 * features;
  // A name has a length.
  const size_t name_bytes = row.name_bytes() + 2 * row.name_count();
  return index_bytes + 4 * row.values.size() + name_bytes + row.text.size() + row.label_name.size();
}

absl::Status CheckName(std::string_view name) {
  if (name.empty()) return Invalid("BAD_NAME", "a feature's name is empty");
  if (name.size() > kMaxNameBytes) {
    return Invalid("BAD_NAME",
                   absl::StrCat("feature name \"", std::string(name.substr(0, 32)), "...\" has ",
                                name.size(), " bytes; at most ", kMaxNameBytes, " are allowed"));
  }
  if (!IsUtf8(name)) return Invalid("BAD_NAME", absl::StrCat("a feature's name ", kNotUtf8));
  return absl::OkStatus();
}

}  // namespace

absl::Status BatchBuilder::CheckCommon(const Row& row) const {
  if (const size_t bytes = BytesOf(row); bytes > most_row_bytes()) {
    return Invalid("ROW_TOO_LARGE",
                   absl::StrCat("the example is too large: it takes ", bytes,
                                " bytes of a message, of which the server accepts at most ",
                                most_bytes_, " (its --max-message-bytes)"));
  }
  if (row.label < -1 && row.label != Row::kNoLabel) {
    return Invalid("UNKNOWN_LABEL",
                   absl::StrCat("label ", row.label,
                                " is invalid; it must be -1, +1 or the number of a class"));
  }
  if (row.label_name.size() > kMaxNameBytes || !IsValidUtf8(row.label_name)) {
    return Invalid("UNKNOWN_LABEL", absl::StrCat("the label's name must be at most ", kMaxNameBytes,
                                                 " bytes of UTF-8"));
  }
  if (!(row.weight > 0) || !std::isfinite(row.weight)) {
    return Invalid("BAD_WEIGHT", absl::StrCat("weight ", row.weight,
                                              " is invalid; it must be positive and finite"));
  }
  if (row.kind != RowKind::kDense && !row.values.empty() &&
      row.values.size() != row.feature_count()) {
    return Invalid("MALFORMED_ROW", absl::StrCat(row.feature_count(), " features but ",
                                                 row.values.size(), " values"));
  }
  if (!AllFinite(row.values))
    return Invalid("NON_FINITE_VALUE", "a value is not finite; values must be finite");
  return absl::OkStatus();
}

bool BatchBuilder::Fits(const Row& row) const {
  if (has_labels_ && row.has_label() && row.label_name.empty() != label_numbers_.empty())
    return false;
  // Weights are not in bytes().
  return FitsKind(row) && (rows_ == 0 || bytes() + 4 * rows_ + BytesOf(row) <= most_row_bytes());
}

bool BatchBuilder::FitsKind(const Row& row) const {
  if (rows_ == 0) return true;
  const bool ids = columns_.prediction_ids_size() > 0;
  if (ids || row.kind == RowKind::kPredictionId) return ids && row.kind == RowKind::kPredictionId;
  const bool texts = columns_.texts_size() > 0;
  if (texts || row.kind == RowKind::kText) return texts && row.kind == RowKind::kText;
  const bool dense = columns_.dense_width() > 0;
  if (row.kind == RowKind::kDense) return dense && row.values.size() == columns_.dense_width();
  if (dense) return false;
  // A row or a batch without features has no kind yet.
  if (row.feature_count() == 0 || columns_.indices().empty()) return true;
  return (row.kind == RowKind::kNamed) == (name_count_ > 0);
}

size_t BatchBuilder::bytes() const {
  return name_bytes_ + 4 * static_cast<size_t>(columns_.indices_size()) +
         (all_ones_ ? 0 : 4 * static_cast<size_t>(columns_.values_size())) + 5 * rows_;
}

absl::Status BatchBuilder::Add(const Row& row) {
  if (!Fits(row))
    return absl::FailedPreconditionError(
        "the row does not fit the batch: it has another kind, width or form of label");
  if (absl::Status status = CheckCommon(row); !status.ok()) return status;
  ++row_;
  absl::Status status;
  switch (row.kind) {
    case RowKind::kDense:
      status = AddDense(row);
      break;
    case RowKind::kSparse:
      status = AddSparse(row);
      break;
    case RowKind::kNamed:
      status = AddNamed(row);
      break;
    case RowKind::kText:
      status = AddText(row);
      break;
    case RowKind::kPredictionId:
      status = AddPredictionId(row);
      break;
  }
  if (!status.ok()) return status;
  AddLabel(row);
  columns_.add_weights(row.weight);
  has_weights_ |= row.weight != 1;
  ++rows_;
  return absl::OkStatus();
}

void BatchBuilder::AddLabel(const Row& row) {
  has_labels_ |= row.has_label();
  if (row.label_name.empty()) {
    columns_.add_labels(row.label);
    return;
  }
  const auto [known, is_new] = label_numbers_.emplace(row.label_name, columns_.label_names_size());
  columns_.add_labels(known->second);
  if (!is_new) return;
  columns_.add_label_names(row.label_name);
  name_bytes_ += row.label_name.size() + 3;
}

absl::Status BatchBuilder::AddDense(const Row& row) {
  if (row.values.empty()) return Invalid("MALFORMED_ROW", "a dense row has no values");
  columns_.set_dense_width(static_cast<uint32_t>(row.values.size()));
  columns_.mutable_values()->Add(row.values.begin(), row.values.end());
  all_ones_ = false;
  return absl::OkStatus();
}

absl::Status BatchBuilder::AddSparse(const Row& row) {
  const int before = columns_.indices_size();
  const bool all_ones_before = all_ones_;
  columns_.mutable_indices()->Add(row.indices.begin(), row.indices.end());
  AppendValues(row);
  uint32_t* const indices = columns_.mutable_indices()->mutable_data() + before;
  sorter_.Sort(indices, all_ones_ ? nullptr : columns_.mutable_values()->mutable_data() + before,
               row.indices.size());
  uint32_t* const end = indices + row.indices.size();
  if (const uint32_t* const twice = std::adjacent_find(indices, end); twice != end) {
    const uint32_t index = *twice;
    columns_.mutable_indices()->Truncate(before);
    columns_.mutable_values()->Truncate(before);
    all_ones_ = all_ones_before;
    return Invalid("REPEATED_INDEX",
                   absl::StrCat("index ", index, " (counted from 0) occurs twice"));
  }
  columns_.add_row_ends(static_cast<uint32_t>(columns_.indices_size()));
  return absl::OkStatus();
}

absl::Status BatchBuilder::AddNamed(const Row& row) {
  if (absl::Status status = AppendNumbers(row); !status.ok())
    return row.adds_repeated_names ? AddRepeated(row) : status;
  AppendValues(row);
  columns_.add_row_ends(static_cast<uint32_t>(columns_.indices_size()));
  return absl::OkStatus();
}

absl::Status BatchBuilder::AddRepeated(const Row& row) {
  // Names of the attempt before are none of this row's.
  ++row_;
  added_up_.Clear();
  added_up_.kind = RowKind::kNamed;
  absl::flat_hash_map<std::string_view, size_t> positions;
  for (size_t i = 0; i < row.name_count(); ++i) {
    const float value = row.values.empty() ? 1 : row.values[i];
    const auto [known, is_new] = positions.emplace(row.name(i), positions.size());
    if (is_new) {
      added_up_.AddName(row.name(i));
      added_up_.values.push_back(value);
    } else {
      added_up_.values[known->second] += value;
    }
  }
  if (!AllFinite(added_up_.values))
    return Invalid("NON_FINITE_VALUE", "the values of a repeated feature add up to infinity");
  return AddNamed(added_up_);
}

absl::Status BatchBuilder::AddText(const Row& row) {
  if (row.text.size() > kMaxTextBytes) {
    return Invalid("BAD_TEXT", absl::StrCat("a text has ", row.text.size(), " bytes; at most ",
                                            kMaxTextBytes, " are allowed"));
  }
  if (!IsUtf8(row.text)) return Invalid("BAD_TEXT", absl::StrCat("a text ", kNotUtf8));
  columns_.add_texts(row.text);
  name_bytes_ += row.text.size() + 3;
  return absl::OkStatus();
}

absl::Status BatchBuilder::AddPredictionId(const Row& row) {
  if (!IsUtf8(row.text)) return Invalid("UNKNOWN_PREDICTION", "a prediction id is not UTF-8");
  columns_.add_prediction_ids(row.text);
  name_bytes_ += row.text.size() + 2;
  return absl::OkStatus();
}

absl::StatusOr<NameStore::Record*> BatchBuilder::AddName(std::string_view name, NameKey key,
                                                         uint32_t hash) {
  if (store_.Find(name, key, hash) != nullptr) {
    return Invalid("REPEATED_NAME",
                   absl::StrCat("feature \"", std::string(name), "\" occurs twice"));
  }
  // Names that are known were checked before.
  if (absl::Status status = CheckName(name); !status.ok()) return status;
  if (era_ == nullptr) era_ = std::make_shared<EraNames>();
  era_->Append(name);
  return store_.Add(name, key, hash);
}

void BatchBuilder::RemoveFromMessage(const Row& row, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (is_new_[i] != 0) store_.Find(row.name(i), keys_[i], hashes_[i])->message = 0;
  }
}

absl::Status BatchBuilder::AppendNumbers(const Row& row) {
  const size_t count = row.name_count();
  keys_.resize(count);
  hashes_.resize(count);
  is_new_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const std::string_view name = row.name(i);
    const NameKey key = KeyOfPadded(name.data(), name.size());
    const uint32_t hash = HashName(name, key);
    store_.Prefetch(hash);
    keys_[i] = key;
    hashes_[i] = hash;
  }
  auto* const indices = columns_.mutable_indices();
  const int before = indices->size();
  indices->Resize(before + static_cast<int>(count), 0);
  uint32_t* const numbers = indices->mutable_data() + before;
  const uint32_t row_number = row_;
  const uint32_t message = message_;
  size_t new_names = 0;
  size_t new_bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    const std::string_view name = row.name(i);
    NameStore::Record* record = store_.Find(name, keys_[i], hashes_[i]);
    if (record == nullptr || record->row == row_number) {
      const absl::StatusOr<NameStore::Record*> added = AddName(name, keys_[i], hashes_[i]);
      if (!added.ok()) {
        RemoveFromMessage(row, i);
        indices->Truncate(before);
        return added.status();
      }
      record = *added;
    }
    // Without a branch: which names are new to the message is not predictable.
    const uint32_t is_new = record->message != message ? 1 : 0;
    is_new_[i] = is_new;
    new_names += is_new;
    new_bytes += is_new * (size_t{record->size} + 2);
    record->message = message;
    record->row = row_number;
    numbers[i] = record->number;
  }
  name_count_ += new_names;
  name_bytes_ += new_bytes;
  return absl::OkStatus();
}

void BatchBuilder::AppendValues(const Row& row) {
  auto* const values = columns_.mutable_values();
  if (row.values.empty()) {
    values->Resize(values->size() + static_cast<int>(row.feature_count()), 1.0f);
    return;
  }
  values->Add(row.values.begin(), row.values.end());
  all_ones_ = all_ones_ && std::all_of(row.values.begin(), row.values.end(),
                                       [](float value) { return value == 1.0f; });
}

void BatchBuilder::CloseColumns() {
  if (all_ones_) columns_.clear_values();
  if (!has_labels_) columns_.clear_labels();
  if (!has_weights_) columns_.clear_weights();
}

void BatchBuilder::Build(perceptron::v1::ExampleColumns* columns) {
  CloseColumns();
  if (name_count_ > 0) {
    uint32_t* const indices = columns_.mutable_indices()->mutable_data();
    list_.Make({indices, static_cast<size_t>(columns_.indices_size())},
               static_cast<uint32_t>(store_.size()));
    era_->CopyTo(list_.numbers(), columns_.mutable_feature_names());
    sorter_.SortRows(&columns_);
  }
  *columns = std::move(columns_);
  Restart(*columns);
}

void BatchBuilder::BuildUnsorted(perceptron::v1::ExampleColumns* columns, NameNumbers* numbers) {
  CloseColumns();
  *numbers = {};
  if (name_count_ > 0) {
    columns_.mutable_feature_names();
    *numbers = {era_, static_cast<uint32_t>(store_.size()), static_cast<uint32_t>(name_count_)};
  }
  *columns = std::move(columns_);
  Restart(*columns);
}

void BatchBuilder::Restart(const perceptron::v1::ExampleColumns& built) {
  columns_.Clear();
  // The next message is probably as large.
  columns_.mutable_row_ends()->Reserve(built.row_ends_size());
  columns_.mutable_indices()->Reserve(built.indices_size());
  columns_.mutable_values()->Reserve(std::max(built.indices_size(), built.values_size()));
  columns_.mutable_labels()->Reserve(built.labels_size());
  rows_ = 0;
  name_bytes_ = 0;
  has_labels_ = false;
  has_weights_ = false;
  all_ones_ = true;
  label_numbers_.clear();
  name_count_ = 0;
  ++message_;
  constexpr uint32_t kMostCounted = std::numeric_limits<uint32_t>::max() / 2;
  if (!store_.IsLarge() && message_ < kMostCounted && row_ < kMostCounted) return;
  store_.Clear();
  era_ = nullptr;
  row_ = 0;
  message_ = 1;
}

}  // namespace perceptrond::client
