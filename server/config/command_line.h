// The server's command line, config file and environment, as CLI11 reads them, prints them for
// --help and documents them in the manual.
#pragma once

#include <CLI/CLI.hpp>
#include <set>
#include <string>
#include <vector>

#include "server/config/options.h"

namespace perceptrond {

// Not thread-safe.
class CommandLine {
 public:
  // Parsing sets `options`, which must outlive this object.
  explicit CommandLine(Options* options);

  CLI::App* app() { return &app_; }
  // Whether --print-config was given.
  bool print_config() const { return print_config_; }

 private:
  CLI::App app_;
  bool print_config_ = false;
};

// The environment variable for a flag: "PERCEPTROND_DATA_DIR" for "data-dir".
std::string EnvironmentName(const std::string& flag);

// The value of that variable; null if it is not set or empty.
const char* Environment(const std::string& flag);

// Variables that begin with PERCEPTROND_, are set, and are not in `known`, in the order of their
// names. Leaves out those of perceptronctl, and those that Kubernetes sets in every container for a
// Service named perceptrond or perceptrond-NAME.
std::vector<std::string> UnknownVariables(const std::set<std::string>& known);

}  // namespace perceptrond
