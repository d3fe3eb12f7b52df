// Text as the man macros of troff take it.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace perceptrond::manual {

// One line of literal text: nothing in it is a macro, an escape or a typographic quote.
std::string Literal(absl::string_view line);

// Sentences, each on a line of its own as troff wants them, flags in bold.
std::string Prose(absl::string_view text);

std::string Bold(absl::string_view text);
std::string Italic(absl::string_view text);

}  // namespace perceptrond::manual
