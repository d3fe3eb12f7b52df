// The rows of one message as the model reads them: checked, with labels, in the space of the
// weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/features/mapper.h"
#include "core/features/names.h"
#include "core/model/model_core.h"
#include "core/settings/settings.h"
#include "core/vector/check.h"
#include "core/vector/name.h"
#include "core/vector/row.h"

namespace perceptrond {

// Reads the labels of one batch: numbers, or names that stand for them. Keeps views of what it is
// given. Not thread-safe.
class LabelReader {
 public:
  LabelReader(const ModelSettings& settings, const Batch& batch);

  // Whether the model has two labels.
  bool two_labels() const { return !settings_.is_multiclass(); }
  // The labels as -1 and +1, and 0 for other names, of a batch with label names.
  std::vector<int32_t> TwoLabels() const;
  // Whether labels are read by names: the batch's, or those of the model's classes.
  bool Resolves() const { return resolves_; }
  // Whether Resolve must be called: there are names, and more of them than at its last call.
  bool Stale(const Dictionary& class_names) const {
    return resolves_ && resolved_size_ != class_names.size();
  }
  // Looks up the batch's names; to be called again when a class was added. O(label names).
  void Resolve(const Dictionary& class_names);

  // Whether row i has a label that the model can learn. (Whether there is room for a new class is
  // decided when the row is learned.) A valid label stays valid while classes are added.
  ValidationCode Check(size_t i) const {
    if (are_signs_)
      return batch_.labels[i] == 1 || batch_.labels[i] == -1 ? ValidationCode::kNone
                                                             : ValidationCode::kUnknownLabel;
    return CheckClassOrName(i);
  }
  // Describes the error that Check found.
  ValidationError Describe(size_t i) const;
  // The label of row i, which Check found valid. For the name of a new class: the next class.
  int32_t Label(size_t i) const {
    if (batch_.label_names.empty()) return batch_.labels[i];
    const int32_t number = numbers_[static_cast<size_t>(batch_.labels[i])];
    return number == kUnknown ? static_cast<int32_t>(resolved_size_) : number;
  }
  // The name of row i's class, if it is new; else empty.
  absl::string_view NewClass(size_t i) const;

 private:
  static constexpr int32_t kUnknown = INT32_MIN;

  ValidationCode CheckClassOrName(size_t i) const;
  // Labels are below it.
  size_t limit() const;

  const ModelSettings& settings_;
  const Batch batch_;
  // Labels are the numbers -1 and +1.
  const bool are_signs_;
  const bool resolves_;
  uint32_t resolved_size_ = static_cast<uint32_t>(-1);
  // The label of each name of the batch.
  std::vector<int32_t> numbers_;
};

// Begins a batch whose features are to be read: CheckColumns and Mapper::Begin. INVALID_ARGUMENT
// naming the field of the columns.
absl::Status BeginBatch(const Batch& batch, Mapper& mapper);

// Example:
//   BatchRows rows(core, batch, row_errors);
//   rows.Begin();                // under no lock
//   rows.Resolve(state);         // under the state's lock, whenever it was acquired
//   if (rows.Check(i, &norm) == ValidationCode::kNone) Learn(rows.Map(i), rows.label(i));
//
// Keeps views of what it is given. Not thread-safe.
class BatchRows {
 public:
  BatchRows(const ModelCore& core, const Batch& batch, std::span<const RowError> row_errors);

  // INVALID_ARGUMENT if the columns are malformed, or labels are missing.
  absl::Status Begin();
  size_t size() const { return batch_.rows(); }
  const Batch& batch() const { return batch_; }

  // Adds the rows that alone cost more than a message may to those with errors, and returns what the others cost to
  // learn. RESOURCE_EXHAUSTED (MESSAGE_TOO_COSTLY). Needs columns that are well formed.
  absl::StatusOr<uint64_t> CheckCost(const ModelCore& core, const Learner& learner);

  // Looks up names of features and labels. O(1), or O(names) if any were added since.
  void Resolve(const ModelState& state);

  // Whether row i can be learned; sets *squared_norm to that of its mapped features if it can.
  ValidationCode Check(size_t i, double* squared_norm);
  // The part of Check that does not concern features: earlier errors, label, weight.
  ValidationCode CheckTarget(size_t i) const;
  // The part of CheckTarget that concerns the label.
  bool has_label(size_t i) const { return labels_.Check(i) == ValidationCode::kNone; }
  // The first row from i on in which reading the batch found an error; size() if there is none.
  size_t NextRowError(size_t i) const;
  // Describes the error that Check found.
  ValidationError Describe(size_t i, ValidationCode code);

  // Counts rows `begin` to `end` - 1, but for those in which reading the batch found an error.
  void CountDocuments(size_t begin, size_t end, DocumentCounter& documents) const;

  // The following are for rows that Check found valid.
  int32_t label(size_t i) const { return labels_.Label(i); }
  float weight(size_t i) const { return batch_.weight(i); }
  // The name of row i's class, if the model does not have it yet; else empty.
  absl::string_view NewClass(size_t i) const { return labels_.NewClass(i); }
  // Row i in the space of the weights. The view is valid until the next Check, Map or Resolve.
  Row Map(size_t i) { return mapper_.Map(i); }
  // The same as it is stored: in a hashed space with ascending indices.
  Row MapInOrder(size_t i) { return mapper_.MapInOrder(i); }
  // In a named space: the names of row i that have no weight, in order. Valid as Map's.
  void UnknownNames(size_t i, std::vector<absl::string_view>& names) {
    mapper_.UnknownNames(i, names);
  }
  // Mapper::AddUnknownNames.
  bool AddUnknownNames(size_t i, uint32_t cap, Dictionary& names, std::vector<std::string>& added) {
    return mapper_.AddUnknownNames(i, cap, names, added);
  }

  // Rows can be scored together, and labels are -1 and +1.
  bool can_scan() const { return mapper_.MapsTogether() && labels_.two_labels(); }
  // Mapper::Together, with labels as numbers. A label that the model does not have is any number.
  const Batch& Together(size_t first, size_t count) { return mapper_.Together(first, count); }
  // Mapper::IsApart.
  bool IsApart(size_t i) const { return mapper_.IsApart(i); }

 private:
  const RowError* FindError(size_t i) const;

  const Batch batch_;
  std::vector<RowError> row_errors_;
  // The labels as numbers, where they have names and there are two.
  std::vector<int32_t> numeric_labels_;
  Mapper mapper_;
  LabelReader labels_;
};

}  // namespace perceptrond
