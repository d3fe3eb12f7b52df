// The labels of a batch: numbers, or names that stand for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/features/names.h"
#include "core/model/settings.h"
#include "core/vector/check.h"
#include "core/vector/name.h"
#include "core/vector/row.h"

namespace perceptrond {

// Reads the labels of one batch. Keeps views of what it is given. Not thread-safe.
class LabelReader {
 public:
  static constexpr size_t kMaxNameBytes = perceptrond::kMaxNameBytes;

  LabelReader(const ModelSettings& settings, const Batch& batch);

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
    if (two_labels_)
      return batch_.labels[i] == 1 || batch_.labels[i] == -1 ? ValidationCode::kNone
                                                             : ValidationCode::kUnknownLabel;
    return CheckClassOrName(i);
  }
  // Describes the fault that Check found.
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
  const bool two_labels_;
  const bool resolves_;
  uint32_t resolved_size_ = static_cast<uint32_t>(-1);
  // The label of each name of the batch.
  std::vector<int32_t> numbers_;
};

}  // namespace perceptrond
