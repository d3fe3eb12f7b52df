// What the server's program does besides serving: perceptrond backup, restore, verify, migrate.
#pragma once

#include <string>
#include <vector>

namespace perceptrond {

// Whether the arguments (without the program's name) begin with one of these commands.
bool IsMaintenance(const std::vector<std::string>& args);
// Runs the command; prints what it did to standard output and errors to standard error. Returns the
// exit code: 0, or 1 if it failed or found damage, or 2 for an invalid command line.
int RunMaintenance(const std::vector<std::string>& args);

}  // namespace perceptrond
