// Lines for fish's `complete`.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "deploy/manual/completion.h"

namespace perceptrond::manual {
namespace {

std::string FishQuoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

// The completion of a value: -x offers the given words and no file names, -r any value.
std::string Offer(const Command& program, const Value& value) {
  switch (value.kind) {
    case Kind::kText:
      return " -x";
    case Kind::kChoice:
      return absl::StrCat(" -x -a ", FishQuoted(absl::StrJoin(value.choices, " ")));
    case Kind::kFile:
      return " -r -F";
    case Kind::kDirectory:
      return " -x -a '(__fish_complete_directories)'";
    case Kind::kModel:
      return absl::StrCat(" -x -a '(__", program.name, "_models)'");
    case Kind::kModelList:
      return absl::StrCat(" -x -a '(__fish_append , (__", program.name, "_models))'");
  }
  return "";
}

std::string OptionLine(const Command& program, const Option& option, const std::string& when) {
  std::string line = absl::StrCat("complete -c ", program.name, when);
  for (const std::string& name : option.names) {
    if (name[1] == '-') {
      absl::StrAppend(&line, " -l ", name.substr(2));
    } else {
      absl::StrAppend(&line, " -s ", name.substr(1));
    }
  }
  if (!option.value.form.empty()) absl::StrAppend(&line, Offer(program, option.value));
  return absl::StrCat(line, " -d ", FishQuoted(Brief(option.text)), "\n");
}

std::string ArgumentLines(const Command& program, const Command& command) {
  std::string lines;
  for (size_t i = 0; i < command.arguments.size(); ++i) {
    const Argument& argument = command.arguments[i];
    absl::StrAppend(&lines, "complete -c ", program.name, " -n '__", program.name, "_at ",
                    command.name, argument.repeatable ? " -ge " : " -eq ", i, "'",
                    argument.value.kind == Kind::kFile ? " -F" : Offer(program, argument.value),
                    "\n");
  }
  return lines;
}

// "case 'learn:--format' ... echo 1".
std::string CountLines(const Command& command, const std::string& name) {
  std::string lines;
  for (const Option& option : command.options) {
    if (option.value.form.empty()) continue;
    std::vector<std::string> patterns;
    for (const std::string& flag : option.names)
      patterns.push_back(FishQuoted(absl::StrCat(name, ":", flag)));
    absl::StrAppend(&lines, "        case ", absl::StrJoin(patterns, " "), "\n            echo ",
                    option.value.count, "\n");
  }
  return lines;
}

std::string CountFunction(const Command& program) {
  std::string cases;
  for (const Command& command : program.subcommands)
    absl::StrAppend(&cases, CountLines(command, command.name));
  return absl::StrCat("# How many words the value of SUBCOMMAND:FLAG takes.\nfunction __",
                      program.name, "_count\n    switch $argv[1]\n", cases,
                      CountLines(program, "*"),
                      "        case '*'\n            echo 0\n    end\nend\n\n");
}

}  // namespace

std::string FishTables(const Command& program) {
  std::string lines = CountFunction(program);
  absl::StrAppend(&lines, "complete -c ", program.name, " -f\n");
  for (const Command& command : program.subcommands) {
    absl::StrAppend(&lines, "complete -c ", program.name, " -n '__", program.name, "_at \"\"' -a ",
                    command.name, " -d ", FishQuoted(command.description), "\n");
  }
  const std::string anywhere =
      program.subcommands.empty() ? "" : absl::StrCat(" -n '__", program.name, "_at \"\"'");
  for (const Option& option : program.options)
    absl::StrAppend(&lines, OptionLine(program, option, anywhere));
  for (const Command& command : program.subcommands) {
    const std::string when = absl::StrCat(" -n '__", program.name, "_at ", command.name, "'");
    for (const Option& option : OptionsWithin(program, command))
      absl::StrAppend(&lines, OptionLine(program, option, when));
    absl::StrAppend(&lines, ArgumentLines(program, command));
  }
  return lines;
}

}  // namespace perceptrond::manual
