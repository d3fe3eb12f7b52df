// Flags of the server, as CLI11 reads them and prints them for --help.
#pragma once

#include <CLI/CLI.hpp>

#include "server/config/options.h"

namespace perceptrond {

// Adds the flag to the command line of `app`. Its fields must outlive `app`.
void AddFlag(const Flag& flag, CLI::App* app);

}  // namespace perceptrond
