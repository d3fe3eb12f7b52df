// What the subcommands of perceptronctl share. Each has a function that adds it to the application;
// parsing the command line chooses one by setting *action, and main() runs that.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "client/client.h"
#include "client/ctl/flags.h"

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace perceptrond::client {

// Exit codes; the footer of --help and the manual explain them.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitRefused = 3;
inline constexpr int kExitTimeout = 4;
inline constexpr int kExitInterrupted = 130;

struct ExitCode {
  int code;
  const char* meaning;
};
inline constexpr ExitCode kExitCodes[] = {
    {kExitOk, "all went well"},
    {kExitFailed, "the server said no or could not be reached"},
    {kExitUsage, "wrong usage or unreadable input"},
    {kExitRefused, "the server refused some examples"},
    {kExitTimeout, "no answer within --timeout"},
    {kExitInterrupted, "interrupted (Ctrl-C)"},
};

struct Globals {
  std::string server = "127.0.0.1:7600";
  std::string output = "text";
  std::optional<double> timeout_seconds;
  TlsFlags tls_flags;
  // What they came to.
  std::optional<TlsOptions> tls;

  bool json() const { return output == "json"; }
  Client Connect() const;
  // How long a stream may go without an answer, broken connections and all.
  absl::Duration StreamTimeout() const { return absl::Seconds(timeout_seconds.value_or(60)); }
  RetryPolicy StreamRetry() const;
};

// For what is sent to the server in a message: no other text may stand there.
CLI::Validator Utf8();

using Action = std::function<int()>;

// `globals` and `action` must outlive the application.
// The whole command line: what is parsed, printed by --help, and described in the manual. Parsing sets
// `globals` and chooses `action`; both must outlive the application.
std::unique_ptr<CLI::App> MakeApplication(Globals* globals, Action* action);

void AddCreate(CLI::App* app, const Globals* globals, Action* action);
void AddList(CLI::App* app, const Globals* globals, Action* action);
void AddGet(CLI::App* app, const Globals* globals, Action* action);
void AddUpdate(CLI::App* app, const Globals* globals, Action* action);
void AddDelete(CLI::App* app, const Globals* globals, Action* action);
void AddFreeze(CLI::App* app, const Globals* globals, Action* action);
void AddUnfreeze(CLI::App* app, const Globals* globals, Action* action);
void AddLearn(CLI::App* app, const Globals* globals, Action* action);
void AddPredict(CLI::App* app, const Globals* globals, Action* action);
void AddExplain(CLI::App* app, const Globals* globals, Action* action);
void AddDraw(CLI::App* app, const Globals* globals, Action* action);
void AddWatch(CLI::App* app, const Globals* globals, Action* action);
void AddAnalyze(CLI::App* app, const Globals* globals, Action* action);
void AddExamples(CLI::App* app, const Globals* globals, Action* action);
void AddBench(CLI::App* app, const Globals* globals, Action* action);
void AddHealth(CLI::App* app, const Globals* globals, Action* action);

}  // namespace perceptrond::client
