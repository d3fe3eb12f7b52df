// The server's command line as CLI11 holds it: what is parsed, printed by --help, and written up in
// the manual.
#pragma once

#include <CLI/CLI.hpp>

#include "server/config/options.h"

namespace perceptrond {

// Threads: one at a time.
class CommandLine {
 public:
  // Parsing sets `options`, which must outlive it.
  explicit CommandLine(Options* options);

  CLI::App* app() { return &app_; }
  // Whether --print-config was given.
  bool print_config() const { return print_config_; }

 private:
  CLI::App app_;
  bool print_config_ = false;
};

}  // namespace perceptrond
