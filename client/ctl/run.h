// perceptronctl as a function.
#pragma once

namespace perceptrond::client {

// Parses the command line and runs its subcommand. Returns the exit code. To be called once.
int Run(int argc, char** argv);

}  // namespace perceptrond::client
