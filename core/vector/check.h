// What makes a batch or a row unfit to be read. Checked once, where data enters the core;
// everything after that trusts it.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/vector/kernels.h"
#include "core/vector/row.h"

namespace perceptrond {

enum class ValidationCode : uint8_t {
  kNone,
  // The whole batch.
  kMalformedColumns,
  // One row.
  kNonFiniteValue,
  kUnsortedIndices,
  kRepeatedName,
  kBadName,
  kBadText,
  kIndexOutOfRange,
  kWrongDimension,
  kTooManyFeatures,
  kTooCostly,
  kUnknownFeature,
  kLengthMismatch,
  kWrongForm,
  kMissingLabel,
  kUnknownLabel,
  kBadWeight,
  // The prediction whose label came does not wait for it.
  kUnknownPrediction,
  kPredictionExpired,
  // One row of a good batch, when it would have been learned.
  kWeightOverflow,
  kFeatureCap,
  kClassCap,
};

// UPPER_SNAKE, as clients compare it and metrics count it: "NON_FINITE_VALUE".
const char* ReasonName(ValidationCode code);

// What was wrong, and where.
struct ValidationError {
  ValidationCode code = ValidationCode::kNone;
  // The field of the batch, and what is wrong with it in words for a person.
  std::string field;
  std::string description;
  // Which of the row's indices or values it is, from 0.
  std::optional<size_t> position = std::nullopt;

  explicit operator bool() const { return code != ValidationCode::kNone; }
};

// A row of a batch with a validation error. Nothing is learned of it; the others go on.
struct RowError {
  uint32_t row = 0;
  ValidationError error;
};

// Whether the columns fit together, so that row(i) may be called for every row. O(rows).
ValidationError CheckColumns(const Batch& batch);

// Whether a row is well formed: finite values, indices that strictly ascend below `dimension`, at
// most max_features of them; a dense row exactly `dimension` values wide. O(row.size). On success
// sets *squared_norm to the row's.
ValidationCode CheckRow(const Row& row, uint32_t dimension, size_t max_features,
                        double* squared_norm);

// Whether a row has as many features as it may: what can be said of it without reading it. O(1).
inline ValidationCode CheckSize(const Row& row, uint32_t dimension, size_t max_features) {
  if (row.size > max_features) return ValidationCode::kTooManyFeatures;
  return row.indices == nullptr && row.size != dimension ? ValidationCode::kWrongDimension
                                                         : ValidationCode::kNone;
}

// CheckRow for a row that ScanRows scanned; indices_are_checked: Batch's. O(1).
inline ValidationCode CheckScanned(const Row& row, uint32_t dimension, size_t max_features,
                                   const RowScan& scan, bool indices_are_checked = false) {
  if (const ValidationCode code = CheckSize(row, dimension, max_features);
      code != ValidationCode::kNone)
    return code;
  if (indices_are_checked)
    return std::isfinite(scan.squared_norm) ? ValidationCode::kNone
                                            : ValidationCode::kNonFiniteValue;
  if (!scan.ascends) return ValidationCode::kUnsortedIndices;
  if (row.indices != nullptr && row.size > 0 && row.indices[row.size - 1] >= dimension)
    return ValidationCode::kIndexOutOfRange;
  return std::isfinite(scan.squared_norm) ? ValidationCode::kNone : ValidationCode::kNonFiniteValue;
}

// Describes the error that CheckRow found, and names the value or index. O(row.size).
ValidationError DescribeRow(const Row& row, uint32_t dimension, size_t max_features,
                            ValidationCode code);

}  // namespace perceptrond
