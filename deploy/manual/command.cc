#include "deploy/manual/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace perceptrond::manual {
namespace {

// A value with more choices is not listed in the heading; the text lists them.
constexpr size_t kMostChoicesInForm = 5;

bool IsWord(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
  });
}

// The literal words in "HOST:PORT|off".
std::vector<std::string> WordsOf(const std::string& form) {
  std::vector<std::string> words = absl::StrSplit(form, '|');
  words.erase(std::remove_if(words.begin(), words.end(),
                             [](const std::string& word) { return !IsWord(word); }),
              words.end());
  return words;
}

Kind KindOf(const std::string& form, const std::vector<std::string>& choices) {
  if (form == "FILE") return Kind::kFile;
  if (form == "DIR") return Kind::kDirectory;
  if (form == "MODEL,...") return Kind::kModelList;
  return choices.empty() ? Kind::kText : Kind::kChoice;
}

// CLI11's type names.
std::string PlainType(const std::string& type) {
  if (type == "UINT" || type == "INT") return "N";
  if (type == "FLOAT") return "NUMBER";
  return type;
}

// The part between `open` and `close` in CLI11's description of a value, such as
// "TEXT:{text,json}".
std::string Between(const std::string& text, const std::string& open, char close) {
  const size_t from = text.find(open);
  if (from == std::string::npos) return "";
  const size_t start = from + open.size();
  return text.substr(start, text.find(close, start) - start);
}

std::string PlainNumber(absl::string_view text) {
  double number = 0;
  if (!absl::SimpleAtod(text, &number) ||
      number != static_cast<double>(static_cast<int64_t>(number)))
    return std::string(text);
  return absl::StrCat(static_cast<int64_t>(number));
}

Value ReadValue(const CLI::Option& option) {
  Value value;
  // Flags, and options that may be given without a value.
  if (option.get_type_size() == 0 || option.get_expected_min() == 0) return value;
  value.count = std::max(1, option.get_expected_min());
  if (!option.get_option_text().empty()) {
    // Options of the server have the form "FILE (Env:...)".
    value.form = option.get_option_text().substr(0, option.get_option_text().find(" (Env:"));
    value.choices = WordsOf(value.form);
    value.kind = KindOf(value.form, value.choices);
    return value;
  }
  const std::string full = option.get_type_name();
  const std::string type = full.substr(0, full.find(':'));
  const std::string set = Between(full, "{", '}');
  if (!set.empty()) value.choices = absl::StrSplit(set, ',');
  value.kind = KindOf(type, value.choices);
  value.form = PlainType(type);
  if (!value.choices.empty() && value.choices.size() <= kMostChoicesInForm)
    value.form = absl::StrJoin(value.choices, "|");
  const bool list = option.get_delimiter() != '\0';
  if (list && !absl::EndsWith(value.form, ",...")) absl::StrAppend(&value.form, ",...");
  if (value.count > 1) {
    const std::string one = value.form;
    for (int i = 1; i < value.count; ++i) absl::StrAppend(&value.form, " ", one);
  }
  return value;
}

// "--a, --b", sorted by name, because CLI11 orders options by address.
std::string Names(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  std::sort(names.begin(), names.end());
  return absl::StrJoin(names, ", ");
}

// Defaults and constraints known to CLI11, as sentences, unless the text has them already.
std::string Conditions(const CLI::Option& option, const Value& value) {
  if (!option.get_option_text().empty()) return "";
  std::vector<std::string> sentences;
  const std::string& text = option.get_description();
  if (value.choices.size() > kMostChoicesInForm)
    sentences.push_back(absl::StrCat("one of ", absl::StrJoin(value.choices, ", ")));
  const std::string full = option.get_type_name();
  const std::vector<std::string> range = absl::StrSplit(Between(full, " in [", ']'), " - ");
  if (range.size() == 2) {
    const std::string stated = absl::StrCat(PlainNumber(range[0]), " to ", PlainNumber(range[1]));
    if (!absl::StrContains(text, stated)) sentences.push_back("from " + stated);
  }
  if (absl::StrContains(full, "NONNEGATIVE")) sentences.emplace_back("at least 0");
  if (!option.get_default_str().empty())
    sentences.push_back(absl::StrCat("default ", option.get_default_str()));
  if (!option.get_needs().empty()) sentences.push_back("only with " + Names(option.get_needs()));
  if (!option.get_excludes().empty())
    sentences.push_back("not with " + Names(option.get_excludes()));
  std::string all = absl::StrJoin(sentences, "; ");
  if (!all.empty()) all.front() = absl::ascii_toupper(all.front());
  return all;
}

// The text on one line, with a full stop.
std::string Sentence(const std::string& text) {
  std::string sentence =
      absl::StrJoin(absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty()), " ");
  if (!sentence.empty() && sentence.back() != '.') sentence += '.';
  return sentence;
}

Option ReadOption(const CLI::Option& from) {
  Option option;
  for (const std::string& name : from.get_snames()) option.names.push_back("-" + name);
  for (const std::string& name : from.get_lnames()) option.names.push_back("--" + name);
  option.value = ReadValue(from);
  option.text = Sentence(from.get_description());
  for (const std::string& name : from.get_lnames()) {
    if (from.check_fname(name)) absl::StrAppend(&option.text, " --", name, " is the opposite.");
  }
  if (const std::string more = Conditions(from, option.value); !more.empty())
    absl::StrAppend(&option.text, " ", more, ".");
  option.variable = from.get_envname();
  // The server's config file, which CLI11 opens before it reads the environment.
  if (option.variable.empty()) option.variable = Between(from.get_option_text(), "(Env:", ')');
  option.repeatable = from.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  return option;
}

Argument ReadArgument(const CLI::Option& from) {
  Argument argument;
  argument.name = from.get_name(true);
  argument.text = Sentence(from.get_description());
  argument.required = from.get_required();
  argument.repeatable = from.get_expected_max() > 1;
  argument.value.form = argument.name;
  argument.value.kind = argument.name == "NAME" ? Kind::kModel : KindOf(argument.name, {});
  return argument;
}

}  // namespace

Command ReadCommand(const CLI::App& app) {
  Command command;
  command.name = app.get_name();
  command.description = std::string(absl::StripAsciiWhitespace(app.get_description()));
  command.footer = std::string(absl::StripAsciiWhitespace(app.get_footer()));
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    if (option->nonpositional()) {
      command.options.push_back(ReadOption(*option));
    } else {
      command.arguments.push_back(ReadArgument(*option));
    }
  }
  for (const CLI::App* subcommand : app.get_subcommands(nullptr))
    command.subcommands.push_back(ReadCommand(*subcommand));
  return command;
}

std::vector<Option> OptionsWithin(const Command& program, const Command& command) {
  std::vector<Option> options = command.options;
  if (&program == &command) return options;
  const auto own = [&](const std::string& name) {
    return std::any_of(command.options.begin(), command.options.end(), [&](const Option& option) {
      return std::count(option.names.begin(), option.names.end(), name) > 0;
    });
  };
  for (const Option& option : program.options) {
    // --version belongs to the program only; the last name is the long one.
    if (option.names.back() != "--version" && !own(option.names.back())) options.push_back(option);
  }
  return options;
}

}  // namespace perceptrond::manual
