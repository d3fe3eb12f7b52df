#include "server/config/command_line.h"

#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/report/suggestion.h"
#include "server/access/token.h"
#include "server/config/build_info.h"
#include "server/config/endpoint.h"
#include "server/config/flag_list.h"
#include "server/config/options.h"

namespace perceptrond {
namespace {

// The environment variable for a flag: "PERCEPTROND_DATA_DIR" for "data-dir".
std::string EnvironmentName(const std::string& flag) {
  return absl::StrCat("PERCEPTROND_",
                      absl::AsciiStrToUpper(absl::StrReplaceAll(flag, {{"-", "_"}})));
}

// The value of the environment variable for a flag; null if it is not set or empty.
const char* Environment(const std::string& flag) {
  const char* value = std::getenv(EnvironmentName(flag).c_str());
  return value != nullptr && *value != '\0' ? value : nullptr;
}

// "did you mean data-dir?", or nothing.
std::string DidYouMean(absl::string_view word, const std::vector<std::string>& candidates) {
  const std::string nearest = SuggestWord(word, candidates);
  return nearest.empty() ? "" : absl::StrCat("did you mean ", nearest, "?");
}

// ---- Config file ----

// Reads a config file by CLI11's own parser, and adds what CLI11 2.1 lacks: it would let the file
// take precedence over the environment, ignore unknown keys, and use the first of two values.
class ConfigFile final : public CLI::ConfigBase {
 public:
  ConfigFile(std::set<std::string> keys, std::set<std::string> switches)
      : keys_(std::move(keys)), switches_(std::move(switches)) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

 private:
  static void CheckComment(absl::string_view line);
  static CLI::ConfigError Error(const std::string& message);

  const std::set<std::string> keys_;
  // Keys whose value CLI11 would take for true if it is empty.
  const std::set<std::string> switches_;
};

std::vector<CLI::ConfigItem> ConfigFile::from_config(std::istream& input) const {
  // A device such as /dev/zero has no end.
  constexpr size_t kMaxBytes = 1 << 20;
  std::string text(kMaxBytes + 1, '\0');
  input.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(input.gcount()));
  if (text.size() > kMaxBytes) {
    throw Error(absl::StrCat("the file has more than ", kMaxBytes,
                             " bytes; --print-config shows what a config file is like"));
  }
  for (const absl::string_view line : absl::StrSplit(text, '\n')) CheckComment(line);
  std::istringstream again(text);
  std::vector<CLI::ConfigItem> items = ConfigBase::from_config(again);
  std::set<std::string> seen;
  for (const CLI::ConfigItem& item : items) {
    if (!item.parents.empty() || !keys_.contains(item.name)) {
      const std::string question = DidYouMean(item.name, {keys_.begin(), keys_.end()});
      throw Error(absl::StrCat("unknown key ", item.fullname(), "; ", question,
                               question.empty() ? "" : " ", "--print-config shows all keys"));
    }
    if (!seen.insert(item.name).second) {
      throw Error(absl::StrCat("key ", item.name, " occurs twice; write it once"));
    }
    if (switches_.contains(item.name) && item.inputs == std::vector<std::string>{""})
      throw Error(absl::StrCat("--", item.name, ": \"\" is not valid; expected true or false"));
    for (const std::string& value : item.inputs) {
      if (value.find_first_of("\"'") == 0) {
        throw Error(absl::StrCat("key ", item.name, ": unbalanced quotes, or a # in the value"));
      }
    }
  }
  std::erase_if(items, [](const CLI::ConfigItem& item) { return Environment(item.name); });
  return items;
}

// For CLI11 every '#' starts a comment, which can cut off a value without an error. Here a comment
// must follow a blank, outside quotes; any other '#' is an error.
void ConfigFile::CheckComment(absl::string_view line) {
  absl::ConsumeSuffix(&line, "\r");
  const size_t hash = line.find('#');
  const absl::string_view before = absl::StripLeadingAsciiWhitespace(line.substr(0, hash));
  if (hash == absl::string_view::npos || before.empty() || before.front() == ';') return;
  const auto count = [&](char c) { return std::count(before.begin(), before.end(), c); };
  const bool blank = absl::ascii_isspace(before.back());
  const bool closed = count('"') % 2 == 0 && count('\'') % 2 == 0;
  if (blank && closed && (count('"') == 0 || count('\'') == 0)) return;
  const absl::string_view key = before.substr(0, before.find('='));
  throw Error(absl::StrCat("key ", absl::StripTrailingAsciiWhitespace(key),
                           ": unbalanced quotes, or a # in the value"));
}

CLI::ConfigError ConfigFile::Error(const std::string& message) {
  return CLI::ConfigError("--config: " + message, CLI::ExitCodes::ConfigError);
}

// ---- Flags and environment ----

constexpr char kDescription[] =
    R"(perceptrond: a gRPC server of perceptron models that learn online from streams of examples.

To try it without files: perceptrond --journal memory. It serves gRPC on 127.0.0.1:7600, and metrics
and a status page on http://127.0.0.1:7601. Use perceptronctl to create models and send examples.

Every flag can also be set by an environment variable or in a config file. A flag takes precedence
over the environment, and the environment over the file. An empty variable counts as not set.
SIGTERM and SIGINT stop the server once in-flight calls are answered. Config file, certificates and
access file are read again on SIGHUP and within three seconds of a change; of the config file
log-level, log-format and slow-call take effect then.

Without a server: perceptrond backup FROM BACKUPS, perceptrond restore BACKUPS TO, perceptrond
verify FROM, and perceptrond migrate FROM TO; each has --help.
)";

}  // namespace

void AddFlag(const Flag& flag, CLI::App* app) {
  const std::string name = "--" + flag.name;
  const auto set = [flag, name](const CLI::results_t& values) {
    const std::string given = absl::StrJoin(values, ",");
    // No value needs control characters, and a config file could not hold them.
    const bool control =
        absl::c_any_of(given, [](unsigned char c) { return absl::ascii_iscntrl(c); });
    const std::string wrong = control ? "it holds a control character" : flag.set(values);
    if (!wrong.empty()) {
      throw CLI::ValidationError(name, NotValid(given, wrong));
    }
    return true;
  };
  CLI::Option* option = app->add_option(name, set, flag.help + "\n");
  const std::string variable = EnvironmentName(flag.name);
  option->option_text(absl::StrCat(flag.form, flag.form.empty() ? "" : " ", "(Env:", variable, ")"))
      ->envname(variable);
  if (flag.repeatable) option->take_all();
  // CLI11 passes the default for a flag that is given without a value.
  if (flag.is_switch) option->expected(0, 1)->default_str("true");
}

namespace {

// The command line, config file and environment. Parsing sets `options`, which must outlive it.
class CommandLine {
 public:
  explicit CommandLine(Options* options);

  CLI::App* app() { return &app_; }
  // Returns true if --print-config was given.
  bool print_config() const { return print_config_; }
  // The file of --new-token; empty if it was not given.
  const std::string& new_token() const { return new_token_; }

 private:
  CLI::App app_;
  bool print_config_ = false;
  std::string new_token_;
};

CommandLine::CommandLine(Options* options) : app_(kDescription, "perceptrond") {
  std::set<std::string> keys;
  std::set<std::string> switches;
  for (const Flag& flag : MakeFlags(options)) {
    AddFlag(flag, &app_);
    keys.insert(flag.name);
    if (flag.is_switch) switches.insert(flag.name);
  }
  app_.get_formatter()->column_width(6);
  app_.config_formatter(std::make_shared<ConfigFile>(std::move(keys), std::move(switches)));
  // ParseOptions reads the variable, since CLI11 opens the file before it reads the environment.
  app_.set_config(
          "--config", "",
          "Config file: lines of NAME = VALUE, with the names of the flags without dashes.\n"
          "--print-config shows the form.\n")
      ->option_text(absl::StrCat("FILE (Env:", EnvironmentName("config"), ")"));
  app_.add_flag("--print-config", print_config_,
                "Print all settings in the form of a config file, and exit.\n")
      ->configurable(false);
  app_.add_option(
          "--new-token", new_token_,
          "Write a new random token to this file, which only you can read, print the line of\n"
          "the access file that it is recognized by, and exit.\n")
      ->option_text("FILE")
      ->configurable(false);
  app_.set_version_flag("--version", VersionLine(), "Print the version and exit.\n");
}

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
  if (options.metrics_tls && options.tls_cert.empty()) {
    return "--metrics-tls needs --tls-cert and --tls-key: set them too";
  }
  const int fleet_files = (options.fleet_cert.empty() ? 0 : 1) +
                          (options.fleet_key.empty() ? 0 : 1) + (options.fleet_ca.empty() ? 0 : 1);
  if (fleet_files % 3 != 0)
    return "--fleet-cert, --fleet-key and --fleet-ca go together: set all or none";
  const bool open_fleet = options.journal == JournalKind::kPostgres && fleet_files == 0;
  if (open_fleet && (!options.access_file.empty() || !options.tls_client_ca.empty())) {
    return absl::StrCat("with ", options.access_file.empty() ? "--tls-client-ca" : "--access-file",
                        " the servers of a fleet must know one another: add --fleet-cert, "
                        "--fleet-key and --fleet-ca");
  }
  const bool is_advertised = !options.fleet_advertise.empty();
  const std::string& advertised = is_advertised ? options.fleet_advertise : options.fleet_address;
  if (options.journal == JournalKind::kPostgres && IsWildcard(advertised)) {
    return absl::StrCat(is_advertised ? "--fleet-advertise " : "--fleet-address ", advertised,
                        " does not tell the other servers of the fleet where this one is: set "
                        "--fleet-advertise to an address of this machine that they reach");
  }
  const bool in_postgres = options.journal == JournalKind::kPostgres;
  switch (options.durability) {
    case DurabilityChoice::kReplicated:
    case DurabilityChoice::kExternal:
      if (in_postgres) break;
      return "--durability replicated and external need --journal postgres://...";
    case DurabilityChoice::kInterval:
    case DurabilityChoice::kNone:
      if (!in_postgres) break;
      return "--durability interval and none are not for --journal postgres://...: its "
             "servers acknowledge what the others are to have. Leave it out, or set it to sync, "
             "replicated or external";
    default:
      break;
  }
  if (options.insecure) return "";
  if (open_fleet && !IsLoopback(options.fleet_address)) {
    return absl::StrCat("other machines can reach --fleet-address ", options.fleet_address,
                        ": add --fleet-cert, --fleet-key and --fleet-ca; or --insecure, if all who "
                        "reach it may do everything");
  }
  const bool secured =
      !options.tls_cert.empty() && (!options.access_file.empty() || !options.tls_client_ca.empty());
  for (const std::string& address : options.addresses) {
    if (IsLoopback(address) || secured) continue;
    return absl::StrCat("other machines can reach --address ", address, ": add ",
                        options.tls_cert.empty() ? "--tls-cert and --tls-key, and " : "",
                        "--access-file or --tls-client-ca; or --insecure, if all its callers may "
                        "do everything");
  }
  const bool is_open = !options.metrics_tls || options.access_file.empty();
  if (!options.metrics_address.empty() && !IsLoopback(options.metrics_address) && is_open) {
    return absl::StrCat("other machines can reach --metrics-address ", options.metrics_address,
                        ": add --metrics-tls and --access-file; or --insecure, if all who "
                        "reach it may read all models");
  }
  return "";
}

// A suggestion for a flag or a command that is not known.
std::string DidYouMean(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  for (const std::string& left : app.remaining()) {
    const bool is_flag = absl::StartsWith(left, "--");
    std::string question = is_flag ? DidYouMean(left.substr(0, left.find('=')), flags)
                                   : DidYouMean(left, {"backup", "restore", "verify", "migrate"});
    if (!question.empty()) return "; " + question;
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

// Makes a token, and the line for the access file.
ParseResult NewToken(const std::string& path) {
  TokenDigest digest;
  if (const absl::Status status = WriteNewToken(path, digest); !status.ok())
    return Exit(2, "", absl::StrCat("--new-token: ", status.message()));
  return Exit(0, absl::StrCat("token_sha256: \"", FormatDigest(digest), "\"\n"));
}

// Returns true if Kubernetes sets the variable for a Service. The names are NAME_SERVICE_HOST,
// NAME_SERVICE_PORT[_PORTNAME], and those of Docker links, whose values are the service's URL or a
// part of it: NAME_PORT, NAME_PORT_7600_TCP, NAME_PORT_7600_TCP_ADDR, ..._PORT and ..._PROTO.
bool IsKubernetesVariable(absl::string_view name, absl::string_view value) {
  if (absl::EndsWith(name, "_SERVICE_HOST") || absl::EndsWith(name, "_SERVICE_PORT") ||
      absl::StrContains(name, "_SERVICE_PORT_")) {
    return true;
  }
  if (!absl::StrContains(name, "_PORT")) return false;
  for (const absl::string_view protocol : {"tcp", "udp", "sctp"}) {
    const std::string part = absl::StrCat("_", absl::AsciiStrToUpper(protocol), "_");
    if (absl::StartsWith(value, absl::StrCat(protocol, "://"))) return true;
    if (absl::StrContains(name, "_PORT_") && absl::StrContains(name, part)) return true;
  }
  return false;
}

// Variables that begin with PERCEPTROND_, are set, and are not in `known`, in the order of their
// names. Leaves out those of perceptronctl, and those that Kubernetes sets in every container for a
// Service named perceptrond or perceptrond-NAME. Not while another thread sets a variable.
std::vector<std::string> UnknownVariables(const std::set<std::string>& known) {
  std::set<std::string> unknown;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::pair<std::string, std::string> variable =
        absl::StrSplit(*entry, absl::MaxSplits('=', 1));
    const auto& [name, value] = variable;
    if (absl::StartsWith(name, "PERCEPTROND_") && !value.empty() && !known.contains(name) &&
        name != "PERCEPTROND_SERVER" && !IsKubernetesVariable(name, value)) {
      unknown.insert(name);
    }
  }
  return {unknown.begin(), unknown.end()};
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
  } catch (const CLI::ArgumentMismatch& error) {
    return Exit(2, "",
                absl::StrReplaceAll(error.what(), {{": 1 required  missing", " needs a value"}}));
  } catch (const CLI::ExtrasError& error) {
    return Exit(2, "", absl::StrCat(error.what(), DidYouMean(app)));
  } catch (const CLI::Error& error) {
    return Exit(2, "", error.what());
  }
  if (!line.new_token().empty()) return NewToken(line.new_token());
  if (const std::string wrong = CheckTogether(result.options); !wrong.empty()) {
    return Exit(2, "", wrong);
  }
  const CLI::Option* const config = app.get_config_ptr();
  if (config->count() > 0) result.config_file = config->results().back();
  result.unknown_variables = UnknownSettings(result.options);
  return line.print_config() ? WithConfigText(std::move(result)) : result;
}

std::vector<std::string> ChangedFlags(const Options& before, const Options& after) {
  Options old_options = before;
  Options new_options = after;
  const std::vector<Flag> old_flags = MakeFlags(&old_options);
  const std::vector<Flag> new_flags = MakeFlags(&new_options);
  std::vector<std::string> changed;
  for (size_t i = 0; i < old_flags.size(); ++i) {
    if (old_flags[i].get() != new_flags[i].get()) changed.push_back(old_flags[i].name);
  }
  return changed;
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
