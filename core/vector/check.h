// What makes a batch or a row unfit to be read. Checked once, where data enters the core;
// everything behind trusts it.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/vector/batch.h"
#include "core/vector/kernels.h"

namespace perceptrond {

enum class Fault : uint8_t {
  kNone,
  // The whole batch.
  kMalformedColumns,
  // One row.
  kNonFiniteValue,
  kUnsortedIndices,
  kRepeatedName,
  kBadName,
  kIndexOutOfRange,
  kWrongDimension,
  kTooManyFeatures,
  kLengthMismatch,
  kWrongForm,
  kMissingLabel,
  kUnknownLabel,
  kBadWeight,
  // One row of a good batch, when it would have been learned.
  kWeightOverflow,
  kFeatureCap,
  kClassCap,
};

// UPPER_SNAKE, as clients compare it and metrics count it: "NON_FINITE_VALUE".
const char* FaultReason(Fault fault);

// What was wrong, and where.
struct Finding {
  Fault fault = Fault::kNone;
  // The field of the batch, and what is wrong with it in words for a person.
  std::string field;
  std::string description;
  // Which of the row's indices or values it is, from 0.
  std::optional<size_t> place = std::nullopt;

  explicit operator bool() const { return fault != Fault::kNone; }
};

// Whether the columns fit together, so that row(i) may be called for every row. O(rows + names).
Finding CheckColumns(const Batch& batch);

// Whether a row is well formed: finite values, indices that strictly ascend below `dimension`, at
// most max_features of them; a dense row exactly `dimension` values wide. O(row.size). On success
// sets *squared_norm to the row's.
Fault CheckRow(const Row& row, uint32_t dimension, size_t max_features, double* squared_norm);

// Whether a row has as many features as it may: what can be said of it without reading it. O(1).
inline Fault CheckSize(const Row& row, uint32_t dimension, size_t max_features) {
  if (row.size > max_features) return Fault::kTooManyFeatures;
  return row.indices == nullptr && row.size != dimension ? Fault::kWrongDimension : Fault::kNone;
}

// The same of a row that was scanned. O(1).
inline Fault CheckScanned(const Row& row, uint32_t dimension, size_t max_features,
                          const RowScan& scan) {
  if (const Fault fault = CheckSize(row, dimension, max_features); fault != Fault::kNone)
    return fault;
  if (!scan.ascends) return Fault::kUnsortedIndices;
  if (row.indices != nullptr && row.size > 0 && row.indices[row.size - 1] >= dimension)
    return Fault::kIndexOutOfRange;
  return std::isfinite(scan.squared_norm) ? Fault::kNone : Fault::kNonFiniteValue;
}

// Words for the fault CheckRow found: which value or index it was. O(row.size).
Finding DescribeRow(const Row& row, uint32_t dimension, size_t max_features, Fault fault);

}  // namespace perceptrond
