// Tables for bash: functions that set `reply`.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "deploy/manual/completion.h"

namespace perceptrond::manual {
namespace {

const char* KindName(Kind kind) {
  switch (kind) {
    case Kind::kText:
      return "text";
    case Kind::kChoice:
      return "choice";
    case Kind::kFile:
      return "file";
    case Kind::kDirectory:
      return "directory";
    case Kind::kModel:
      return "model";
    case Kind::kModelList:
      return "models";
  }
  return "";
}

// "reply=(choice text json)".
std::string Reply(const Value& value) {
  std::string words = KindName(value.kind);
  for (const std::string& choice : value.choices) absl::StrAppend(&words, " ", choice);
  return absl::StrCat("reply=(", words, ")");
}

std::string FlagsLine(const Command& program, const Command& command, const std::string& name) {
  std::vector<std::string> flags;
  for (const Option& option : OptionsWithin(program, command))
    flags.insert(flags.end(), option.names.begin(), option.names.end());
  return absl::StrCat("    ", Quoted(name), ") reply=(", absl::StrJoin(flags, " "), ") ;;\n");
}

// The cases of one command's options; "*" stands for every command.
std::string ValueLines(const Command& command, const std::string& name) {
  std::string lines;
  for (const Option& option : command.options) {
    if (option.value.form.empty()) continue;
    std::vector<std::string> patterns;
    for (const std::string& flag : option.names) patterns.push_back(name + ":" + flag);
    absl::StrAppend(&lines, "    ", absl::StrJoin(patterns, " | "), ") count=", option.value.count,
                    " ", Reply(option.value), " ;;\n");
  }
  return lines;
}

std::string ArgumentLines(const Command& command) {
  std::string lines;
  for (size_t i = 0; i < command.arguments.size(); ++i) {
    const Argument& argument = command.arguments[i];
    absl::StrAppend(&lines, "    ", command.name, ":",
                    argument.repeatable ? std::string("*") : absl::StrCat(i), ") ",
                    Reply(argument.value), " ;;\n");
  }
  return lines;
}

std::string Function(const Command& program, const std::string& name, const std::string& comment,
                     const std::string& on, const std::string& lines) {
  return absl::StrCat("# ", comment, "\n_", program.name, "_", name, "() {\n  reply=()\n  case ",
                      on, " in\n", lines, "  esac\n}\n\n");
}

}  // namespace

std::string BashTables(const Command& program) {
  std::string commands;
  std::string flags = FlagsLine(program, program, "");
  std::string values;
  std::string arguments;
  for (const Command& command : program.subcommands) {
    absl::StrAppend(&commands, commands.empty() ? "" : " ", command.name);
    absl::StrAppend(&flags, FlagsLine(program, command, command.name));
    absl::StrAppend(&values, ValueLines(command, command.name));
    absl::StrAppend(&arguments, ArgumentLines(command));
  }
  absl::StrAppend(&values, ValueLines(program, "*"), "    *) count=0 ;;\n");
  if (arguments.empty()) arguments = "    *) ;;\n";
  return absl::StrCat(
      "_", program.name, "_subcommands=(", commands, ")\n\n",
      Function(program, "flags", "The flags of a subcommand.", "$1", flags),
      Function(program, "value", "What kind of value, of how many words, SUBCOMMAND:FLAG takes.",
               "$1", values),
      Function(program, "argument", "What SUBCOMMAND:PLACE is, places being counted from 0.", "$1",
               arguments));
}

}  // namespace perceptrond::manual
