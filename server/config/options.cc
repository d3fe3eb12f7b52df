#include "server/config/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/config/command_line.h"
#include "server/config/option_flags.h"

namespace perceptrond {
namespace {

// Replaces "--flag=" by "--flag" and an empty argument, since CLI11 would take the next argument as
// its value. Adds --config from the environment unless a flag names another file.
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

// Checks flags that depend on one another; returns an error message, or an empty string.
std::string CheckTogether(const Options& options) {
  if (options.tls_cert.empty() != options.tls_key.empty()) {
    return "--tls-cert and --tls-key go together: set both or neither";
  }
  if (!options.tls_client_ca.empty() && options.tls_cert.empty()) {
    return "--tls-client-ca needs --tls-cert and --tls-key: set them too";
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

std::vector<std::string> UnknownSettings(Options& options) {
  std::set<std::string> known = {EnvironmentName("config")};
  for (const Flag& flag : MakeFlags(&options)) known.insert(EnvironmentName(flag.name));
  return UnknownVariables(known);
}

ParseResult WithConfigText(ParseResult result) {
  result.exit_code = 0;
  result.out = ConfigText(result.options);
  for (const std::string& name : result.unknown_variables) {
    absl::StrAppend(&result.err, "perceptrond: the environment variable ",
                    absl::Utf8SafeCEscape(name),
                    " is not a setting and has no effect; perceptrond --help lists all settings\n");
  }
  return result;
}

}  // namespace

ParseResult ParseOptions(const std::vector<std::string>& args) {
  ParseResult result;
  CommandLine line(&result.options);
  CLI::App& app = *line.app();

  // CLI11 reads its arguments from the back.
  std::vector<std::string> reversed = Normalized(args);
  std::reverse(reversed.begin(), reversed.end());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    // CLI11 indents the empty line between two flags.
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
  result.unknown_variables = UnknownSettings(result.options);
  return line.print_config() ? WithConfigText(std::move(result)) : result;
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
