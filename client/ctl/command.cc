#include "client/ctl/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/ctl/flags.h"
#include "client/utf8.h"

namespace perceptrond::client {
namespace {

// Lines of at most 100 characters.
std::string Wrapped(const std::string& text) {
  constexpr size_t kColumns = 100;
  std::string lines;
  size_t column = 0;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    const bool fits = column + 1 + word.size() <= kColumns;
    if (column > 0) lines += fits ? ' ' : '\n';
    column = column > 0 && fits ? column + 1 + word.size() : word.size();
    absl::StrAppend(&lines, word);
  }
  return lines;
}

std::string ExitCodes() {
  std::string text = "Exit codes:";
  for (const ExitCode& exit : kExitCodes)
    absl::StrAppend(&text, text.back() == ':' ? " " : "; ", exit.code, " ", exit.meaning);
  return Wrapped(text + ".");
}

void AddGlobals(CLI::App* app, Globals* globals) {
  app->add_option("--server", globals->server, "The server: HOST, HOST:PORT or unix:PATH")
      ->type_name("ADDRESS")
      ->envname("PERCEPTROND_SERVER")
      ->capture_default_str();
  app->add_option("-o,--output", globals->output, "text for people, json for programs")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app->add_option("--timeout", globals->timeout_seconds,
                  "Seconds that a call may take (default 30). learn and predict end after so many "
                  "seconds in which the server owed an answer and none came, reconnecting included "
                  "(default 60); waiting for input does not count. watch has no limit")
      ->check(Between(0.001, 1e6));
  globals->tls_flags.AddTo(app);
}

void AddCommands(CLI::App* app, const Globals* globals, Action* action) {
  AddCreate(app, globals, action);
  AddList(app, globals, action);
  AddGet(app, globals, action);
  AddUpdate(app, globals, action);
  AddDelete(app, globals, action);
  AddFreeze(app, globals, action);
  AddUnfreeze(app, globals, action);
  AddLearn(app, globals, action);
  AddPredict(app, globals, action);
  AddExplain(app, globals, action);
  AddDraw(app, globals, action);
  AddWatch(app, globals, action);
  AddAnalyze(app, globals, action);
  AddExamples(app, globals, action);
  AddBench(app, globals, action);
  AddHealth(app, globals, action);
}

}  // namespace

std::unique_ptr<CLI::App> MakeApplication(Globals* globals, Action* action) {
  auto app = std::make_unique<CLI::App>(
      "Manages the perceptrons of a perceptrond server: creates them, teaches them from files, "
      "asks them.",
      "perceptronctl");
  app->set_version_flag("--version", "perceptronctl " PERCEPTROND_VERSION);
  app->require_subcommand(1);
  // Global options may also follow the subcommand.
  app->fallthrough();
  AddGlobals(app.get(), globals);
  app->footer(
      absl::StrCat("A first model:\n"
                   "  perceptronctl create iris --dimension 4\n"
                   "  perceptronctl learn iris iris.svm --index-base 1 --passes 3\n"
                   "  perceptronctl predict iris iris.svm --index-base 1\n"
                   "\n",
                   ExitCodes(),
                   "\n\n"
                   "These options work before and after the subcommand. See also: perceptronctl "
                   "SUBCOMMAND --help"));
  AddCommands(app.get(), globals, action);
  return app;
}

Client Globals::Connect() const {
  ClientOptions options;
  options.timeout = absl::Seconds(timeout_seconds.value_or(30));
  // Somebody is waiting at the prompt: a server that restarts is worth a moment, a wrong address is
  // not.
  options.retry.give_up_after = std::min(options.timeout, absl::Seconds(3));
  options.tls = tls;
  // gRPC would take a name alone for port 443, or 0.
  const bool bare = server.find(':') == std::string::npos;
  return Client::Connect(bare ? server + ":7600" : server, options);
}

CLI::Validator Utf8() {
  const auto check = [](const std::string& text) {
    return IsValidUtf8(text) ? "" : std::string("no valid UTF-8: ") + text;
  };
  return CLI::Validator(check, "");
}

RetryPolicy Globals::StreamRetry() const {
  RetryPolicy retry;
  retry.give_up_after = StreamTimeout();
  // Giving up is a matter of the time stated, not of a wait that would end just after it.
  retry.max_backoff = absl::Seconds(1);
  return retry;
}

}  // namespace perceptrond::client
