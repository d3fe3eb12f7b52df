// Labels in example files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/row.h"

namespace perceptrond::client {

// A plain value.
struct LabelRule {
  // The model's label names, that of -1 first, or the names of its classes in order; may be empty.
  std::vector<std::string> names;
  // Most classes of the model; 0: the labels are -1 and +1.
  uint32_t max_classes = 0;
  // The model adds classes by name: any text is a label name.
  bool new_names = false;
  // 0 means -1. Must be set explicitly, because 0 can also mean "no label".
  bool zero_is_negative = false;
};

// Parses a label of two-label models: a label name, or -1 or 1 in any spelling ("+1", "1.0"). If a
// label name is a number, as with the classes 1 and 2, numbers are names only. INVALID_ARGUMENT:
// not a label.
absl::StatusOr<int> ParseLabel(const LabelRule& rule, std::string_view text);

// Sets the row's label, or label_name if classes are added by name. Labels of multiclass models are
// names, or integers from 0 unless a name is a number. INVALID_ARGUMENT: not a label; the row then
// has none.
absl::Status ReadLabel(const LabelRule& rule, std::string_view text, Row* row);

}  // namespace perceptrond::client
