// Flags whose value is a list, as ham,spam.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace perceptrond::client {

// Appends what stands between the commas, each time that the flag is given. Nothing between two of
// them, or at an end, is an error: what was forgotten cannot be known, and to leave it out would
// move the others. `to` must outlive the parsing of `command`.
CLI::Option* AddListFlag(CLI::App* command, const std::string& flag, std::vector<std::string>* to,
                         const std::string& help);
CLI::Option* AddListFlag(CLI::App* command, const std::string& flag, std::vector<double>* to,
                         const std::string& help);

}  // namespace perceptrond::client
