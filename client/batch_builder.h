// BatchBuilder: builds one ExampleColumns message from rows, in the form the server requires:
// within a row indices ascend strictly, each name is in feature_names once, in order of first
// occurrence, and values are omitted if all are 1.
//
//   BatchBuilder batch;
//   if (absl::Status status = batch.Add(row); !status.ok()) ...
//   v1::ExampleColumns columns;
//   batch.Build(&columns);
//
// Malformed rows are found here, so that one does not fail its batch. All errors are
// INVALID_ARGUMENT with one of these reasons, and leave the batch unchanged:
//   REPEATED_INDEX, REPEATED_NAME  a feature occurs twice in a row (but see Row::adds_repeated_names)
//   BAD_NAME                       a name is empty, longer than 1024 bytes or not UTF-8
//   BAD_TEXT                       a text is longer than 1 MiB or not UTF-8
//   ROW_TOO_LARGE                  the row alone exceeds a message (SetMostBytes)
//   MALFORMED_ROW                  the numbers of features and values differ
//   NON_FINITE_VALUE               a value is NaN or infinite
//   BAD_WEIGHT                     the weight is not positive and finite
//   UNKNOWN_PREDICTION             a prediction id is not UTF-8
//   UNKNOWN_LABEL                  the label is below -1, or its name is too long or not UTF-8
//
// A message has rows of one kind, with labels that are all numbers or all names: check Fits()
// first. Rows without features fit among sparse and named ones, rows without a label among all.
//
// Threads: one at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/feature_sorter.h"
#include "client/name_numbers.h"
#include "client/name_store.h"
#include "client/row.h"
#include "perceptron/v1/example.pb.h"

namespace perceptrond::client {

class BatchBuilder {
 public:
  BatchBuilder() = default;
  BatchBuilder(BatchBuilder&&) = default;
  BatchBuilder& operator=(BatchBuilder&&) = default;

  // Sets the size of the largest message that the server accepts, in bytes. Default 16 MiB, as the server's
  // --max-message-bytes; a number beyond that flag's range counts as its nearest, 64 KiB or 1 GiB.
  void SetMostBytes(size_t bytes) {
    most_bytes_ = std::clamp(bytes, size_t{64} << 10, size_t{1} << 30);
  }

  // True if the row has the kind, dense width and form of label of the rows in the batch, and the message that they
  // make is not too large.
  bool Fits(const Row& row) const;

  // Adds a copy of the row. FAILED_PRECONDITION: Fits(row) is false. INVALID_ARGUMENT: see above.
  // O(f) for f features. A steady stream of rows allocates nothing here.
  absl::Status Add(const Row& row);

  size_t rows() const { return rows_; }
  // The number of different names.
  size_t names() const { return name_count_; }
  bool empty() const { return rows_ == 0; }
  // Estimated size of the message in bytes.
  size_t bytes() const;

  // Moves the batch into *columns and starts the next one. Labels are sent if any row has one; rows
  // without one then have Row::kNoLabel, a validation error in learning.
  void Build(perceptron::v1::ExampleColumns* columns);
  // The same for a MessageEncoder, which gives names the numbers in which they are sent: the
  // indices of named rows are numbers of *numbers, in the order in which they were added, and
  // feature_names is present but empty.
  void BuildUnsorted(perceptron::v1::ExampleColumns* columns, NameNumbers* numbers);

 private:
  // At most what rows may take of a message: its other fields need some.
  size_t most_row_bytes() const { return most_bytes_ - 1024; }
  absl::Status CheckCommon(const Row& row) const;
  bool FitsKind(const Row& row) const;
  void AddLabel(const Row& row);
  absl::Status AddDense(const Row& row);
  absl::Status AddSparse(const Row& row);
  absl::Status AddNamed(const Row& row);
  // A row of which a name occurs twice.
  absl::Status AddRepeated(const Row& row);
  absl::Status AddText(const Row& row);
  absl::Status AddPredictionId(const Row& row);
  // Appends the numbers of the row's names, of which new ones are stored, to the indices.
  absl::Status AppendNumbers(const Row& row);
  // Adds a name that is new to the builder, to its store. INVALID_ARGUMENT: it is malformed, or not
  // new.
  absl::StatusOr<NameStore::Record*> AddName(std::string_view name, NameKey key, uint32_t hash);
  // Forgets that those of the row's first `count` names which are new to the message are in it.
  void RemoveFromMessage(const Row& row, size_t count);
  void AppendValues(const Row& row);
  // Completes all but the names and indices.
  void CloseColumns();
  // Starts the message after `built`.
  void Restart(const perceptron::v1::ExampleColumns& built);

  size_t most_bytes_ = size_t{16} << 20;
  perceptron::v1::ExampleColumns columns_;
  size_t rows_ = 0;
  size_t name_bytes_ = 0;
  bool has_labels_ = false;
  bool has_weights_ = false;
  bool all_ones_ = true;
  NameStore store_;
  // The same names, for NameNumbers; null: none.
  std::shared_ptr<EraNames> era_;
  // The number of different names of this message.
  size_t name_count_ = 0;
  // Count rows and messages in the records of store_.
  uint32_t row_ = 0;
  uint32_t message_ = 1;
  // Of the names of a row.
  std::vector<NameKey> keys_;
  std::vector<uint32_t> hashes_;
  // 1 for the names which are new to the message.
  std::vector<uint32_t> is_new_;
  NumberList list_;
  // A row that repeats names, without the repetitions.
  Row added_up_;
  FeatureSorter sorter_;
  // Positions of label names in columns_.
  absl::flat_hash_map<std::string, int32_t> label_numbers_;
};

}  // namespace perceptrond::client
