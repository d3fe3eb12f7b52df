// Specifications for zsh's _arguments.
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "deploy/manual/completion.h"

namespace perceptrond::manual {
namespace {

std::string Action(const Command& program, const Value& value) {
  switch (value.kind) {
    case Kind::kText:
      break;
    case Kind::kChoice:
      return absl::StrCat("(", absl::StrJoin(value.choices, " "), ")");
    case Kind::kFile:
      return "_files";
    case Kind::kDirectory:
      return "_files -/";
    case Kind::kModel:
      return absl::StrCat("_", program.name, "_models");
    case Kind::kModelList:
      return absl::StrCat("_sequence _", program.name, "_models");
  }
  // Shows the message only.
  return " ";
}

// Escapes colons, which separate parts of a specification.
std::string Message(const std::string& text) { return absl::StrReplaceAll(text, {{":", "\\:"}}); }

std::string Explanation(const std::string& text) {
  return absl::StrReplaceAll(Brief(text), {{"\\", "\\\\"}, {"[", "\\["}, {"]", "\\]"}});
}

// "(-o --output)--output=[...]:text|json:(text json)", one for each name.
std::string OptionSpecs(const Command& program, const Option& option) {
  const std::string before =
      option.repeatable ? "*" : absl::StrCat("(", absl::StrJoin(option.names, " "), ")");
  std::string after = absl::StrCat("[", Explanation(option.text), "]");
  for (int i = 0; i < option.value.count; ++i) {
    absl::StrAppend(&after, ":", Message(option.value.form), ":", Action(program, option.value));
  }
  std::string specs;
  for (const std::string& name : option.names) {
    const char* const takes = option.value.count == 0 ? "" : name[1] == '-' ? "=" : "+";
    absl::StrAppend(&specs, " \\\n    ", Quoted(absl::StrCat(before, name, takes, after)));
  }
  return specs;
}

std::string ArgumentSpecs(const Command& program, const Command& command) {
  std::string specs;
  for (const Argument& argument : command.arguments) {
    const std::string prefix = argument.repeatable ? "*" : argument.required ? "" : ":";
    absl::StrAppend(&specs, " \\\n    ",
                    Quoted(absl::StrCat(prefix, ":", Message(argument.name), ":",
                                        Action(program, argument.value))));
  }
  return specs;
}

std::string AllSpecs(const Command& program, const Command& command) {
  std::string specs;
  for (const Option& option : OptionsWithin(program, command))
    absl::StrAppend(&specs, OptionSpecs(program, option));
  return specs + ArgumentSpecs(program, command);
}

}  // namespace

std::string ZshTables(const Command& program) {
  if (program.subcommands.empty())
    return absl::StrCat("  _arguments :", AllSpecs(program, program), "\n");
  std::string names;
  std::string cases;
  for (const Command& command : program.subcommands) {
    absl::StrAppend(&names, "\n    ", Quoted(absl::StrCat(command.name, ":", command.description)));
    absl::StrAppend(&cases, "  ", command.name, ")\n  _arguments :", AllSpecs(program, command),
                    "\n    ;;\n");
  }
  return absl::StrCat("  local -a subcommands\n  subcommands=(", names,
                      "\n  )\n  _arguments -C -A '-*' :", AllSpecs(program, program),
                      " \\\n    '1:subcommand:->subcommand' \\\n    '*:: :->rest' && return\n",
                      "  if [[ $state = subcommand ]]; then\n"
                      "    _describe -t commands subcommand subcommands\n"
                      "    return\n"
                      "  fi\n"
                      "  case $line[1] in\n",
                      cases, "  esac\n");
}

}  // namespace perceptrond::manual
