// Pages of the manual, in the man macros of troff.
#pragma once

#include <string>

#include "deploy/manual/command.h"

namespace perceptrond::manual {

struct Release {
  std::string version;
  // YYYY-MM-DD.
  std::string date;
};

// The page of a program, or of one of its subcommands. `more` is appended as it is: sections that
// no command line knows, in the macros themselves.
std::string ManPage(const Command& program, const Command& command, const Release& release,
                    const std::string& more);

// "perceptronctl-learn"; of the program itself its name.
std::string PageName(const Command& program, const Command& command);

}  // namespace perceptrond::manual
