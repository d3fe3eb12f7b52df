// Which labels a file may use, and what they mean.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace perceptrond::client {

struct LabelRule {
  // The model's label names, that of -1 first; empty if it has none.
  std::vector<std::string> names;
  // 0 means -1. Not guessed: in files with 0 and 1 it usually does, but 0 may also mean "no label".
  bool zero_is_negative = false;
};

// -1 or +1. Names come first; else the numbers -1 and 1 in any spelling ("+1", "1.0"), unless a
// name is a number too, as in a set with the classes 1 and 2: then a number is a name or nothing.
// INVALID_ARGUMENT for all others.
absl::StatusOr<int> ParseLabel(const LabelRule& rule, std::string_view text);

}  // namespace perceptrond::client
