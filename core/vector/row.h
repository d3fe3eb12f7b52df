// Examples, seen where they lie: one row of features, the form that every learner takes, and a
// batch of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/strings/string_view.h"

namespace perceptrond {

class NameTable;

// Where a sparse row without features points: null indices would make it dense.
inline constexpr uint32_t kNoIndices[1] = {};

// A view of one row, sparse or dense. Owns nothing: the arrays must outlive it. Any thread may read
// it.
struct Row {
  // Sparse: `size` indices. Dense: null, and value i belongs to feature i.
  const uint32_t* indices = nullptr;
  // `size` values, or null: every value is 1.
  const float* values = nullptr;
  size_t size = 0;

  uint32_t index(size_t i) const {
    return indices == nullptr ? static_cast<uint32_t>(i) : indices[i];
  }
  float value(size_t i) const { return values == nullptr ? 1.0F : values[i]; }
};

// Many examples in columns: compressed sparse rows, or dense rows of one width. The form the wire
// delivers and the learner reads, without a copy between. A view: the arrays must
// outlive it. Any thread may read it.
struct Batch {
  // Sparse: where row i ends. Ascending; its last entry is the length of indices.
  std::span<const uint32_t> row_ends;
  std::span<const uint32_t> indices;
  // One an index, or none if every value is 1. Dense: rows() x dense_width.
  std::span<const float> values;
  // One a row, or none (a batch to predict).
  std::span<const int32_t> labels;
  // Not empty: a label is a position in these names.
  std::span<const absl::string_view> label_names;
  // How much each row counts; one a row, or none: each counts 1.
  std::span<const float> weights;
  // Not null: an index is a number in this table. The batch's reader resolves the names in it.
  NameTable* names = nullptr;
  // Not empty: the rows were made from these texts, one a row (core/features/text.h).
  std::span<const absl::string_view> texts;
  // Whoever made the batch knows that indices are below the reader's dimension and that none is
  // twice in a row, in whatever order they are; they are not checked again.
  bool indices_are_checked = false;
  // To predict: a row with a feature that the model has no weight for has a validation error.
  bool refuses_unknown_features = false;
  // > 0: rows are dense; row_ends and indices are empty, and names is null.
  uint32_t dense_width = 0;

  size_t rows() const { return dense_width > 0 ? values.size() / dense_width : row_ends.size(); }
  // Where row i begins in indices and values. O(1).
  size_t row_begin(size_t i) const {
    if (dense_width > 0) return i * dense_width;
    return i == 0 ? 0 : row_ends[i - 1];
  }
  float weight(size_t i) const { return weights.empty() ? 1.0F : weights[i]; }
  Row row(size_t i) const {
    const size_t begin = row_begin(i);
    if (dense_width > 0) return Row{nullptr, values.data() + begin, dense_width};
    return Row{indices.empty() ? kNoIndices : indices.data() + begin,
               values.empty() ? nullptr : values.data() + begin, row_ends[i] - begin};
  }
};

}  // namespace perceptrond
