// A fast parser for the usual JSON forms of perceptron.v1.Example, as JSON libraries write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client/row.h"

namespace perceptrond::client {

// The target of an example. A plain value.
struct JsonTarget {
  enum class Kind { kNone, kLabel, kLabelName };
  Kind kind = Kind::kNone;
  int32_t label = 0;
  std::string label_name;
};

// Parses a line into the features and the weight of *row, which is empty, and *target. False: the
// line may still be an Example, in a form that only protobuf's parser reads (escapes in strings,
// numbers as strings, null, fields given twice or in snake case, ...), or it is malformed; *row and
// *target are then unspecified. Reads what protobuf's parser reads, but rounds numbers once, to
// float. Threads: any.
bool ParseUsualJson(std::string_view line, Row* row, JsonTarget* target);

}  // namespace perceptrond::client
