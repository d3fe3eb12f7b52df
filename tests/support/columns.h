// Batches that own their columns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/features/name_table.h"
#include "core/features/text.h"
#include "core/vector/row.h"
#include "tests/support/svmlight.h"

namespace perceptrond::testing {

// Sparse or dense columns, filled row by row. The views given out hold until the next Add.
class Columns {
 public:
  Columns() = default;
  explicit Columns(const std::vector<SvmExample>& examples) {
    for (const SvmExample& one : examples) Add(one.indices, one.values, one.label);
  }
  // Rows `begin` to `end` - 1.
  Columns(const std::vector<SvmExample>& examples, size_t begin, size_t end) {
    for (size_t i = begin; i < std::min(end, examples.size()); ++i)
      Add(examples[i].indices, examples[i].values, examples[i].label);
  }

  Columns& Add(const std::vector<uint32_t>& indices, const std::vector<float>& values,
               int32_t label) {
    indices_.insert(indices_.end(), indices.begin(), indices.end());
    values_.insert(values_.end(), values.begin(), values.end());
    row_ends_.push_back(static_cast<uint32_t>(indices_.size()));
    labels_.push_back(label);
    return *this;
  }
  Columns& AddDense(const std::vector<float>& values, int32_t label) {
    dense_width_ = static_cast<uint32_t>(values.size());
    values_.insert(values_.end(), values.begin(), values.end());
    labels_.push_back(label);
    return *this;
  }

  Batch batch() const {
    Batch batch;
    batch.row_ends = row_ends_;
    batch.indices = indices_;
    batch.values = values_;
    batch.labels = labels_;
    batch.dense_width = dense_width_;
    return batch;
  }
  Batch unlabelled() const {
    Batch batch = this->batch();
    batch.labels = {};
    return batch;
  }

 private:
  std::vector<uint32_t> row_ends_;
  std::vector<uint32_t> indices_;
  std::vector<float> values_;
  std::vector<int32_t> labels_;
  uint32_t dense_width_ = 0;
};

// One text, as a row of a text space; of another space, a row without features.
class TextColumns {
 public:
  TextColumns(absl::string_view text, int32_t label, const FeatureSpace& space) : label_{label} {
    if (!space.text.has_value()) return;
    texts_ = {text};
    TextReader reader;
    (void)reader.Read(text, *space.text, space.size, kMaxBatchGrams, indices_, values_);
    row_ends_ = {static_cast<uint32_t>(indices_.size())};
  }
  Batch batch() const {
    Batch batch;
    batch.row_ends = row_ends_;
    batch.indices = indices_;
    batch.values = values_;
    batch.labels = label_;
    batch.texts = texts_;
    return batch;
  }

 private:
  std::vector<absl::string_view> texts_;
  std::vector<uint32_t> row_ends_ = {0};
  std::vector<uint32_t> indices_;
  std::vector<float> values_;
  std::vector<int32_t> label_;
};

// One example by names.
struct NamedExample {
  std::vector<std::pair<std::string, float>> features;
  int32_t label = 0;
};

// Named columns: the batch's names are those its rows use, and any others given, in the order of
// their bytes.
class NamedColumns {
 public:
  explicit NamedColumns(const std::vector<NamedExample>& examples,
                        const std::vector<std::string>& other_names = {}) {
    std::set<std::string> all(other_names.begin(), other_names.end());
    for (const NamedExample& example : examples) {
      for (const auto& [name, value] : example.features) all.insert(name);
    }
    names_.assign(all.begin(), all.end());
    for (const std::string& name : names_) {
      text_ += name;
      lengths_.push_back(static_cast<uint32_t>(name.size()));
    }
    error_ = table_.Append(text_, lengths_);
    for (const NamedExample& example : examples) Add(example);
  }
  NamedColumns(const NamedColumns&) = delete;
  NamedColumns& operator=(const NamedColumns&) = delete;

  Batch batch() const {
    Batch batch = columns_.batch();
    batch.names = &table_;
    return batch;
  }
  // Why the names cannot be read.
  const ValidationError& error() const { return error_; }

 private:
  void Add(const NamedExample& example) {
    std::vector<std::pair<uint32_t, float>> row;
    for (const auto& [name, value] : example.features) {
      const auto at = std::lower_bound(names_.begin(), names_.end(), name);
      row.emplace_back(static_cast<uint32_t>(at - names_.begin()), value);
    }
    std::sort(row.begin(), row.end());
    std::vector<uint32_t> indices;
    std::vector<float> values;
    for (const auto& [index, value] : row) {
      indices.push_back(index);
      values.push_back(value);
    }
    columns_.Add(indices, values, example.label);
  }

  std::vector<std::string> names_;
  std::string text_;
  std::vector<uint32_t> lengths_;
  mutable NameTable table_;
  ValidationError error_;
  Columns columns_;
};

}  // namespace perceptrond::testing
