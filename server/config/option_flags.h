// The server's flags: help, range, default, and the field of Options that each sets. To add a flag,
// add one entry to the list in option_flags.cc.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "server/config/options.h"

namespace perceptrond {

struct Flag {
  std::string name;
  // The form of its value in --help: "HOST:PORT", "N".
  std::string form;
  std::string help;
  // Whether it may be given more than once.
  bool repeatable = false;
  // Sets the field from the given values. Returns what values are expected if they are invalid, and
  // an empty string otherwise.
  std::function<std::string(const std::vector<std::string>&)> set;
  // The current value in the form of a config file.
  std::function<std::string()> get;
};

// The flags, each bound to its field of `options`, which must outlive them.
std::vector<Flag> MakeFlags(Options* options);

}  // namespace perceptrond
