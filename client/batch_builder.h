// BatchBuilder: rows in, one ExampleColumns message out, in the order the server asks for: within a
// row indices strictly ascend, feature_names strictly ascend by their bytes, and values are left
// out where every one is 1.
//
// What the server would refuse for its form is refused here, row by row, so that one bad row costs
// neither its batch nor its stream: a feature that occurs twice in a row (REPEATED_INDEX,
// REPEATED_NAME; nothing is summed behind the caller's back), a name that is empty, longer than
// 1024 bytes or not UTF-8 (INVALID_NAME), values and features that differ in number
// (MALFORMED_ROW), a value that is not finite (NON_FINITE_VALUE), a weight that is not above 0
// and finite (BAD_WEIGHT), a label below -1 or a label's name that is longer than 1024 bytes or not
// UTF-8 (UNKNOWN_LABEL). All are INVALID_ARGUMENT; a refused row leaves the batch as it was.
//
// One message holds rows of one kind, whose labels all go by number or all by name: ask Fits()
// first. Rows without any feature fit among sparse and named ones, and those without a label among
// all.
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
  // False iff the row is of another kind (or another dense width), or its label of another form,
  // than the rows already in the batch.
  bool Fits(const Row& row) const;

  // Precondition: Fits(row); else FAILED_PRECONDITION.
  absl::Status Add(const Row& row);

  size_t rows() const { return rows_; }
  bool empty() const { return rows_ == 0; }
  // About what the message will take on the wire.
  size_t bytes() const;

  // Moves the batch into *columns and starts the next. Labels are sent iff any row had one; a row
  // without one among others that have one gets Row::kNoLabel, which the server refuses to learn.
  void Build(perceptron::v1::ExampleColumns* columns);

 private:
  bool FitsKind(const Row& row) const;
  void AddLabel(const Row& row);
  absl::Status AddDense(const Row& row);
  absl::Status AddSparse(const Row& row);
  absl::Status AddNamed(const Row& row);
  // The row's features in scratch_ as (index, position in the row), ascending; INVALID_ARGUMENT if
  // one occurs twice.
  absl::Status SortFeatures(const Row& row);
  void AppendValues(const Row& row, bool in_scratch_order);
  uint32_t Intern(std::string_view name);
  // Numbers names in ascending order and rows' indices accordingly.
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
  // Names by number of first occurrence; a deque so that the map's keys stay where they are.
  std::deque<std::string> names_;
  absl::flat_hash_map<std::string_view, uint32_t> numbers_;
  std::vector<Feature> scratch_;
  // Positions of label names in columns_.
  absl::flat_hash_map<std::string, int32_t> label_numbers_;
};

}  // namespace perceptrond::client
