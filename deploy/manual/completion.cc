#include "deploy/manual/completion.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace perceptrond::manual {
namespace {

bool IsModel(const Value& value) {
  return value.kind == Kind::kModel || value.kind == Kind::kModelList;
}

// The text quoted as one word for POSIX shells and zsh: "'it'\''s'".
std::string Quoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

// The description that a shell shows for an option: its first sentence, shortened if possible.
std::string Brief(const std::string& text) {
  std::string brief = text.substr(0, std::min(text.find("; "), text.find(". ")));
  if (!brief.empty() && brief.back() == '.') brief.pop_back();
  return brief;
}

}  // namespace

bool NamesModels(const Command& program) {
  const auto is_model = [](const auto& part) { return IsModel(part.value); };
  return std::any_of(program.options.begin(), program.options.end(), is_model) ||
         std::any_of(program.arguments.begin(), program.arguments.end(), is_model) ||
         std::any_of(program.subcommands.begin(), program.subcommands.end(), NamesModels);
}

// ---- bash: functions that set `reply` ----

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

// ---- zsh: specifications for its _arguments ----

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

// ---- fish: lines for its `complete` ----

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

std::string FishArgumentLines(const Command& program, const Command& command) {
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
    absl::StrAppend(&lines, FishArgumentLines(program, command));
  }
  return lines;
}

}  // namespace perceptrond::manual
