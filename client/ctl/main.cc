// perceptronctl: perceptrond's command line.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "client/ctl/command.h"
#include "client/ctl/output.h"
#include "client/ctl/terminal.h"

namespace perceptrond::client {
namespace {

// The error message for an invalid command line, in the form of the other error messages.
std::string UsageMessage(const CLI::App* app, const CLI::Error& error) {
  const std::vector<CLI::App*> chosen = app->get_subcommands();
  const std::vector<std::string> left = app->remaining();
  const bool unknown = chosen.empty() && !left.empty() && !left.front().starts_with("-");
  const std::string what =
      unknown ? absl::StrCat("unknown subcommand ", left.front()) : std::string(error.what());
  const std::string command = chosen.empty() ? "" : " " + chosen.front()->get_name();
  return absl::StrCat("perceptronctl", chosen.empty() ? "" : ":", command, ": ", what,
                      "\n  hint: 'perceptronctl", command, " --help' lists ",
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
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  PrintStderr("writing to standard output failed: some results are missing");
  return code == kExitOk ? kExitFailed : code;
}

int Main(int argc, char** argv) {
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
  absl::StatusOr<std::optional<TlsOptions>> tls = globals.tls_flags.Read();
  if (!tls.ok()) return PrintUsageError(std::string(tls.status().message()));
  globals.tls = *std::move(tls);
  absl::StatusOr<CallMetadata> metadata =
      globals.token_flags.Read(globals.Address(), globals.tls.has_value());
  if (!metadata.ok()) return PrintUsageError(std::string(metadata.status().message()));
  globals.metadata = *std::move(metadata);
  return CheckWritten(action());
}

}  // namespace
}  // namespace perceptrond::client

int main(int argc, char** argv) {
  // Errors already contain what gRPC would log.
  setenv("GRPC_VERBOSITY", "NONE", 0);
  return perceptrond::client::Main(argc, argv);
}
