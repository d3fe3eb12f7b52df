// A description of a command line for manual pages and completions: commands with their options and
// arguments. Read from the CLI11 application that parses the command line and prints --help, so
// that they agree.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace perceptrond::manual {

// What a shell offers for a value.
enum class Kind { kText, kChoice, kFile, kDirectory, kModel, kModelList };

struct Value {
  // Such as "FILE" or "text|json"; empty: the option has no value.
  std::string form;
  Kind kind = Kind::kText;
  // kChoice: all choices. Other kinds: further words to offer, such as "off".
  std::vector<std::string> choices;
  // Number of values.
  int count = 0;
};

struct Option {
  // Names with dashes, short ones first.
  std::vector<std::string> names;
  Value value;
  // Description, unit, range and default, as sentences.
  std::string text;
  // Environment variable; may be empty.
  std::string variable;
  bool repeatable = false;
};

struct Argument {
  std::string name;
  Value value;
  std::string text;
  bool required = false;
  bool repeatable = false;
};

struct Command {
  // "perceptronctl"; for a subcommand "learn".
  std::string name;
  std::string description;
  // The footer of --help.
  std::string footer;
  std::vector<Option> options;
  std::vector<Argument> arguments;
  std::vector<Command> subcommands;
};

// Reads `app` and its subcommands.
Command ReadCommand(const CLI::App& app);

// The options that the command accepts: its own, and those of `program` that it does not redefine.
std::vector<Option> OptionsWithin(const Command& program, const Command& command);

}  // namespace perceptrond::manual
