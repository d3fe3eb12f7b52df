// A command line as a manual and a shell see it: commands, and for each its options and arguments
// with what their values are. Read off the tree that parses the command line and prints --help, so
// that none of them can say something else.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace perceptrond::manual {

// What a shell may offer for a value.
enum class Kind { kText, kChoice, kFile, kDirectory, kModel, kModelList };

struct Value {
  // As in "FILE" or "text|json"; empty: the option takes none.
  std::string form;
  Kind kind = Kind::kText;
  // Of kChoice: all there are. Some words may be offered for other kinds too ("off").
  std::vector<std::string> choices;
  // How many words it takes.
  int count = 0;
};

struct Option {
  // With their dashes, short ones first.
  std::vector<std::string> names;
  Value value;
  // Sentences: what it does, its unit, range and default.
  std::string text;
  // The environment's variable for it, or empty.
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
  // "perceptronctl"; of a subcommand "learn".
  std::string name;
  std::string description;
  // What --help says at its end.
  std::string footer;
  std::vector<Option> options;
  std::vector<Argument> arguments;
  std::vector<Command> subcommands;
};

// `app` and all below it.
Command ReadCommand(const CLI::App& app);

// The options that one may give to it: its own and those of `program` that it does not redefine.
std::vector<Option> OptionsWithin(const Command& program, const Command& command);

}  // namespace perceptrond::manual
