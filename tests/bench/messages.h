// Rows as the wire's messages.
#pragma once

#include <string>

#include "tests/bench/load.h"
#include "tests/bench/rows.h"

namespace perceptrond::bench {

enum class Form { kPacked, kNested };

// `size` rows a message. The first message names the model and has no rows.
Messages LearnMessages(const Rows& rows, const std::string& model, Form form, size_t size);
// Every message names the model, so that each is a call of its own too.
Messages PredictMessages(const Rows& rows, const std::string& model, size_t size);

}  // namespace perceptrond::bench
