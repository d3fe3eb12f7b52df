#include "client/batch_builder.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/base/casts.h"
#include "absl/strings/str_cat.h"
#include "client/error.h"
#include "core/vector/name.h"

namespace perceptrond::client {
namespace {

absl::Status Invalid(std::string_view reason, std::string_view message) {
  return MakeError(absl::StatusCode::kInvalidArgument, reason, message);
}

absl::Status CheckCommon(const Row& row) {
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
  // One sum instead of a test per value: it is finite iff all values are, because a sum of floats
  // does not overflow a double.
  double sum = 0;
  for (const float value : row.values) sum += value;
  if (!std::isfinite(sum))
    return Invalid("NON_FINITE_VALUE", "a value is not finite; values must be finite");
  return absl::OkStatus();
}

absl::Status CheckName(std::string_view name) {
  if (name.empty()) return Invalid("BAD_NAME", "a feature's name is empty");
  if (name.size() > kMaxNameBytes) {
    return Invalid("BAD_NAME",
                   absl::StrCat("feature name \"", std::string(name.substr(0, 32)), "...\" has ",
                                name.size(), " bytes; at most ", kMaxNameBytes, " are allowed"));
  }
  if (!IsValidUtf8(name)) return Invalid("BAD_NAME", "a feature's name is not UTF-8");
  return absl::OkStatus();
}

}  // namespace

bool BatchBuilder::Fits(const Row& row) const {
  if (has_labels_ && row.has_label() && row.label_name.empty() != label_numbers_.empty())
    return false;
  return FitsKind(row);
}

bool BatchBuilder::FitsKind(const Row& row) const {
  if (rows_ == 0) return true;
  const bool dense = columns_.dense_width() > 0;
  if (row.kind == RowKind::kDense) return dense && row.values.size() == columns_.dense_width();
  if (dense) return false;
  // A row or a batch without features has no kind yet.
  if (row.feature_count() == 0 || columns_.indices().empty()) return true;
  return (row.kind == RowKind::kNamed) == !names_.empty();
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
  bool ascending = true;
  for (size_t i = 1; i < row.indices.size(); ++i) {
    ascending &= row.indices[i - 1] < row.indices[i];
  }
  if (ascending) {
    columns_.mutable_indices()->Add(row.indices.begin(), row.indices.end());
    AppendValues(row, false);
  } else {
    scratch_.clear();
    for (uint32_t i = 0; i < row.indices.size(); ++i) scratch_.push_back({row.indices[i], i});
    if (absl::Status status = SortFeatures(row); !status.ok()) return status;
    for (const Feature& feature : scratch_) columns_.add_indices(feature.index);
    AppendValues(row, true);
  }
  columns_.add_row_ends(static_cast<uint32_t>(columns_.indices_size()));
  return absl::OkStatus();
}

absl::Status BatchBuilder::AddNamed(const Row& row) {
  for (size_t i = 0; i < row.name_count(); ++i) {
    if (absl::Status status = CheckName(row.name(i)); !status.ok()) return status;
  }
  const size_t names_before = names_.size();
  scratch_.clear();
  for (uint32_t i = 0; i < row.name_count(); ++i) scratch_.push_back({Intern(row.name(i)), i});
  if (absl::Status status = SortFeatures(row); !status.ok()) {
    while (names_.size() > names_before) {
      name_bytes_ -= names_.back().size() + 3;
      numbers_.erase(names_.back());
      names_.pop_back();
    }
    return status;
  }
  for (const Feature& feature : scratch_) columns_.add_indices(feature.index);
  AppendValues(row, true);
  columns_.add_row_ends(static_cast<uint32_t>(columns_.indices_size()));
  return absl::OkStatus();
}

absl::Status BatchBuilder::SortFeatures(const Row& row) {
  std::sort(scratch_.begin(), scratch_.end(),
            [](const Feature& a, const Feature& b) { return a.index < b.index; });
  const auto twice =
      std::adjacent_find(scratch_.begin(), scratch_.end(),
                         [](const Feature& a, const Feature& b) { return a.index == b.index; });
  if (twice == scratch_.end()) return absl::OkStatus();
  if (row.kind == RowKind::kNamed) {
    return Invalid(
        "REPEATED_NAME",
        absl::StrCat("feature \"", std::string(row.name(twice->position)), "\" occurs twice"));
  }
  return Invalid("REPEATED_INDEX", absl::StrCat("index ", twice->index, " occurs twice"));
}

void BatchBuilder::AppendValues(const Row& row, bool in_scratch_order) {
  auto* values = columns_.mutable_values();
  if (row.values.empty()) {
    values->Resize(values->size() + static_cast<int>(row.feature_count()), 1.0f);
    return;
  }
  if (in_scratch_order) {
    for (const Feature& feature : scratch_) values->Add(row.values[feature.position]);
  } else {
    values->Add(row.values.begin(), row.values.end());
  }
  all_ones_ = all_ones_ && std::all_of(row.values.begin(), row.values.end(),
                                       [](float value) { return value == 1.0f; });
}

uint32_t BatchBuilder::Intern(std::string_view name) {
  if (const auto known = numbers_.find(name); known != numbers_.end()) return known->second;
  const auto number = static_cast<uint32_t>(names_.size());
  names_.emplace_back(name);
  numbers_.emplace(names_.back(), number);
  name_bytes_ += name.size() + 3;
  return number;
}

void BatchBuilder::SortNames() {
  std::vector<uint32_t> order(names_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [this](uint32_t a, uint32_t b) { return names_[a] < names_[b]; });
  std::vector<uint32_t> rank(names_.size());
  perceptron::v1::NameColumn& sorted = *columns_.mutable_feature_names();
  for (uint32_t i = 0; i < order.size(); ++i) {
    rank[order[i]] = i;
    sorted.mutable_text()->append(names_[order[i]]);
    sorted.add_lengths(static_cast<uint32_t>(names_[order[i]].size()));
  }
  uint32_t begin = 0;
  for (const uint32_t end : columns_.row_ends()) {
    scratch_.clear();
    for (uint32_t i = begin; i < end; ++i) {
      const uint32_t index = rank[columns_.indices(static_cast<int>(i))];
      // The bits of the value are sorted along in the position's place.
      scratch_.push_back({index, absl::bit_cast<uint32_t>(columns_.values(static_cast<int>(i)))});
    }
    std::sort(scratch_.begin(), scratch_.end(),
              [](const Feature& a, const Feature& b) { return a.index < b.index; });
    for (uint32_t i = begin; i < end; ++i) {
      const Feature& feature = scratch_[i - begin];
      columns_.set_indices(static_cast<int>(i), feature.index);
      columns_.set_values(static_cast<int>(i), absl::bit_cast<float>(feature.position));
    }
    begin = end;
  }
}

void BatchBuilder::Build(perceptron::v1::ExampleColumns* columns) {
  if (!names_.empty()) SortNames();
  if (all_ones_) columns_.clear_values();
  if (!has_labels_) columns_.clear_labels();
  if (!has_weights_) columns_.clear_weights();
  *columns = std::move(columns_);
  columns_.Clear();
  rows_ = 0;
  name_bytes_ = 0;
  has_labels_ = false;
  has_weights_ = false;
  all_ones_ = true;
  numbers_.clear();
  names_.clear();
  label_numbers_.clear();
}

}  // namespace perceptrond::client
