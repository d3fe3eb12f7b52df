#include "server/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "server/build_info.h"
#include "server/config_file.h"
#include "server/option_flags.h"

namespace perceptrond {
namespace {

void AddFlag(const Flag& flag, CLI::App* app) {
  const std::string name = "--" + flag.name;
  const auto set = [flag, name](const CLI::results_t& values) {
    const std::string given = absl::StrJoin(values, ",");
    // No name of a file or a host needs them, and the config file could not hold them.
    const bool control =
        absl::c_any_of(given, [](unsigned char c) { return absl::ascii_iscntrl(c); });
    const std::string wrong = control ? "it holds a control character" : flag.set(values);
    if (!wrong.empty()) {
      throw CLI::ValidationError(
          name, absl::StrCat("\"", absl::Utf8SafeCEscape(given), "\" is not valid; ", wrong));
    }
    return true;
  };
  CLI::Option* option = app->add_option(name, set, flag.help + "\n");
  const std::string variable = EnvironmentName(flag.name);
  option->option_text(absl::StrCat(flag.form, " (Env:", variable, ")"))->envname(variable);
  if (flag.repeatable) option->take_all();
}

// "--flag=" means an empty value; CLI11 would take the argument behind it. The environment's config
// file is named first, where no flag names another.
std::vector<std::string> Normalized(const std::vector<std::string>& args) {
  std::vector<std::string> normalized;
  bool config = false;
  for (const std::string& arg : args) {
    const bool empty = absl::StartsWith(arg, "--") && arg.find('=') == arg.size() - 1;
    normalized.push_back(empty ? arg.substr(0, arg.size() - 1) : arg);
    if (empty) normalized.emplace_back();
    config |= arg == "--config" || absl::StartsWith(arg, "--config=");
  }
  if (const char* file = Environment("config"); file != nullptr && !config) {
    normalized.insert(normalized.begin(), {"--config", file});
  }
  return normalized;
}

// What cannot be seen from one flag alone; empty if all is well.
std::string CheckTogether(const Options& options) {
  if (options.tls_cert.empty() != options.tls_key.empty()) {
    return "--tls-cert and --tls-key go together: give both or neither";
  }
  if (!options.tls_client_ca.empty() && options.tls_cert.empty()) {
    return "--tls-client-ca needs --tls-cert and --tls-key";
  }
  return "";
}

ParseResult Exit(int code, std::string out, const std::string& err = "") {
  ParseResult result;
  result.exit_code = code;
  result.out = std::move(out);
  if (!err.empty()) result.err = absl::StrCat("perceptrond: ", err, "\nTry perceptrond --help.\n");
  return result;
}

}  // namespace

ParseResult ParseOptions(const std::vector<std::string>& args) {
  ParseResult result;
  const std::vector<Flag> flags = MakeFlags(&result.options);
  CLI::App app(
      "perceptrond: a gRPC server that holds perceptrons and learns online from streamed "
      "examples.\n"
      "Each flag may also stand in the environment or in a config file; a flag wins over the\n"
      "environment, the environment over the file.\n",
      "perceptrond");
  std::set<std::string> keys;
  for (const Flag& flag : flags) {
    AddFlag(flag, &app);
    keys.insert(flag.name);
  }
  app.get_formatter()->column_width(6);
  app.config_formatter(std::make_shared<ConfigFile>(std::move(keys)));
  // The variable is read by Normalized: CLI11 opens the file before it looks at the environment.
  app.set_config("--config", "",
                 "Read settings from this file: lines of flag = value, without the dashes; see\n"
                 "--print-config.\n")
      ->option_text(absl::StrCat("FILE (Env:", EnvironmentName("config"), ")"));
  bool print_config = false;
  app.add_flag("--print-config", print_config,
               "Print the settings in effect in a config file's form, and exit.\n")
      ->configurable(false);
  app.set_version_flag("--version", VersionLine(), "Print the version and exit.\n");

  // CLI11 reads its arguments from the back.
  std::vector<std::string> reversed = Normalized(args);
  std::reverse(reversed.begin(), reversed.end());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    // Between two flags CLI11 indents the empty line too.
    return Exit(0, absl::StrReplaceAll(app.help(), {{"\n      \n", "\n\n"}}));
  } catch (const CLI::CallForVersion& version) {
    return Exit(0, absl::StrCat(version.what(), "\n"));
  } catch (const CLI::FileError& error) {
    return Exit(2, "", absl::StrCat("--config: ", error.what()));
  } catch (const CLI::Error& error) {
    return Exit(2, "", error.what());
  }
  if (const std::string wrong = CheckTogether(result.options); !wrong.empty()) {
    return Exit(2, "", wrong);
  }
  if (print_config) return Exit(0, ConfigText(result.options));
  return result;
}

std::string ConfigText(const Options& options) {
  Options copy = options;
  const std::vector<Flag> flags = MakeFlags(&copy);
  std::string text;
  for (const Flag& flag : flags) {
    absl::StrAppend(&text, flag.name, " = ", flag.get(), "\n");
  }
  return text;
}

}  // namespace perceptrond
