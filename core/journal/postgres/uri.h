// How a journal in PostgreSQL is named.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace perceptrond {

// Whether a text has the form of such an address, and not that of a path.
bool IsPostgresUri(absl::string_view text);

// Says what is wrong with the address of a database, as libpq reads it, and repeats nothing secret; empty if nothing is.
// It must hold no password: others may see a process's arguments.
std::string CheckPostgresUri(const std::string& uri);

// Whether a schema may have this name: up to 50 lower-case letters, digits and underscores, of which the first is no digit,
// and not pg_, with which those of PostgreSQL begin.
bool IsSchemaName(absl::string_view text);

}  // namespace perceptrond
