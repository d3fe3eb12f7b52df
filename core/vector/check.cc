#include "core/vector/check.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/vector/kernels.h"
#include "core/vector/simd.h"

namespace perceptrond {
namespace {

Finding Malformed(std::string field, std::string description) {
  return {Fault::kMalformedColumns, std::move(field), std::move(description)};
}

Finding CheckDenseColumns(const Batch& batch) {
  if (!batch.row_ends.empty() || !batch.indices.empty() || !batch.names.empty()) {
    return Malformed("dense_width", "dense rows take no row_ends, indices or feature_names");
  }
  if (batch.values.size() % batch.dense_width != 0) {
    return Malformed("values",
                     absl::StrCat(batch.values.size(), " values are not a multiple of dense_width ",
                                  batch.dense_width));
  }
  return {};
}

Finding CheckSparseColumns(const Batch& batch) {
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
  for (size_t i = 1; i < batch.names.size(); ++i) {
    if (batch.names[i - 1] >= batch.names[i]) {
      return Malformed(absl::StrCat("feature_names[", i, "]"),
                       "names must strictly ascend by their bytes");
    }
  }
  return {};
}

// The first place where indices do not ascend, or size.
size_t FirstDescent(const Row& row) {
  size_t i = 1;
  while (i < row.size && row.indices[i - 1] < row.indices[i]) ++i;
  return row.size == 0 ? 0 : i;
}

}  // namespace

const char* FaultReason(Fault fault) {
  switch (fault) {
    case Fault::kNone:
      return "";
    case Fault::kMalformedColumns:
      return "MALFORMED_COLUMNS";
    case Fault::kNonFiniteValue:
      return "NON_FINITE_VALUE";
    case Fault::kUnsortedIndices:
      return "UNSORTED_INDICES";
    case Fault::kRepeatedName:
      return "REPEATED_NAME";
    case Fault::kBadName:
      return "BAD_NAME";
    case Fault::kIndexOutOfRange:
      return "INDEX_OUT_OF_RANGE";
    case Fault::kWrongDimension:
      return "WRONG_DIMENSION";
    case Fault::kTooManyFeatures:
      return "TOO_MANY_FEATURES";
    case Fault::kLengthMismatch:
      return "LENGTH_MISMATCH";
    case Fault::kWrongForm:
      return "WRONG_FORM";
    case Fault::kMissingLabel:
      return "MISSING_LABEL";
    case Fault::kUnknownLabel:
      return "UNKNOWN_LABEL";
    case Fault::kBadWeight:
      return "BAD_WEIGHT";
    case Fault::kWeightOverflow:
      return "WEIGHT_OVERFLOW";
    case Fault::kFeatureCap:
      return "FEATURE_CAP";
    case Fault::kClassCap:
      return "CLASS_CAP";
  }
  return "";
}

Finding CheckColumns(const Batch& batch) {
  if (Finding finding =
          batch.dense_width > 0 ? CheckDenseColumns(batch) : CheckSparseColumns(batch)) {
    return finding;
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

Fault CheckRow(const Row& row, uint32_t dimension, size_t max_features, double* squared_norm) {
  // First: a row may be far too long to be read in vain.
  if (const Fault fault = CheckSize(row, dimension, max_features); fault != Fault::kNone)
    return fault;
  const bool ascends = row.indices == nullptr || simd::Best().ascends(row.indices, row.size);
  *squared_norm = SquaredNorm(row);
  return CheckScanned(row, dimension, max_features, {ascends, *squared_norm, 0});
}

Finding DescribeRow(const Row& row, uint32_t dimension, size_t max_features, Fault fault) {
  Finding finding{fault, "", ""};
  switch (fault) {
    case Fault::kTooManyFeatures:
      finding.field = row.indices == nullptr ? "values" : "indices";
      finding.description =
          absl::StrCat(row.size, " features; at most ", max_features, " are taken");
      break;
    case Fault::kWrongDimension:
      finding.field = "values";
      finding.description = absl::StrCat(row.size, " values for a model of dimension ", dimension);
      break;
    case Fault::kUnsortedIndices: {
      const size_t i = FirstDescent(row);
      finding.field = "indices";
      finding.place = i;
      finding.description = absl::StrCat(row.indices[i], " follows ", row.indices[i - 1],
                                         "; indices must strictly ascend");
      break;
    }
    case Fault::kIndexOutOfRange:
      finding.field = "indices";
      finding.place = row.size - 1;
      finding.description =
          absl::StrCat(row.indices[row.size - 1], " is not below the model's dimension ", dimension,
                       " (indices count from 0)");
      break;
    case Fault::kNonFiniteValue: {
      size_t i = 0;
      while (i < row.size && std::isfinite(row.values[i])) ++i;
      finding.field = "values";
      finding.place = i;
      finding.description = absl::StrCat(row.values[i], " is not a finite number");
      break;
    }
    default:
      break;
  }
  return finding;
}

}  // namespace perceptrond
