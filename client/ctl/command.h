// The command line of perceptronctl: global options, exit codes, flags that several commands have,
// and one function per subcommand that adds it to the application. Parsing sets *action to the
// chosen subcommand; main() runs it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/connection.h"

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace perceptrond::client {

// Adds a flag whose value is a comma-separated list; each use of the flag appends to *to. An empty
// item is a usage error, because dropping it would shift the items after it. `to` must outlive the
// parsing of `command`.
CLI::Option* AddListFlag(CLI::App* command, const std::string& flag, std::vector<std::string>* to,
                         const std::string& help);
CLI::Option* AddListFlag(CLI::App* command, const std::string& flag, std::vector<double>* to,
                         const std::string& help);

// Adds --batch, the examples of a message, and --compact, how they are sent, with the given defaults.
void AddMessageFlags(CLI::App* command, size_t* batch, bool* compact);

// Accepts numbers in [least, most], both finite. Unlike CLI::Range it does not accept NaN.
CLI::Validator Between(double least, double most);
// Accepts whole numbers from 0. CLI::NonNegativeNumber names the largest double in its error.
CLI::Validator WholeNumber();

// The --tls* flags: how to connect to a server that uses TLS. Must outlive the parsing of `app`.
class TlsFlags {
 public:
  void AddTo(CLI::App* app);
  // The options with the files read; absent if no flag was given. INVALID_ARGUMENT: flags that
  // contradict each other, an unreadable file, a file that is not PEM.
  absl::StatusOr<std::optional<TlsOptions>> Read() const;

 private:
  bool tls_ = false;
  std::string ca_;
  std::string certificate_;
  std::string key_;
  std::string server_name_;
};

// The --token* flags. The token itself is no flag, which everybody on the machine could read. Must
// outlive the parsing of `app`.
class TokenFlags {
 public:
  void AddTo(CLI::App* app);
  // INVALID_ARGUMENT: the file cannot be read; the token would be sent to the server at this address
  // without encryption.
  absl::StatusOr<CallMetadata> Read(const std::string& server, bool encrypted) const;

 private:
  std::string file_;
  bool without_tls_ = false;
};

// Exit codes. The footer of --help lists them.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitRowErrors = 3;
inline constexpr int kExitTimeout = 4;
inline constexpr int kExitNotConverged = 5;
inline constexpr int kExitInterrupted = 130;

struct Globals {
  // Once it is read, as ReadAddresses() returns it.
  std::string server = "127.0.0.1:7600";
  std::string output = "text";
  bool quiet = false;
  std::optional<double> timeout_seconds;
  std::string traceparent;
  TlsFlags tls_flags;
  // The TLS options read from tls_flags; absent: no TLS.
  std::optional<TlsOptions> tls;
  TokenFlags token_flags;
  // Read from token_flags.
  CallMetadata metadata;

  bool json() const { return output == "json"; }
  Client Connect() const;
  // For clients of other services.
  std::shared_ptr<grpc::Channel> ConnectChannel() const;
  // How long a stream waits for an overdue answer, reconnecting included. Default 60 s.
  absl::Duration StreamTimeout() const { return absl::Seconds(timeout_seconds.value_or(60)); }
  RetryPolicy StreamRetry() const;
};

// Checks that an argument is valid UTF-8, as every string in a protobuf message must be.
CLI::Validator Utf8();

using Action = std::function<int()>;

// Builds the whole command line, which main() parses.
// Parsing fills *globals and *action; both must outlive the application.
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
void AddWatch(CLI::App* app, const Globals* globals, Action* action);
void AddAnalyze(CLI::App* app, const Globals* globals, Action* action);
void AddExamples(CLI::App* app, const Globals* globals, Action* action);
void AddBench(CLI::App* app, const Globals* globals, Action* action);
void AddBackup(CLI::App* app, const Globals* globals, Action* action);
void AddAlias(CLI::App* app, const Globals* globals, Action* action);
void AddCopy(CLI::App* app, const Globals* globals, Action* action);
void AddRename(CLI::App* app, const Globals* globals, Action* action);
void AddExport(CLI::App* app, const Globals* globals, Action* action);
void AddImport(CLI::App* app, const Globals* globals, Action* action);
void AddSnapshot(CLI::App* app, const Globals* globals, Action* action);
void AddRollback(CLI::App* app, const Globals* globals, Action* action);
void AddHealth(CLI::App* app, const Globals* globals, Action* action);

}  // namespace perceptrond::client
