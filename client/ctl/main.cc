// perceptronctl: perceptrond's command line.
#include <algorithm>

#include "client/ctl/command.h"

namespace perceptrond::client {

Client Globals::Connect() const {
  ClientOptions options;
  options.timeout = absl::Seconds(timeout_seconds);
  // Somebody is waiting at the prompt: a server that restarts is worth a moment, a wrong address is
  // not.
  options.retry.give_up_after = std::min(options.timeout, absl::Seconds(3));
  return Client::Connect(server, options);
}

namespace {

int Main(int argc, char** argv) {
  CLI::App app(
      "Manages the perceptrons of a perceptrond server: creates them, teaches them from files, "
      "asks them.",
      "perceptronctl");
  Globals globals;
  Action action;
  app.set_version_flag("--version", "perceptronctl " PERCEPTROND_VERSION);
  app.require_subcommand(1);
  // Global options may also follow the subcommand.
  app.fallthrough();
  app.add_option("--server", globals.server, "The server: HOST:PORT or unix:PATH")
      ->envname("PERCEPTROND_SERVER")
      ->capture_default_str();
  app.add_option("-o,--output", globals.output, "text for people, json for programs")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.add_option("--timeout", globals.timeout_seconds, "Seconds that a call may take")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  app.footer(
      "A first model:\n"
      "  perceptronctl create iris --dimension 4\n"
      "  perceptronctl learn iris iris.svm --index-base 1 --passes 3\n"
      "  perceptronctl predict iris iris.svm --index-base 1\n"
      "\n"
      "Exit codes: 0 all went well; 1 the server said no or could not be reached; 2 wrong usage "
      "or\n"
      "unreadable input; 3 the server refused some examples; 130 interrupted (Ctrl-C).\n"
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
  AddWatch(&app, &globals, &action);
  AddHealth(&app, &globals, &action);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version come as "errors" with code 0.
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  return action();
}

}  // namespace
}  // namespace perceptrond::client

int main(int argc, char** argv) { return perceptrond::client::Main(argc, argv); }
