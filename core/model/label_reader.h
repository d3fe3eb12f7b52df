// Which label a row has: a number, or a name that stands for one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/features/dictionary.h"
#include "core/model/settings.h"
#include "core/vector/batch.h"
#include "core/vector/check.h"
#include "core/vector/name.h"

namespace perceptrond {

// Reads the labels of one batch. Class k of a model with named classes is the name of number k + 1
// in its dictionary of them. Not thread-safe; holds views of what it was given.
class LabelReader {
 public:
  static constexpr size_t kMaxNameBytes = perceptrond::kMaxNameBytes;

  LabelReader(const ModelSettings& settings, const Batch& batch);

  // Whether labels go by names at all, their own or their classes'.
  bool Resolves() const { return resolves_; }
  // Whether Resolve was not called yet with as many names as these, or need not be called.
  bool Stale(const Dictionary& class_names) const {
    return resolves_ && resolved_size_ != class_names.size();
  }
  // Looks the batch's names up; to be called again whenever a class has come up. O(label names).
  void Resolve(const Dictionary& class_names);

  // Whether row i has a label that the model could learn; whether a new class has room is seen when
  // its turn comes. Does not change while classes come up, for names; numbers may become known.
  ValidationCode Check(size_t i) const {
    if (two_labels_)
      return batch_.labels[i] == 1 || batch_.labels[i] == -1 ? ValidationCode::kNone
                                                             : ValidationCode::kUnknownLabel;
    return CheckClassOrName(i);
  }
  // Words for the fault that Check found.
  ValidationError Describe(size_t i) const;
  // The label of row i, with which Check found no fault. A name that is new: the next class.
  int32_t Label(size_t i) const {
    if (batch_.label_names.empty()) return batch_.labels[i];
    const int32_t number = numbers_[static_cast<size_t>(batch_.labels[i])];
    return number == kUnknown ? static_cast<int32_t>(resolved_size_) : number;
  }
  // Row i's name, if it is that of a new class.
  absl::string_view NewClass(size_t i) const;

 private:
  static constexpr int32_t kUnknown = INT32_MIN;

  ValidationCode CheckClassOrName(size_t i) const;
  // One more than the greatest number that a label may be.
  size_t limit() const;

  const ModelSettings& settings_;
  const Batch batch_;
  // -1 and +1 by number: no name to look up.
  const bool two_labels_;
  const bool resolves_;
  uint32_t resolved_size_ = static_cast<uint32_t>(-1);
  // By label name of the batch.
  std::vector<int32_t> numbers_;
};

}  // namespace perceptrond
