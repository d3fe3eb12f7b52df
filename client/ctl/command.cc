#include "client/ctl/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/ctl/flags.h"
#include "core/vector/name.h"

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
  app->add_option("--server", globals->server,
                  "Address of the server: HOST, HOST:PORT or unix:PATH. The default port is 7600")
      ->type_name("ADDRESS")
      ->envname("PERCEPTROND_SERVER")
      ->capture_default_str();
  app->add_option("-o,--output", globals->output,
                  "Format of the output: text to read, json for programs")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app->add_option(
         "--timeout", globals->timeout_seconds,
         "Longest wait for an answer, in seconds: for the whole call (default 30); for learn, "
         "predict and bench for each overdue answer, reconnecting included (default 60). "
         "Waiting for input does not count. watch has no limit")
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
      "Command-line client of perceptrond: creates models, trains them from files, predicts, and "
      "shows how far each model is from convergence.",
      "perceptronctl");
  app->set_version_flag("--version", "perceptronctl " PERCEPTROND_VERSION);
  app->require_subcommand(1);
  // Global options may also follow the subcommand.
  app->fallthrough();
  AddGlobals(app.get(), globals);
  app->footer(
      absl::StrCat("Examples:\n"
                   "  perceptronctl create iris --dimension 4\n"
                   "  perceptronctl learn iris iris.svm --index-base 1 --passes 3\n"
                   "  perceptronctl predict iris iris.svm --index-base 1\n"
                   "\n",
                   ExitCodes(),
                   "\n\n"
                   "The options above may stand before or after the subcommand. "
                   "'perceptronctl SUBCOMMAND --help' describes each subcommand."));
  AddCommands(app.get(), globals, action);
  return app;
}

Client Globals::Connect() const {
  ClientOptions options;
  options.timeout = absl::Seconds(timeout_seconds.value_or(30));
  // A user waits at the prompt: long enough for a restarting server, short for a wrong address.
  options.retry.give_up_after = std::min(options.timeout, absl::Seconds(3));
  options.tls = tls;
  // Without a port gRPC would connect to port 443.
  const bool bare = server.find(':') == std::string::npos;
  return Client::Connect(bare ? server + ":7600" : server, options);
}

CLI::Validator Utf8() {
  const auto check = [](const std::string& text) {
    return IsValidUtf8(text) ? "" : std::string("not valid UTF-8: ") + text;
  };
  return CLI::Validator(check, "");
}

RetryPolicy Globals::StreamRetry() const {
  RetryPolicy retry;
  retry.give_up_after = StreamTimeout();
  // Short waits, so that a run gives up at the stated time and not up to a full backoff later.
  retry.max_backoff = absl::Seconds(1);
  return retry;
}

}  // namespace perceptrond::client
