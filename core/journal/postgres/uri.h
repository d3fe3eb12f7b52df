// The address of a journal in PostgreSQL.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace perceptrond {

// Whether a text is to be such an address, and no path.
bool IsPostgresUri(absl::string_view text);

// What is wrong with the address of a database, as libpq reads it; empty: nothing. It must hold no password: others may
// see a process's arguments. Repeats nothing secret.
std::string CheckPostgresUri(const std::string& uri);

}  // namespace perceptrond
