// perceptronctl: perceptrond's command line.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "client/ctl/command.h"
#include "client/ctl/output.h"
#include "client/ctl/terminal.h"
#include "client/target.h"
#include "core/report/suggestion.h"

namespace perceptrond::client {
namespace {

// The flags that may follow the subcommands; only those of perceptronctl itself if there is none.
std::vector<std::string> ListFlags(const CLI::App* app) {
  std::vector<std::string> flags;
  std::vector<const CLI::App*> apps = {app};
  for (const CLI::App* command : app->get_subcommands()) apps.push_back(command);
  for (const CLI::App* each : apps) {
    for (const CLI::Option* option : each->get_options()) {
      for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    }
  }
  return flags;
}

// "did you mean --passes? ", or nothing.
std::string Suggestion(const CLI::App* app) {
  std::string nearest;
  for (const std::string& left : app->remaining(true)) {
    if (left.starts_with("--")) {
      nearest = SuggestWord(left.substr(0, left.find('=')), ListFlags(app));
    } else if (app->get_subcommands().empty()) {
      // It opens the journals itself.
      if (left == "migrate" || left == "verify" || left == "restore")
        return absl::StrCat("the server's program has it: perceptrond ", left, "; ");
      std::vector<std::string> commands;
      for (const CLI::App* command : app->get_subcommands({}))
        commands.push_back(command->get_name());
      nearest = SuggestWord(left, commands);
    }
    if (!nearest.empty()) return absl::StrCat("did you mean ", nearest, "? ");
  }
  return "";
}

// Says what the option takes, where CLI11 says only "--dimension = -5".
std::string ExpectedNumber(const CLI::App* app, absl::string_view wrong) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(wrong, absl::MaxSplits(" = ", 1));
  const CLI::Option* const option = app->get_option_no_throw(std::string(parts.first));
  const std::string type = option != nullptr ? option->get_type_name() : "";
  const bool is_whole = parts.second.find_first_not_of("0123456789") == absl::string_view::npos;
  const absl::string_view expected = !type.starts_with("UINT") && !type.starts_with("INT")
                                         ? "a number"
                                     : is_whole                 ? "a smaller number"
                                     : type.starts_with("UINT") ? "a whole number from 0 on"
                                                                : "a whole number";
  return absl::StrCat(parts.first, ": ", parts.second, "; expected ", expected);
}

// The error message for an invalid command line, in the form of the other error messages.
std::string UsageMessage(const CLI::App* app, const CLI::Error& error) {
  const std::vector<CLI::App*> chosen = app->get_subcommands();
  const std::vector<std::string> left = app->remaining();
  const bool unknown = chosen.empty() && !left.empty() && !left.front().starts_with("-");
  std::string what =
      unknown ? absl::StrCat("unknown subcommand ", left.front()) : std::string(error.what());
  const std::string wrong_number = "Could not convert: ";
  if (what.starts_with(wrong_number)) {
    what = ExpectedNumber(chosen.empty() ? app : chosen.front(), what.substr(wrong_number.size()));
  }
  const std::string command = chosen.empty() ? "" : " " + chosen.front()->get_name();
  return absl::StrCat("perceptronctl", chosen.empty() ? "" : ":", command, ": ", what,
                      "\n  hint: ", Suggestion(app), "'perceptronctl", command, " --help' lists ",
                      chosen.empty() ? "the subcommands" : "its options", "\n");
}

// CLI11 reports --help and --version as errors with code 0.
int PrintUsage(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = app.exit(error, out, err);
  Write(stdout, out.str());
  Write(stderr, err.str());
  return code == 0 ? kExitOk : kExitUsage;
}

// A run whose results could not be written has failed.
int CheckWritten(int code) {
  const int error = FlushOutput();
  if (error == 0) return code;
  PrintStderr(absl::StrCat("cannot write to standard output: ",
                           std::generic_category().message(error), "; some results are missing"));
  return code == kExitOk ? kExitFailed : code;
}

// Parses the command line and runs its subcommand. Returns the exit code.
int Run(int argc, char** argv) {
  Globals globals;
  Action action;
  const std::unique_ptr<CLI::App> application = MakeApplication(&globals, &action);
  CLI::App& app = *application;
  app.failure_message(UsageMessage);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return CheckWritten(PrintUsage(app, error));
  }
  SetQuiet(globals.quiet);
  absl::StatusOr<std::string> server = ReadAddresses(globals.server);
  if (!server.ok())
    return PrintUsageError(absl::StrCat("--server: ", std::string(server.status().message())));
  globals.server = *std::move(server);
  absl::StatusOr<std::optional<TlsOptions>> tls = globals.tls_flags.Read();
  if (!tls.ok()) return PrintUsageError(std::string(tls.status().message()));
  globals.tls = *std::move(tls);
  absl::StatusOr<CallMetadata> metadata =
      globals.token_flags.Read(globals.server, globals.tls.has_value());
  if (!metadata.ok()) return PrintUsageError(std::string(metadata.status().message()));
  globals.metadata = *std::move(metadata);
  if (!GoesDirect(globals.server)) NameProxy(ProxyVariable());
  return CheckWritten(action());
}

}  // namespace
}  // namespace perceptrond::client

int main(int argc, char** argv) {
  // Errors already contain what gRPC would log.
  setenv("GRPC_VERBOSITY", "NONE", 0);
  const int code = perceptrond::client::Run(argc, argv);
  // Without exit handlers: OpenSSL's and others free what gRPC's threads, which run on, may be using.
  std::fflush(nullptr);
  _exit(code);
}
