// BatchBuilder: builds one ExampleColumns message from rows, in the order the server requires:
// within a row indices ascend strictly, feature_names ascend strictly by their bytes, and values
// are omitted if all are 1.
//
//   BatchBuilder batch;
//   if (absl::Status status = batch.Add(row); !status.ok()) ...
//   v1::ExampleColumns columns;
//   batch.Build(&columns);
//
// Malformed rows are found here, so that one does not fail its batch. All errors are
// INVALID_ARGUMENT with one of these reasons, and leave the batch unchanged:
//   REPEATED_INDEX, REPEATED_NAME  a feature occurs twice in a row; values are not summed
//   BAD_NAME                       a name is empty, longer than 1024 bytes or not UTF-8
//   MALFORMED_ROW                  the numbers of features and values differ
//   NON_FINITE_VALUE               a value is NaN or infinite
//   BAD_WEIGHT                     the weight is not positive and finite
//   UNKNOWN_LABEL                  the label is below -1, or its name is too long or not UTF-8
//
// A message has rows of one kind, with labels that are all numbers or all names: check Fits()
// first. Rows without features fit among sparse and named ones, rows without a label among all.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "client/row.h"
#include "perceptron/v1/example.pb.h"

namespace perceptrond::client {

class BatchBuilder {
 public:
  // Whether the row has the kind, dense width and form of label of the rows in the batch.
  bool Fits(const Row& row) const;

  // Adds a copy of the row. FAILED_PRECONDITION: Fits(row) is false. INVALID_ARGUMENT: see above.
  // O(f log f) for f features.
  absl::Status Add(const Row& row);

  size_t rows() const { return rows_; }
  bool empty() const { return rows_ == 0; }
  // Estimated size of the message in bytes.
  size_t bytes() const;

  // Moves the batch into *columns and starts the next one. Labels are sent if any row has one; rows
  // without one then have Row::kNoLabel, a validation error in learning.
  void Build(perceptron::v1::ExampleColumns* columns);

 private:
  bool FitsKind(const Row& row) const;
  void AddLabel(const Row& row);
  absl::Status AddDense(const Row& row);
  absl::Status AddSparse(const Row& row);
  absl::Status AddNamed(const Row& row);
  // Fills scratch_ with (index, position in the row), ascending. INVALID_ARGUMENT if one occurs
  // twice.
  absl::Status SortFeatures(const Row& row);
  void AppendValues(const Row& row, bool in_scratch_order);
  uint32_t Intern(std::string_view name);
  // Renumbers names in ascending order, and the indices of the rows accordingly.
  void SortNames();

  struct Feature {
    uint32_t index;
    uint32_t position;
  };

  perceptron::v1::ExampleColumns columns_;
  size_t rows_ = 0;
  size_t name_bytes_ = 0;
  bool has_labels_ = false;
  bool has_weights_ = false;
  bool all_ones_ = true;
  // Names in order of first occurrence; a deque, because the map's keys point into it.
  std::deque<std::string> names_;
  absl::flat_hash_map<std::string_view, uint32_t> numbers_;
  std::vector<Feature> scratch_;
  // Positions of label names in columns_.
  absl::flat_hash_map<std::string, int32_t> label_numbers_;
};

}  // namespace perceptrond::client
