// Completion of a program's command line in bash, zsh and fish. Each is a template in this folder
// (completion.bash, .zsh, .fish), whose @TABLES@ is replaced by the output of these functions.
#pragma once

#include <string>

#include "deploy/manual/command.h"

namespace perceptrond::manual {

std::string BashTables(const Command& program);
std::string ZshTables(const Command& program);
std::string FishTables(const Command& program);

// Whether any value is the name of a model; the shell then lists the models of the server.
bool NamesModels(const Command& program);

}  // namespace perceptrond::manual
