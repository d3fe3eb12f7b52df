// perceptronctl: perceptrond's command line.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
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
  CLI::App app(
      "Manages the perceptrons of a perceptrond server: creates them, teaches them from files, "
      "asks them.",
      "perceptronctl");
  Globals globals;
  Action action;
  app.set_version_flag("--version", "perceptronctl " PERCEPTROND_VERSION);
  app.require_subcommand(1);
  app.failure_message(Explain);
  // Global options may also follow the subcommand.
  app.fallthrough();
  app.add_option("--server", globals.server, "The server: HOST, HOST:PORT or unix:PATH")
      ->envname("PERCEPTROND_SERVER")
      ->capture_default_str();
  app.add_option("-o,--output", globals.output, "text for people, json for programs")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.add_option("--timeout", globals.timeout_seconds,
                 "Seconds that a call may take (default 30). learn and predict end after so many "
                 "seconds in which the server owed an answer and none came, reconnecting included "
                 "(default 60); waiting for input does not count. watch has no limit")
      ->check(CLI::Range(0.001, 1e6));
  globals.tls_flags.AddTo(&app);
  app.footer(
      "A first model:\n"
      "  perceptronctl create iris --dimension 4\n"
      "  perceptronctl learn iris iris.svm --index-base 1 --passes 3\n"
      "  perceptronctl predict iris iris.svm --index-base 1\n"
      "\n"
      "Exit codes: 0 all went well; 1 the server said no or could not be reached; 2 wrong usage "
      "or\n"
      "unreadable input; 3 the server refused some examples; 4 no answer within --timeout;\n"
      "130 interrupted (Ctrl-C).\n"
      "Options above work before and after the subcommand. See also: perceptronctl SUBCOMMAND "
      "--help");

  AddCreate(&app, &globals, &action);
  AddList(&app, &globals, &action);
  AddGet(&app, &globals, &action);
  AddUpdate(&app, &globals, &action);
  AddDelete(&app, &globals, &action);
  AddFreeze(&app, &globals, &action);
  AddUnfreeze(&app, &globals, &action);
  AddLearn(&app, &globals, &action);
  AddPredict(&app, &globals, &action);
  AddExplain(&app, &globals, &action);
  AddDraw(&app, &globals, &action);
  AddWatch(&app, &globals, &action);
  AddAnalyze(&app, &globals, &action);
  AddExamples(&app, &globals, &action);
  AddBench(&app, &globals, &action);
  AddHealth(&app, &globals, &action);

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
