// perceptronctl's command line as CLI11 holds it: what is parsed, printed by --help, and written up
// in the manual.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "client/ctl/command.h"

namespace perceptrond::client {

// Parsing sets `globals`, and chooses `action`; both must outlive it.
std::unique_ptr<CLI::App> MakeApplication(Globals* globals, Action* action);

}  // namespace perceptrond::client
