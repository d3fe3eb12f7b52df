#include "server/config/command_line.h"

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/config/build_info.h"
#include "server/config/config_file.h"
#include "server/config/option_flags.h"

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

}  // namespace

CommandLine::CommandLine(Options* options)
    : app_(
          "perceptrond: a gRPC server that holds perceptrons and learns online from streamed "
          "examples.\n"
          "Each flag may also stand in the environment or in a config file; a flag wins over the\n"
          "environment, the environment over the file. An empty variable counts as not set.\n",
          "perceptrond") {
  std::set<std::string> keys;
  for (const Flag& flag : MakeFlags(options)) {
    AddFlag(flag, &app_);
    keys.insert(flag.name);
  }
  app_.get_formatter()->column_width(6);
  app_.config_formatter(std::make_shared<ConfigFile>(std::move(keys)));
  // The variable is read by ParseOptions: CLI11 opens the file before it looks at the environment.
  app_.set_config("--config", "",
                  "Read settings from this file: lines of flag = value, without the dashes; see\n"
                  "--print-config.\n")
      ->option_text(absl::StrCat("FILE (Env:", EnvironmentName("config"), ")"));
  app_.add_flag("--print-config", print_config_,
                "Print the settings in effect in a config file's form, and exit.\n")
      ->configurable(false);
  app_.set_version_flag("--version", VersionLine(), "Print the version and exit.\n");
}

}  // namespace perceptrond
