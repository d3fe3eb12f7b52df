// Which labels a file may use, and what they mean.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/row.h"

namespace perceptrond::client {

struct LabelRule {
  // The model's label names, that of -1 first, or its classes' in their order; empty if it has
  // none.
  std::vector<std::string> names;
  // How many classes it may have; 0: the two labels -1 and +1.
  uint32_t max_classes = 0;
  // Classes may come up by name: whatever a label says is its name.
  bool new_names = false;
  // 0 means -1. Not guessed: in files with 0 and 1 it usually does, but 0 may also mean "no label".
  bool zero_is_negative = false;
};

// -1 or +1. Names come first; else the numbers -1 and 1 in any spelling ("+1", "1.0"), unless a
// name is a number too, as in a set with the classes 1 and 2: then a number is a name or nothing.
// INVALID_ARGUMENT for all others.
absl::StatusOr<int> ParseLabel(const LabelRule& rule, std::string_view text);

// Sets the row's label, or its label_name where classes may come up by name. Of several classes: a
// name, else a whole number from 0, unless a name is a number too. INVALID_ARGUMENT, and the row
// has no label.
absl::Status ReadLabel(const LabelRule& rule, std::string_view text, Row* row);

}  // namespace perceptrond::client
