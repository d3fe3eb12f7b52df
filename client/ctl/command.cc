#include "client/ctl/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/file/read_file.h"
#include "core/vector/name.h"

namespace perceptrond::client {
namespace {

void Parse(const std::string&, const std::string& part, std::string* to) { *to = part; }

void Parse(const std::string& flag, const std::string& part, double* to) {
  if (!absl::SimpleAtod(part, to))
    throw CLI::ValidationError(flag, absl::StrCat("\"", part, "\" is not a number"));
}

template <typename T>
CLI::Option* Add(CLI::App* command, const std::string& flag, std::vector<T>* to,
                 const std::string& help) {
  const auto append = [flag, to](const std::vector<std::string>& lists) {
    for (const std::string& list : lists) {
      for (const std::string& part : std::vector<std::string>(absl::StrSplit(list, ','))) {
        if (part.empty()) {
          throw CLI::ValidationError(
              flag,
              absl::StrCat("\"", list, "\" has an empty item; separate items by single commas"));
        }
        Parse(flag, part, &to->emplace_back());
      }
    }
  };
  return command->add_option_function<std::vector<std::string>>(flag, append, help)
      ->allow_extra_args(false);
}

}  // namespace

CLI::Option* AddListFlag(CLI::App* command, const std::string& flag, std::vector<std::string>* to,
                         const std::string& help) {
  return Add(command, flag, to, help)->type_name("TEXT,...");
}

CLI::Option* AddListFlag(CLI::App* command, const std::string& flag, std::vector<double>* to,
                         const std::string& help) {
  return Add(command, flag, to, help)->type_name("NUMBER,...");
}

void AddMessageFlags(CLI::App* command, size_t* batch, bool* compact) {
  command->add_option("--batch", *batch, "Examples per message")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command->add_flag("--compact", *compact,
                    "Send fewer bytes for more work: faster over networks of about 1 Gbit/s and "
                    "less");
}

CLI::Validator Between(double least, double most) {
  // %.15g prints all digits of large bounds.
  const std::string from = absl::StrFormat("%.15g", least);
  const std::string to = absl::StrFormat("%.15g", most);
  const auto check = [=](const std::string& text) -> std::string {
    double value = 0;
    // Comparisons with NaN are false, so NaN is out of range.
    if (absl::SimpleAtod(text, &value) && value >= least && value <= most) return "";
    return absl::StrCat(text, " is not a number from ", from, " to ", to);
  };
  // The form CLI::Range uses.
  return CLI::Validator(check, absl::StrCat("FLOAT in [", from, " - ", to, "]"));
}

CLI::Validator WholeNumber() {
  const auto check = [](const std::string& text) -> std::string {
    int64_t number = 0;
    if (absl::SimpleAtoi(text, &number) && number >= 0) return "";
    return absl::StrCat(text, " is not a whole number from 0 to 2^63 - 1");
  };
  return CLI::Validator(check, "NONNEGATIVE");
}

namespace {

// Reads nothing if the path is empty.
absl::Status ReadPem(const char* flag, const std::string& path, std::string* pem) {
  if (path.empty()) return absl::OkStatus();
  absl::StatusOr<std::string> content = ReadFileUpTo(path, kMaxPemBytes, FileKind::kAny);
  if (!content.ok())
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": ", std::string(content.status().message()), "; give a PEM file"));
  *pem = *std::move(content);
  // gRPC would report only that it could not connect.
  if (absl::StrContains(*pem, "-----BEGIN ")) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", path, " is not a PEM file"));
}

}  // namespace

// PERCEPTRONCTL_TLS_* and not PERCEPTROND_TLS_*, which are the server's settings.
void TlsFlags::AddTo(CLI::App* app) {
  app->add_flag(
         "--tls", tls_,
         "Connect with TLS and verify the server's certificate. Implied by the --tls-* options")
      ->envname("PERCEPTRONCTL_TLS");
  app->add_option("--tls-ca", ca_,
                  "PEM file with the certificate authorities to trust (default: the system's)")
      ->type_name("FILE")
      ->envname("PERCEPTRONCTL_TLS_CA");
  app->add_option(
         "--tls-cert", certificate_,
         "PEM file with this client's certificate, if the server asks for one; requires --tls-key")
      ->type_name("FILE")
      ->envname("PERCEPTRONCTL_TLS_CERT");
  app->add_option("--tls-key", key_, "PEM file with this client's private key; requires --tls-cert")
      ->type_name("FILE")
      ->envname("PERCEPTRONCTL_TLS_KEY");
  app->add_option("--tls-server-name", server_name_,
                  "Name in the server's certificate, if it differs from the host in --server")
      ->envname("PERCEPTRONCTL_TLS_SERVER_NAME");
}

absl::StatusOr<std::optional<TlsOptions>> TlsFlags::Read() const {
  if (!tls_ && ca_.empty() && certificate_.empty() && key_.empty() && server_name_.empty()) {
    return std::nullopt;
  }
  if (certificate_.empty() != key_.empty()) {
    return absl::InvalidArgumentError("--tls-cert and --tls-key must be given together");
  }
  TlsOptions options;
  options.server_name = server_name_;
  for (const absl::Status& status :
       {ReadPem("--tls-ca", ca_, &options.root_certificates),
        ReadPem("--tls-cert", certificate_, &options.certificate_chain),
        ReadPem("--tls-key", key_, &options.private_key)}) {
    if (!status.ok()) return status;
  }
  return options;
}

void TokenFlags::AddTo(CLI::App* app) {
  app->add_option("--token-file", file_,
                  "File with the token that the server recognizes this client by; or put the token "
                  "itself in $PERCEPTRONCTL_TOKEN")
      ->type_name("FILE")
      ->envname("PERCEPTRONCTL_TOKEN_FILE");
  app->add_flag("--token-without-tls", without_tls_,
                "Send the token to other machines without TLS too, where others can read it")
      ->envname("PERCEPTRONCTL_TOKEN_WITHOUT_TLS");
}

absl::StatusOr<CallMetadata> TokenFlags::Read(const std::string& server, bool encrypted) const {
  CallMetadata metadata;
  metadata.token_file = file_;
  metadata.token_without_tls = without_tls_;
  const char* const token = std::getenv("PERCEPTRONCTL_TOKEN");
  if (token != nullptr && file_.empty()) metadata.token = token;
  if (metadata.token.empty() && file_.empty()) return metadata;
  if (!file_.empty() && !std::ifstream(file_).is_open())
    return absl::InvalidArgumentError(absl::StrCat("--token-file: cannot read ", file_));
  if (!encrypted && !without_tls_ && !IsLocalAddress(server)) {
    return absl::InvalidArgumentError(
        absl::StrCat("others could read the token on its way to ", server,
                     ": add --tls or --tls-ca, or --token-without-tls"));
  }
  return metadata;
}

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
  return Wrapped(absl::StrCat("Exit codes: ", kExitOk, " success; ", kExitFailed,
                              " the server returned an error or could not be reached; ", kExitUsage,
                              " invalid usage or unreadable input; ", kExitRowErrors,
                              " some examples had validation errors; ", kExitTimeout,
                              " no answer within --timeout; ", kExitNotConverged,
                              " --until-converged ended without convergence; ", kExitInterrupted,
                              " interrupted (Ctrl-C), or 'no' to a question."));
}

void AddGlobals(CLI::App* app, Globals* globals) {
  app->add_option("--server", globals->server,
                  "Address of the server: HOST, HOST:PORT or unix:PATH; or addresses of several "
                  "servers of a fleet, "
                  "separated by commas: the first that answers is used. The default port is 7600")
      ->type_name("ADDRESS")
      ->envname("PERCEPTROND_SERVER")
      ->capture_default_str();
  app->add_option("-o,--output", globals->output,
                  "Format of the output: text to read, json for programs")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app->add_flag("-q,--quiet", globals->quiet,
                "Print only results and errors: no progress, notices, confirmations, nor the text "
                "that sums up learn and predict");
  app->add_option(
         "--timeout", globals->timeout_seconds,
         "Longest wait for an answer, in seconds: for the whole call (default 30); for learn, "
         "predict and bench for each overdue answer, reconnecting included (default 60). "
         "Waiting for input does not count. watch: for a server that is lost (default 60)")
      ->check(Between(0.001, 1e6));
  app->add_option("--traceparent", globals->traceparent,
                  "W3C trace context that this command is a part of; the server's log states it")
      ->envname("TRACEPARENT");
  globals->tls_flags.AddTo(app);
  globals->token_flags.AddTo(app);
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
  AddWatch(app, globals, action);
  AddAnalyze(app, globals, action);
  AddExamples(app, globals, action);
  AddBench(app, globals, action);
  AddBackup(app, globals, action);
  AddAlias(app, globals, action);
  AddCopy(app, globals, action);
  AddRename(app, globals, action);
  AddExport(app, globals, action);
  AddImport(app, globals, action);
  AddSnapshot(app, globals, action);
  AddRollback(app, globals, action);
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
      absl::StrCat("The options above may stand before or after the subcommand. "
                   "'perceptronctl SUBCOMMAND --help' describes each subcommand.\n"
                   "\n"
                   "Examples:\n"
                   "  perceptronctl create iris --dimension 4\n"
                   "  perceptronctl learn iris iris.svm --index-base 1 --passes 3\n"
                   "  perceptronctl predict iris iris.svm --index-base 1\n"
                   "\n",
                   ExitCodes()));
  AddCommands(app.get(), globals, action);
  return app;
}

Client Globals::Connect() const {
  ClientOptions options;
  options.timeout = absl::Seconds(timeout_seconds.value_or(30));
  // A user waits at the prompt: long enough for a restarting server, short for a wrong address.
  options.retry.give_up_after = std::min(options.timeout, absl::Seconds(3));
  options.tls = tls;
  options.metadata = metadata;
  if (!traceparent.empty()) options.metadata.traceparent = [value = traceparent] { return value; };
  return Client(MakeConnection(server, options.tls, options.metadata), options);
}

std::shared_ptr<grpc::Channel> Globals::ConnectChannel() const {
  CallMetadata with = metadata;
  if (!traceparent.empty()) with.traceparent = [value = traceparent] { return value; };
  return MakeChannel(server, tls, with);
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
