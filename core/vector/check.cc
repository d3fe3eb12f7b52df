#include "core/vector/check.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/vector/kernels.h"
#include "core/vector/simd.h"

namespace perceptrond {
namespace {

ValidationError Malformed(std::string field, std::string description) {
  return {ValidationCode::kMalformedColumns, std::move(field), std::move(description)};
}

ValidationError CheckDenseColumns(const Batch& batch) {
  if (!batch.row_ends.empty() || !batch.indices.empty() || batch.names != nullptr) {
    return Malformed("dense_width", "dense rows take no row_ends, indices or names");
  }
  if (batch.values.size() % batch.dense_width != 0) {
    return Malformed("values",
                     absl::StrCat(batch.values.size(), " values are not a multiple of dense_width ",
                                  batch.dense_width));
  }
  return {};
}

ValidationError CheckSparseColumns(const Batch& batch) {
  uint32_t begin = 0;
  for (size_t i = 0; i < batch.row_ends.size(); ++i) {
    if (batch.row_ends[i] < begin) {
      return Malformed(absl::StrCat("row_ends[", i, "]"),
                       absl::StrCat(batch.row_ends[i], " is below the end before it, ", begin));
    }
    begin = batch.row_ends[i];
  }
  if (begin != batch.indices.size()) {
    return Malformed("row_ends", absl::StrCat("the last row ends at ", begin, " of ",
                                              batch.indices.size(), " indices"));
  }
  if (!batch.values.empty() && batch.values.size() != batch.indices.size()) {
    return Malformed("values",
                     absl::StrCat(batch.values.size(), " values for ", batch.indices.size(),
                                  " indices (or none, for all ones)"));
  }
  return {};
}

// The first position where indices do not ascend, or size.
size_t FirstDescent(const Row& row) {
  size_t i = 1;
  while (i < row.size && row.indices[i - 1] < row.indices[i]) ++i;
  return row.size == 0 ? 0 : i;
}

}  // namespace

const char* ReasonName(ValidationCode code) {
  switch (code) {
    case ValidationCode::kNone:
      return "";
    case ValidationCode::kMalformedColumns:
      return "MALFORMED_COLUMNS";
    case ValidationCode::kNonFiniteValue:
      return "NON_FINITE_VALUE";
    case ValidationCode::kUnsortedIndices:
      return "UNSORTED_INDICES";
    case ValidationCode::kRepeatedName:
      return "REPEATED_NAME";
    case ValidationCode::kBadName:
      return "BAD_NAME";
    case ValidationCode::kBadText:
      return "BAD_TEXT";
    case ValidationCode::kIndexOutOfRange:
      return "INDEX_OUT_OF_RANGE";
    case ValidationCode::kWrongDimension:
      return "WRONG_DIMENSION";
    case ValidationCode::kTooManyFeatures:
      return "TOO_MANY_FEATURES";
    case ValidationCode::kTooCostly:
      return "ROW_TOO_COSTLY";
    case ValidationCode::kUnknownFeature:
      return "UNKNOWN_FEATURE";
    case ValidationCode::kLengthMismatch:
      return "LENGTH_MISMATCH";
    case ValidationCode::kWrongForm:
      return "WRONG_FORM";
    case ValidationCode::kMissingLabel:
      return "MISSING_LABEL";
    case ValidationCode::kUnknownLabel:
      return "UNKNOWN_LABEL";
    case ValidationCode::kBadWeight:
      return "BAD_WEIGHT";
    case ValidationCode::kUnknownPrediction:
      return "UNKNOWN_PREDICTION";
    case ValidationCode::kPredictionExpired:
      return "PREDICTION_EXPIRED";
    case ValidationCode::kWeightOverflow:
      return "WEIGHT_OVERFLOW";
    case ValidationCode::kFeatureCap:
      return "FEATURE_CAP";
    case ValidationCode::kClassCap:
      return "CLASS_CAP";
  }
  return "";
}

ValidationError CheckColumns(const Batch& batch) {
  if (ValidationError error =
          batch.dense_width > 0 ? CheckDenseColumns(batch) : CheckSparseColumns(batch)) {
    return error;
  }
  if (!batch.labels.empty() && batch.labels.size() != batch.rows()) {
    return Malformed("labels",
                     absl::StrCat(batch.labels.size(), " labels for ", batch.rows(), " rows"));
  }
  if (!batch.weights.empty() && batch.weights.size() != batch.rows()) {
    return Malformed("weights",
                     absl::StrCat(batch.weights.size(), " weights for ", batch.rows(), " rows"));
  }
  return {};
}

ValidationCode CheckRow(const Row& row, uint32_t dimension, size_t max_features,
                        double* squared_norm) {
  // First, so that a row that is far too long is not read.
  if (const ValidationCode code = CheckSize(row, dimension, max_features);
      code != ValidationCode::kNone)
    return code;
  const bool ascends = row.indices == nullptr || simd::Best().ascends(row.indices, row.size);
  *squared_norm = SquaredNorm(row);
  return CheckScanned(row, dimension, max_features, {ascends, *squared_norm, 0});
}

ValidationError DescribeRow(const Row& row, uint32_t dimension, size_t max_features,
                            ValidationCode code) {
  ValidationError error{code, "", ""};
  switch (code) {
    case ValidationCode::kTooManyFeatures:
      error.field = row.indices == nullptr ? "values" : "indices";
      error.description = absl::StrCat(row.size, " features; the server takes at most ",
                                       max_features, " (--max-example-features)");
      break;
    case ValidationCode::kWrongDimension:
      error.field = "values";
      error.description = absl::StrCat(row.size, " values for a model of dimension ", dimension);
      break;
    case ValidationCode::kUnsortedIndices: {
      const size_t i = FirstDescent(row);
      error.field = "indices";
      error.position = i;
      error.description = absl::StrCat(row.indices[i], " follows ", row.indices[i - 1],
                                       "; indices must strictly ascend");
      break;
    }
    case ValidationCode::kIndexOutOfRange:
      error.field = "indices";
      error.position = row.size - 1;
      error.description =
          absl::StrCat(row.indices[row.size - 1], " is not below ", dimension,
                       ", the model's dimension or number of slots (indices count from 0)");
      break;
    case ValidationCode::kNonFiniteValue: {
      size_t i = 0;
      while (i < row.size && std::isfinite(row.values[i])) ++i;
      error.field = "values";
      error.position = i;
      error.description = absl::StrCat(row.values[i], " is not a finite number");
      break;
    }
    default:
      break;
  }
  return error;
}

}  // namespace perceptrond
