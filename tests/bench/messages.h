// Rows as the wire's messages.
#pragma once

#include <string>

#include "tests/bench/load.h"
#include "tests/bench/rows.h"

namespace perceptrond::bench {

// How rows are sent: in columns or one by one; by their indices, or by FeatureName of each.
enum class Form {
  kPacked,
  kPackedNames,
  // Names that the stream's first message has put into its table.
  kTableNames,
  // The same with the differences of indices.
  kTableCompact,
  kNested,
  kNestedNames,
  // The names as one text a row, which the server splits. Values are lost.
  kTexts,
  // As kPackedNames, from lines of text that the client reads while it sends. Values are lost.
  kText,
};

// "label<TAB>names", one line a row, with a space between names.
std::vector<std::string> TextLines(const Rows& rows);

// `size` rows a message. The first message names the model and has no rows. Values are left out if
// all are 1, as the client does.
Messages LearnMessages(const Rows& rows, const std::string& model, Form form, size_t size);
// Every message names the model, so that each is a call of its own too.
Messages PredictMessages(const Rows& rows, const std::string& model, Form form, size_t size);

}  // namespace perceptrond::bench
