// Escaping of text for man macros.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace perceptrond::manual {

// A line of literal text, without macros, escapes or typographic quotes.
std::string Literal(absl::string_view line);

// Prose with one sentence per line, as troff expects, and flags in bold.
std::string Prose(absl::string_view text);

std::string Bold(absl::string_view text);
std::string Italic(absl::string_view text);

}  // namespace perceptrond::manual
