// The server's flags: each with its help, its range and the field it sets. A new flag is one line
// in option_flags.cc.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "server/config/options.h"

namespace perceptrond {

struct Flag {
  std::string name;
  // What its value looks like, for --help.
  std::string form;
  std::string help;
  // May be given more than once.
  bool repeatable = false;
  // Takes the values given; returns what is wrong with them, or nothing.
  std::function<std::string(const std::vector<std::string>&)> set;
  // The current value, as a config file has it.
  std::function<std::string()> get;
};

// The flags, each bound to its field of `options`, which must outlive them.
std::vector<Flag> MakeFlags(Options* options);

}  // namespace perceptrond
