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

// CLI11's words, as everything else that is said here.
std::string Explain(const CLI::App* app, const CLI::Error& error) {
  const std::vector<CLI::App*> chosen = app->get_subcommands();
  const std::vector<std::string> left = app->remaining();
  const bool unknown = chosen.empty() && !left.empty() && !left.front().starts_with("-");
  const std::string what =
      unknown ? absl::StrCat("there is no subcommand ", left.front()) : std::string(error.what());
  const std::string command = chosen.empty() ? "" : " " + chosen.front()->get_name();
  return absl::StrCat("perceptronctl", chosen.empty() ? "" : ":", command, ": ", what,
                      "\n  hint: 'perceptronctl", command, " --help' says what there is\n");
}

// Help and version come as "errors" with code 0. What the command line says is part of the message.
int ExplainUsage(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = app.exit(error, out, err);
  Write(stdout, out.str());
  Write(stderr, err.str());
  return code == 0 ? kExitOk : kExitUsage;
}

// Results that did not get to where they were sent are none.
int CheckWritten(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  Complain("not all results could be written to standard output");
  return code == kExitOk ? kExitFailed : code;
}

int Main(int argc, char** argv) {
  Globals globals;
  Action action;
  const std::unique_ptr<CLI::App> application = MakeApplication(&globals, &action);
  CLI::App& app = *application;
  app.failure_message(Explain);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return CheckWritten(ExplainUsage(app, error));
  }
  absl::StatusOr<std::optional<TlsOptions>> tls = globals.tls_flags.Read();
  if (!tls.ok()) return PrintUsageError(std::string(tls.status().message()));
  globals.tls = *std::move(tls);
  return CheckWritten(action());
}

}  // namespace
}  // namespace perceptrond::client

int main(int argc, char** argv) {
  // What gRPC would log stands in the error as well.
  setenv("GRPC_VERBOSITY", "NONE", 0);
  return perceptrond::client::Main(argc, argv);
}
