// The server's command line, config file and environment, as CLI11 reads them, prints them for
// --help and documents them in the manual.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

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
  // The file of --new-token; empty if it was not given.
  const std::string& new_token() const { return new_token_; }

 private:
  CLI::App app_;
  bool print_config_ = false;
  std::string new_token_;
};

// Adds the flag to the command line of `app`. Its fields must outlive `app`.
void AddFlag(const Flag& flag, CLI::App* app);

// The environment variable for a flag: "PERCEPTROND_DATA_DIR" for "data-dir".
std::string EnvironmentName(const std::string& flag);

}  // namespace perceptrond
