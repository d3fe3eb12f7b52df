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
  kNested,
};

// `size` rows a message. The first message names the model and has no rows. Values are left out if
// all are 1, as the client does.
Messages LearnMessages(const Rows& rows, const std::string& model, Form form, size_t size);
// Every message names the model, so that each is a call of its own too.
Messages PredictMessages(const Rows& rows, const std::string& model, Form form, size_t size);

}  // namespace perceptrond::bench
