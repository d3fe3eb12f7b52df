// How an ExampleBatch reads examples in columns: those in memory are viewed in place.
#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "core/vector/kernels.h"
#include "server/sessions/example_batch.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

template <typename T>
std::span<const T> View(const google::protobuf::RepeatedField<T>& field) {
  return {field.data(), static_cast<size_t>(field.size())};
}

absl::Status MalformedColumns(absl::string_view field, absl::string_view description) {
  return InvalidField(ReasonName(ValidationCode::kMalformedColumns), field, description);
}

// Appends names, as the field `field` has them.
absl::Status AppendNames(const v1::NameColumn& names, absl::string_view field, NameTable& table) {
  const ValidationError error = table.Append(names.text(), View(names.lengths()));
  return error ? InvalidField(ReasonName(error.code), absl::StrCat(field, error.field),
                              error.description)
               : absl::OkStatus();
}

}  // namespace

absl::Status ExampleBatch::AppendStreamNames(const v1::NameColumn& names) {
  return stream_names_ == nullptr ? absl::OkStatus()
                                  : AppendNames(names, "columns.stream_names", *stream_names_);
}

std::string ExampleBatch::PathInColumns(const RowError& row_error) const {
  const ValidationError& error = row_error.error;
  if (error.field == "labels" || error.field == "weights")
    return absl::StrCat("columns.", error.field, "[", row_error.row, "]");
  if (!batch_.texts.empty()) return absl::StrCat("columns.texts[", row_error.row, "]");
  // A position in the row is that of a name's number.
  const bool of_index =
      error.field == "indices" || (error.field == "feature_names" && error.position.has_value());
  const bool as_deltas = of_index && batch_.indices.data() == indices_.data();
  const bool as_halves = error.field == "values" && batch_.values.data() == values_.data();
  const absl::string_view field = as_deltas   ? "index_deltas"
                                  : as_halves ? "half_values"
                                  : of_index  ? "indices"
                                              : absl::string_view(error.field);
  const bool dense = batch_.dense_width > 0;
  size_t begin = 0;
  if (dense) begin = size_t{row_error.row} * batch_.dense_width;
  if (!dense && row_error.row > 0) begin = batch_.row_ends[row_error.row - 1];
  if (error.position.has_value())
    return absl::StrCat("columns.", field, "[", begin + *error.position, "]");
  // The error is about the row as a whole.
  return dense ? absl::StrCat("columns.values[", begin, "]")
               : absl::StrCat("columns.row_ends[", row_error.row, "]");
}

absl::Status ExampleBatch::ReadColumns(const v1::ExampleColumns& columns,
                                       const ModelSettings& settings, Use use) {
  batch_.row_ends = View(columns.row_ends());
  batch_.dense_width = columns.dense_width();
  if (absl::Status status = ReadIndices(columns); !status.ok()) return status;
  if (absl::Status status = ReadValues(columns); !status.ok()) return status;
  if (use == Use::kLearn) {
    batch_.labels = View(columns.labels());
    batch_.weights = View(columns.weights());
    label_names_.assign(columns.label_names().begin(), columns.label_names().end());
    batch_.label_names = label_names_;
  }
  return columns.texts().empty() ? ReadNames(columns) : ReadTexts(columns, settings);
}

absl::Status ExampleBatch::ReadTexts(const v1::ExampleColumns& columns,
                                     const ModelSettings& settings) {
  const bool has_others = !batch_.row_ends.empty() || !batch_.indices.empty() ||
                          !batch_.values.empty() || batch_.dense_width > 0 ||
                          columns.has_feature_names() || columns.has_stream_names();
  if (has_others)
    return MalformedColumns("columns.texts", "send texts or other features, not both");
  if (!settings.example_space.text.has_value())
    return MalformedColumns("columns.texts", "the model takes features, not texts");
  texts_.assign(columns.texts().begin(), columns.texts().end());
  row_ends_.clear();
  indices_.clear();
  values_.clear();
  for (const absl::string_view text : texts_) {
    if (ValidationError error = AppendText(text, settings.example_space))
      row_errors_.push_back({static_cast<uint32_t>(row_ends_.size()), std::move(error)});
    row_ends_.push_back(static_cast<uint32_t>(indices_.size()));
  }
  batch_.row_ends = row_ends_;
  batch_.indices = indices_;
  batch_.values = values_;
  batch_.texts = texts_;
  batch_.indices_are_checked = true;
  return absl::OkStatus();
}

absl::Status ExampleBatch::ReadIndices(const v1::ExampleColumns& columns) {
  batch_.indices = View(columns.indices());
  if (columns.index_deltas().empty()) return absl::OkStatus();
  if (!columns.indices().empty())
    return MalformedColumns("columns.index_deltas", "send indices or index_deltas, not both");
  const std::span<const uint32_t> deltas = View(columns.index_deltas());
  indices_.resize(deltas.size());
  batch_.indices = indices_;
  uint32_t begin = 0;
  for (const uint32_t end : batch_.row_ends) {
    // CheckColumns finds the same.
    if (end < begin || end > deltas.size()) break;
    // An index above 2^32 - 1 wraps around: the row's indices then do not ascend.
    uint32_t next = 0;
    for (uint32_t i = begin; i < end; ++i) {
      indices_[i] = next + deltas[i];
      next = indices_[i] + 1;
    }
    begin = end;
  }
  return absl::OkStatus();
}

absl::Status ExampleBatch::ReadValues(const v1::ExampleColumns& columns) {
  batch_.values = View(columns.values());
  const std::string& halves = columns.half_values();
  if (halves.empty()) return absl::OkStatus();
  if (!columns.values().empty())
    return MalformedColumns("columns.half_values", "send values or half_values, not both");
  if (halves.size() % sizeof(uint16_t) != 0) {
    return MalformedColumns("columns.half_values",
                            absl::StrCat(halves.size(), " bytes; a value has two"));
  }
  values_.resize(halves.size() / sizeof(uint16_t));
  HalvesToFloats(halves.data(), values_);
  batch_.values = values_;
  return absl::OkStatus();
}

absl::Status ExampleBatch::ReadNames(const v1::ExampleColumns& columns) {
  if (columns.has_feature_names() && columns.has_stream_names())
    return MalformedColumns("columns.feature_names",
                            "send feature_names or stream_names, not both");
  if (columns.has_stream_names()) {
    batch_.names = stream_names_.get();
    if (batch_.names != nullptr) return absl::OkStatus();
    return MalformedColumns("columns.stream_names",
                            "there is no table of names; ask for one with name_table_size in a "
                            "stream's first message, or send feature_names");
  }
  if (!columns.has_feature_names()) return absl::OkStatus();
  names_->Clear();
  batch_.names = &*names_;
  return AppendNames(columns.feature_names(), "columns.feature_names", *names_);
}

}  // namespace perceptrond
