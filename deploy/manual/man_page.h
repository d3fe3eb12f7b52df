// Manual pages in man macros.
#pragma once

#include <string>

#include "deploy/manual/command.h"

namespace perceptrond::manual {

struct Release {
  std::string version;
  // YYYY-MM-DD.
  std::string date;
};

// The page of a program or of one of its subcommands. `more`: further sections in man macros.
std::string ManPage(const Command& program, const Command& command, const Release& release,
                    const std::string& more);

// The name of a page: "perceptronctl-learn"; for the program its own name.
std::string PageName(const Command& program, const Command& command);

}  // namespace perceptrond::manual
