#include "core/journal/jetstream/connection.h"

#include <nats/nats.h>
#include <sys/stat.h>

#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "core/file/read_file.h"
#include "core/sync/thread_name.h"

namespace perceptrond::jetstream {
namespace {

// Reconnecting goes on for as long as the process runs.
constexpr int kForever = -1;
constexpr int64_t kReconnectWaitMs = 250;
constexpr absl::Duration kRefreshInterval = absl::Seconds(1);
// Elections may take longer: then a new connection does no harm.
constexpr std::chrono::seconds kMostAlone{3};
// A stream without a leader answers nothing: it is asked again.
constexpr absl::Duration kAnswerTime = absl::Seconds(2);
// How often the same problem is reported.
constexpr absl::Duration kRepeatInterval = absl::Seconds(30);
// Different ones within that time: subjects may have random parts.
constexpr size_t kMostReported = 20;
constexpr size_t kMaxCredentialsBytes = 64 << 10;
constexpr absl::string_view kJwt = "-----BEGIN NATS USER JWT-----";
// Of libnats's prefix for inboxes, which natsInbox_Create always has.
constexpr absl::string_view kLibraryPrefix = "_INBOX";
// A server that is silent for about four of these is taken for lost, and another one is tried: a
// machine that loses power ends no connection.
constexpr int64_t kPingIntervalMs = 1000;
constexpr int kMaxPingsOut = 3;

struct OptionsDeleter {
  void operator()(natsOptions* options) const { natsOptions_Destroy(options); }
};

absl::Status Unusable(absl::string_view path, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("NATS: ", path, " ", why));
}

// libnats reads a JWT's file by itself, each time that it connects. What the file holds is in no
// error.
absl::Status SetCredentials(const std::string& path, natsOptions* options) {
  const absl::StatusOr<std::string> content =
      ReadFileUpTo(path, kMaxCredentialsBytes, FileKind::kAny);
  if (!content.ok())
    return absl::FailedPreconditionError(absl::StrCat("NATS: ", content.status().message()));
  natsStatus status = NATS_OK;
  if (absl::StrContains(*content, kJwt)) {
    status = natsOptions_SetUserCredentialsFromFiles(options, path.c_str(), nullptr);
  } else {
    const std::string line(absl::StripTrailingAsciiWhitespace(*content));
    const size_t colon = line.find(':');
    if (colon == 0 || colon == std::string::npos || colon + 1 == line.size() ||
        absl::StrContains(line, '\n')) {
      return Unusable(path,
                      "holds neither a user's JWT with its key (a .creds file) nor one line "
                      "USER:PASSWORD");
    }
    status = natsOptions_SetUserInfo(options, line.substr(0, colon).c_str(),
                                     line.substr(colon + 1).c_str());
  }
  return status == NATS_OK ? absl::OkStatus() : Unusable(path, natsStatus_GetText(status));
}

absl::Status SetTls(const ConnectionOptions& from, natsOptions* options) {
  if (from.tls) natsOptions_SetSecure(options, true);
  if (!from.ca_file.empty() &&
      natsOptions_LoadCATrustedCertificates(options, from.ca_file.c_str()) != NATS_OK)
    return Unusable(from.ca_file, "holds no certificate in PEM form, or cannot be read");
  if (!from.certificate_file.empty() &&
      natsOptions_LoadCertificatesChain(options, from.certificate_file.c_str(),
                                        from.key_file.c_str()) != NATS_OK) {
    return Unusable(from.certificate_file,
                    absl::StrCat("and ", from.key_file,
                                 " are not a certificate and its key in PEM form, or cannot be "
                                 "read"));
  }
  return absl::OkStatus();
}

natsStatus Apply(const ConnectionOptions& from, natsOptions* options) {
  std::vector<const char*> servers;
  for (const std::string& server : from.servers) servers.push_back(server.c_str());
  natsStatus status =
      natsOptions_SetServers(options, servers.data(), static_cast<int>(servers.size()));
  const auto set = [&status](natsStatus next) {
    if (status == NATS_OK) status = next;
  };
  set(natsOptions_SetName(options, from.client_name.c_str()));
  set(natsOptions_SetCustomInboxPrefix(options, from.inbox_prefix.c_str()));
  set(natsOptions_SetTimeout(options, absl::ToInt64Milliseconds(from.timeout)));
  set(natsOptions_SetMaxReconnect(options, kForever));
  set(natsOptions_SetReconnectWait(options, kReconnectWaitMs));
  set(natsOptions_SetPingInterval(options, kPingIntervalMs));
  set(natsOptions_SetMaxPingsOut(options, kMaxPingsOut));
  // Without it a full socket would block whoever sends, and the pings.
  set(natsOptions_SetWriteDeadline(options, absl::ToInt64Milliseconds(from.timeout)));
  // An append is waited for.
  set(natsOptions_SetSendAsap(options, true));
  set(natsOptions_SetFailRequestsOnDisconnect(options, true));
  return status;
}

// Of a file that changed; the same for each that cannot be found.
std::string FingerprintOf(const std::string& path) {
  struct stat found = {};
  if (path.empty() || stat(path.c_str(), &found) != 0) return "none;";
  return absl::StrCat(found.st_dev, " ", found.st_ino, " ", found.st_size, " ",
                      found.st_mtim.tv_sec, ".", found.st_mtim.tv_nsec, ";");
}

}  // namespace

void MessageDeleter::operator()(natsMsg* message) const { natsMsg_Destroy(message); }

absl::Status ToAbsl(int status, int js_error, absl::string_view what) {
  absl::StatusCode code = absl::StatusCode::kUnavailable;
  if (status == NATS_NOT_FOUND || js_error == JSStreamNotFoundErr ||
      js_error == JSNoMessageFoundErr)
    code = absl::StatusCode::kNotFound;
  if (status == NATS_CONNECTION_AUTH_FAILED || status == NATS_NOT_PERMITTED)
    code = absl::StatusCode::kUnauthenticated;
  // The library's last error is this call's, unless no answer came.
  const char* const last = status == NATS_TIMEOUT ? nullptr : nats_GetLastError(nullptr);
  return absl::Status(
      code, absl::StrCat("NATS: ", what, ": ", natsStatus_GetText(static_cast<natsStatus>(status)),
                         last == nullptr || *last == '\0' ? "" : absl::StrCat(" (", last, ")"),
                         js_error == 0 ? "" : absl::StrCat(", JetStream error ", js_error)));
}

Link::~Link() {
  if (context != nullptr) jsCtx_Destroy(context);
  if (connection == nullptr) return;
  natsConnection_Close(connection);
  natsConnection_Destroy(connection);
}

// What the cluster refused. Outlives its connection as long as libnats may call.
class Connection::Problems {
 public:
  explicit Problems(std::function<void(absl::string_view)> report) : report_(std::move(report)) {}

  // Has libnats report to `problems`. Its callbacks may come after the connection is closed: they
  // find what they are for by a number.
  static natsStatus Watch(const std::shared_ptr<Problems>& problems, natsOptions* options) {
    Watched& watched = AllWatched();
    MutexLock lock(&watched.mutex);
    std::erase_if(watched.problems, [](const auto& one) { return one.second.expired(); });
    const uintptr_t number = ++watched.last;
    watched.problems[number] = problems;
    return natsOptions_SetErrorHandler(options, &OnError, reinterpret_cast<void*>(number));
  }

  void Report(const std::string& problem) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::Time now = absl::Now();
    MutexLock lock(&mutex_);
    std::erase_if(reported_, [&](const auto& one) { return now - one.second > kRepeatInterval; });
    if (report_ == nullptr || reported_.size() == kMostReported) return;
    if (reported_.emplace(problem, now).second) report_(problem);
  }
  // The last thing that was denied since then; empty if there is none.
  std::string DeniedSince(absl::Time time) const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return denied_at_ >= time ? denied_ : "";
  }

 private:
  struct Watched {
    Mutex mutex;
    uintptr_t last ABSL_GUARDED_BY(mutex) = 0;
    std::map<uintptr_t, std::weak_ptr<Problems>> problems ABSL_GUARDED_BY(mutex);
  };
  // Of the process. Never destroyed: libnats's thread may be the last one.
  static Watched& AllWatched() {
    static auto* const watched = new Watched;
    return *watched;
  }
  static void OnError(natsConnection* /*connection*/, natsSubscription* /*subscription*/,
                      natsStatus status, void* closure) {
    if (status != NATS_NOT_PERMITTED && status != NATS_CONNECTION_AUTH_FAILED) return;
    std::shared_ptr<Problems> problems;
    {
      Watched& watched = AllWatched();
      MutexLock lock(&watched.mutex);
      const auto found = watched.problems.find(reinterpret_cast<uintptr_t>(closure));
      if (found != watched.problems.end()) problems = found->second.lock();
    }
    if (problems == nullptr) return;
    const char* const text = nats_GetLastError(nullptr);
    std::string problem(text == nullptr ? natsStatus_GetText(status) : text);
    if (status == NATS_NOT_PERMITTED) {
      MutexLock lock(&problems->mutex_);
      problems->denied_ = problem;
      problems->denied_at_ = absl::Now();
    }
    problems->Report(problem);
  }

  const std::function<void(absl::string_view)> report_;
  mutable Mutex mutex_;
  std::map<std::string, absl::Time> reported_ ABSL_GUARDED_BY(mutex_);
  std::string denied_ ABSL_GUARDED_BY(mutex_);
  absl::Time denied_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

absl::StatusOr<std::shared_ptr<Connection>> Connection::Open(const ConnectionOptions& options) {
  std::shared_ptr<Connection> connection(
      new Connection(options, std::make_shared<Problems>(options.on_problem)));
  // Before the files are read: what changes meanwhile is read again.
  connection->used_files_ = connection->seen_files_ = connection->Fingerprint();
  absl::StatusOr<std::shared_ptr<Link>> link = connection->Connect();
  if (!link.ok()) return link.status();
  connection->max_payload_ = static_cast<size_t>(natsConnection_GetMaxPayload((*link)->connection));
  {
    MutexLock lock(&connection->mutex_);
    connection->link_ = *std::move(link);
  }
  connection->thread_ = std::thread([raw = connection.get()] { raw->Run(); });
  return connection;
}

Connection::~Connection() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

int MakeContext(__natsConnection* connection, absl::Duration wait, __jsCtx** context) {
  jsOptions options;
  jsOptions_Init(&options);
  options.Wait = absl::ToInt64Milliseconds(wait);
  return natsConnection_JetStream(context, connection, &options);
}

absl::StatusOr<std::shared_ptr<Link>> Connection::Connect() const {
  natsOptions* created = nullptr;
  if (const natsStatus status = natsOptions_Create(&created); status != NATS_OK)
    return ToAbsl(status, 0, "options");
  const std::unique_ptr<natsOptions, OptionsDeleter> nats_options(created);
  if (!options_.credentials_file.empty()) {
    if (absl::Status status = SetCredentials(options_.credentials_file, created); !status.ok())
      return status;
  }
  if (absl::Status status = SetTls(options_, created); !status.ok()) return status;
  natsStatus status = Apply(options_, created);
  if (status == NATS_OK) status = Problems::Watch(problems_, created);
  if (status != NATS_OK) return ToAbsl(status, 0, "options");
  auto link = std::make_shared<Link>();
  const std::string what = absl::StrCat("connecting to ", absl::StrJoin(options_.servers, ", "));
  status = natsConnection_Connect(&link->connection, created);
  if (status == NATS_SSL_ERROR || status == NATS_SECURE_CONNECTION_WANTED) {
    // It stays so until somebody changes files or servers.
    return absl::FailedPreconditionError(ToAbsl(status, 0, what).message());
  }
  if (status == NATS_OK)
    status = static_cast<natsStatus>(MakeContext(link->connection, kAnswerTime, &link->context));
  if (status == NATS_OK) return link;
  const absl::Status why = ToAbsl(status, 0, what);
  // With TLS 1.3 a server that wants a certificate hangs up after the handshake.
  if (status != NATS_PROTOCOL_ERROR || !options_.certificate_file.empty()) return why;
  return absl::Status(why.code(),
                      absl::StrCat(why.message(), "; it may want a certificate (--nats-cert)"));
}

std::string Connection::Fingerprint() const {
  std::string fingerprint;
  for (const std::string& path :
       {options_.credentials_file, options_.ca_file, options_.certificate_file, options_.key_file})
    absl::StrAppend(&fingerprint, FingerprintOf(path));
  return fingerprint;
}

absl::Status Connection::Check() const {
  return natsConnection_Status(link()->connection) == NATS_CONN_STATUS_CONNECTED
             ? absl::OkStatus()
             : absl::UnavailableError("NATS: none of its servers can be reached");
}

std::shared_ptr<Link> Connection::link() const {
  MutexLock lock(&mutex_);
  return link_;
}

void Connection::Run() {
  NameThisThread("nats files");
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kRefreshInterval)) return;
    }
    Refresh();
  }
}

void Connection::OnMajority(bool is_with_it) {
  MutexLock lock(&mutex_);
  if (is_with_it) {
    alone_since_.reset();
  } else if (!alone_since_.has_value()) {
    alone_since_ = std::chrono::steady_clock::now();
  }
}

bool Connection::IsAlone() const {
  MutexLock lock(&mutex_);
  return alone_since_.has_value() && std::chrono::steady_clock::now() - *alone_since_ > kMostAlone;
}

void Connection::Refresh() {
  // Twice the same: nobody writes them any more.
  const std::string files = Fingerprint();
  const bool settled = std::exchange(seen_files_, files) == files;
  const bool changed = settled && files != used_files_;
  const bool alone = IsAlone();
  if (!changed && !alone && !natsConnection_IsClosed(link()->connection)) return;
  absl::StatusOr<std::shared_ptr<Link>> made = Connect();
  if (!made.ok()) {
    // What cannot be reached is not what refuses.
    if (!absl::IsUnavailable(made.status()))
      problems_->Report(std::string(made.status().message()));
    return;
  }
  // Also of files that were still being written, where the old connection was closed.
  const bool renewed = std::exchange(used_files_, files) != files;
  {
    // The old one ends once everybody has left it.
    std::shared_ptr<Link> before = *std::move(made);
    MutexLock lock(&mutex_);
    link_.swap(before);
    alone_since_.reset();
  }
  if (renewed && options_.on_renewed != nullptr) options_.on_renewed();
  if (alone && options_.on_left != nullptr) options_.on_left();
}

std::string Connection::NewInbox() const {
  natsInbox* inbox = nullptr;
  if (natsInbox_Create(&inbox) != NATS_OK) return "";
  const std::string name(absl::StripPrefix(inbox, kLibraryPrefix));
  natsInbox_Destroy(inbox);
  return options_.inbox_prefix + name;
}

absl::Status Connection::Flush() const {
  const natsStatus status =
      natsConnection_FlushTimeout(link()->connection, absl::ToInt64Milliseconds(options_.timeout));
  return status == NATS_OK ? absl::OkStatus() : ToAbsl(status, 0, "sending");
}

std::string Connection::DeniedSince(absl::Time time) const { return problems_->DeniedSince(time); }

absl::Status Connection::Explain(const absl::Status& status, absl::Time since) const {
  const std::string denied = status.ok() ? "" : DeniedSince(since);
  if (denied.empty()) return status;
  return absl::Status(status.code(), absl::StrCat(status.message(), ": ", denied));
}

}  // namespace perceptrond::jetstream
