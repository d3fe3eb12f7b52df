// Completion of a program's command line in the three shells that people use. Each is a template of
// this folder (completion.bash, .zsh, .fish), in whose place @TABLES@ goes what the functions here
// make of the options.
#pragma once

#include <string>

#include "deploy/manual/command.h"

namespace perceptrond::manual {

std::string BashTables(const Command& program);
std::string ZshTables(const Command& program);
std::string FishTables(const Command& program);

// Whether a value anywhere is the name of a model: then the shell asks the server for them.
bool NamesModels(const Command& program);

// "'it'\''s'": one word of a POSIX shell and of zsh.
std::string Quoted(const std::string& text);

// What a shell shows beside an option: its first sentence, as far as it can stand alone.
std::string Brief(const std::string& text);

}  // namespace perceptrond::manual
