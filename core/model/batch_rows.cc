#include "core/model/batch_rows.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/model/error.h"

namespace perceptrond {
namespace {

absl::Status MalformedColumns(const ValidationError& error) {
  return InvalidField(ReasonName(error.code), absl::StrCat("columns.", error.field),
                      error.description);
}

bool IsBefore(const RowError& error, size_t row) { return error.row < row; }

}  // namespace

absl::Status BeginBatch(const Batch& batch, Mapper& mapper) {
  if (ValidationError error = CheckColumns(batch)) return MalformedColumns(error);
  if (ValidationError error = mapper.Begin(batch)) return MalformedColumns(error);
  return absl::OkStatus();
}

BatchRows::BatchRows(const ModelCore& core, const Batch& batch,
                     std::span<const RowError> row_errors)
    : batch_(batch),
      row_errors_(row_errors),
      mapper_(core.settings.space, core.expansion, core.limits.max_example_features),
      labels_(core.settings, batch) {}

absl::Status BatchRows::Begin() {
  if (ValidationError error = CheckColumns(batch_)) return MalformedColumns(error);
  if (size() > 0 && batch_.labels.empty()) {
    return MalformedColumns(
        {ValidationCode::kMissingLabel, "labels", "every row to be learned needs a label"});
  }
  if (ValidationError error = mapper_.Begin(batch_)) return MalformedColumns(error);
  return absl::OkStatus();
}

void BatchRows::ResolveLabels(const ModelState& state) {
  if (labels_.Stale(state.class_names)) labels_.Resolve(state.class_names);
}

void BatchRows::Resolve(const ModelState& state) {
  ResolveLabels(state);
  if (features_resolved_ && mapper_.resolved_size() == state.names.size()) return;
  mapper_.Resolve(state.names);
  features_resolved_ = true;
}

const RowError* BatchRows::FindError(size_t i) const {
  if (row_errors_.empty()) return nullptr;
  const auto found = std::lower_bound(row_errors_.begin(), row_errors_.end(), i, IsBefore);
  return found != row_errors_.end() && found->row == i ? &*found : nullptr;
}

size_t BatchRows::NextRefused(size_t i) const {
  if (row_errors_.empty()) return size();
  const auto found = std::lower_bound(row_errors_.begin(), row_errors_.end(), i, IsBefore);
  return found == row_errors_.end() ? size() : found->row;
}

ValidationCode BatchRows::CheckTarget(size_t i) const {
  if (const RowError* const error = FindError(i)) return error->error.code;
  if (labels_.Check(i) != ValidationCode::kNone) return ValidationCode::kUnknownLabel;
  const float weight = batch_.weight(i);
  return weight > 0 && std::isfinite(weight) ? ValidationCode::kNone : ValidationCode::kBadWeight;
}

ValidationCode BatchRows::Check(size_t i, double* squared_norm) {
  if (const RowError* const error = FindError(i)) return error->error.code;
  const ValidationCode code = mapper_.Check(i, squared_norm);
  return code == ValidationCode::kNone ? CheckTarget(i) : code;
}

ValidationError BatchRows::Describe(size_t i, ValidationCode code) {
  if (const RowError* const error = FindError(i)) return error->error;
  if (code == ValidationCode::kUnknownLabel) return labels_.Describe(i);
  if (code == ValidationCode::kBadWeight) {
    return {code, "weights",
            absl::StrCat(batch_.weight(i), "; a weight must be above 0 and finite")};
  }
  return mapper_.Describe(i, code);
}

}  // namespace perceptrond
