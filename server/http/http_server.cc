#include "server/http/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/sync/mutex.h"
#include "core/sync/thread_name.h"
#include "server/config/endpoint.h"
#include "server/config/logging.h"
#include "server/rpc/workers.h"

namespace perceptrond {
namespace {

// For request line and headers.
constexpr size_t kMaxRequestBytes = 16 << 10;
// Connections beyond kMaxConnections that may exist until others are closed for them.
constexpr unsigned kSpareConnections = 16;
constexpr char kTlsPriorities[] = "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

// What is read of a request before it is handled.
struct Exchange {
  HttpRequest request;
  // Present once the handler has run.
  std::optional<HttpAnswer> answer;
};

void LogMessage(void* /*unused*/, const char* format, va_list arguments) {
  char text[512];
  vsnprintf(text, sizeof text, format, arguments);
  Log(LogLevel::kDebug, "microhttpd", {{"text", text}});
}

std::string Header(MHD_Connection* connection, const char* name) {
  const char* const value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  return value == nullptr ? "" : value;
}

std::string PeerOf(MHD_Connection* connection) {
  const MHD_ConnectionInfo* const info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (info == nullptr || getnameinfo(info->client_addr, sizeof(sockaddr_in6), host, sizeof host,
                                     port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "";
  return absl::StrCat("http:", host, ":", port);
}

MHD_Result AddParameter(void* request, MHD_ValueKind, const char* name, const char* value) {
  static_cast<HttpRequest*>(request)->query.emplace_back(name, value == nullptr ? "" : value);
  return MHD_YES;
}

HttpRequest ReadRequest(MHD_Connection* connection, const char* path, const char* method) {
  HttpRequest request;
  request.method = method;
  request.path = path;
  request.peer = PeerOf(connection);
  request.host = Header(connection, MHD_HTTP_HEADER_HOST);
  request.accept_encoding = Header(connection, MHD_HTTP_HEADER_ACCEPT_ENCODING);
  request.if_none_match = Header(connection, MHD_HTTP_HEADER_IF_NONE_MATCH);
  request.authorization = Header(connection, MHD_HTTP_HEADER_AUTHORIZATION);
  MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, AddParameter, &request);
  return request;
}

MHD_Result Send(MHD_Connection* connection, const HttpAnswer& answer) {
  MHD_Response* const response = MHD_create_response_from_buffer(
      answer.body.size(), const_cast<char*>(answer.body.data()), MHD_RESPMEM_MUST_COPY);
  for (const auto& [name, value] : answer.headers)
    MHD_add_response_header(response, name.c_str(), value.c_str());
  // A connection that is kept would count as one without a request.
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
  const MHD_Result queued =
      MHD_queue_response(connection, static_cast<unsigned>(answer.status), response);
  MHD_destroy_response(response);
  return queued;
}

absl::Status CannotListen(const std::string& address, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("cannot listen for metrics on ", address, ": ", why));
}

// A listening socket.
absl::StatusOr<int> Listen(const std::string& address) {
  const std::optional<std::string> host = HostOf(address);
  if (!host.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("metrics address \"", address, "\" is not HOST:PORT"));
  }
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = address.substr(address.rfind(':') + 1);
  if (const int error = getaddrinfo(host->c_str(), port.c_str(), &hints, &found); error != 0)
    return CannotListen(address, gai_strerror(error));
  // Of a name's addresses that of IPv4, which scrapers expect.
  const addrinfo* chosen = found;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (one->ai_family != AF_INET) continue;
    chosen = one;
    break;
  }
  const int fd = socket(chosen->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  const bool listens = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                       bind(fd, chosen->ai_addr, chosen->ai_addrlen) == 0 && listen(fd, 128) == 0;
  const int error = errno;
  freeaddrinfo(found);
  if (listens) return fd;
  if (fd >= 0) close(fd);
  return CannotListen(address, std::strerror(error));
}

}  // namespace

class HttpServer::Parts {
 public:
  Parts(int listener, HttpHandler handler) : listener_(listener), handler_(std::move(handler)) {}
  ~Parts();

  bool StartDaemon(const TlsFiles* tls);
  int port() const;

 private:
  // In the order in which connections are closed for new ones.
  enum class State : uint8_t { kClosing, kReading, kSending, kHandling };
  struct Connection {
    int fd;
    State state = State::kReading;
    // When it reached this state.
    absl::Time since = absl::Now();
  };

  static void OnConnection(void* parts, MHD_Connection* connection, void** context,
                           MHD_ConnectionNotificationCode what);
  static MHD_Result OnRequest(void* parts, MHD_Connection* connection, const char* path,
                              const char* method, const char* version, const char* upload,
                              size_t* upload_size, void** exchange);
  static void OnCompleted(void* /*parts*/, MHD_Connection* /*connection*/, void** exchange,
                          MHD_RequestTerminationCode /*why*/) {
    delete static_cast<Exchange*>(*exchange);
    *exchange = nullptr;
  }

  void Add(MHD_Connection* connection) ABSL_LOCKS_EXCLUDED(mutex_);
  // A worker begins to handle a connection's request: false if the server stops.
  bool BeginHandling(MHD_Connection* connection) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndHandling(MHD_Connection* connection) ABSL_LOCKS_EXCLUDED(mutex_);
  void SetState(MHD_Connection* connection, State state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has the connection's thread close it.
  static void Close(Connection& connection) {
    shutdown(connection.fd, SHUT_RDWR);
    connection.state = State::kClosing;
  }
  // Closes connections that take too long, and stops daemons that were replaced.
  void Watch() ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes no more connections.
  static void StopListening(MHD_Daemon* daemon) { close(MHD_quiesce_daemon(daemon)); }

  const int listener_;
  const HttpHandler handler_;
  MHD_Daemon* daemon_ = nullptr;
  Mutex mutex_;
  std::map<MHD_Connection*, Connection> connections_ ABSL_GUARDED_BY(mutex_);
  // Replaced daemons, and when they are stopped.
  std::vector<std::pair<MHD_Daemon*, absl::Time>> retired_ ABSL_GUARDED_BY(mutex_);
  int handling_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Workers workers_{kWorkers};
  // The last member, since it uses the others.
  std::thread watch_{[this] { Watch(); }};
};

bool HttpServer::Parts::StartDaemon(const TlsFiles* tls) {
  unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
  std::vector<MHD_OptionItem> options = {
      {MHD_OPTION_LISTEN_SOCKET, fcntl(listener_, F_DUPFD_CLOEXEC, 0), nullptr},
      {MHD_OPTION_CONNECTION_LIMIT, kMaxConnections + kSpareConnections, nullptr},
      {MHD_OPTION_CONNECTION_TIMEOUT, kRequestSeconds, nullptr},
      {MHD_OPTION_CONNECTION_MEMORY_LIMIT, kMaxRequestBytes, nullptr},
      {MHD_OPTION_NOTIFY_CONNECTION, reinterpret_cast<intptr_t>(&OnConnection), this},
      {MHD_OPTION_NOTIFY_COMPLETED, reinterpret_cast<intptr_t>(&OnCompleted), this},
      {MHD_OPTION_EXTERNAL_LOGGER, reinterpret_cast<intptr_t>(&LogMessage), nullptr}};
  if (tls != nullptr) {
    flags |= MHD_USE_TLS;
    options.push_back({MHD_OPTION_HTTPS_MEM_KEY, 0, const_cast<char*>(tls->key.c_str())});
    options.push_back({MHD_OPTION_HTTPS_MEM_CERT, 0, const_cast<char*>(tls->certificates.c_str())});
    options.push_back({MHD_OPTION_HTTPS_PRIORITIES, 0, const_cast<char*>(kTlsPriorities)});
  }
  options.push_back({MHD_OPTION_END, 0, nullptr});
  MHD_Daemon* const daemon = MHD_start_daemon(flags, 0, nullptr, nullptr, &OnRequest, this,
                                              MHD_OPTION_ARRAY, options.data(), MHD_OPTION_END);
  if (daemon == nullptr) return false;
  if (daemon_ != nullptr) {
    StopListening(daemon_);
    MutexLock lock(&mutex_);
    retired_.emplace_back(daemon_, absl::Now() + absl::Seconds(kRequestSeconds));
  }
  daemon_ = daemon;
  return true;
}

HttpServer::Parts::~Parts() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  watch_.join();
  if (daemon_ != nullptr) {
    StopListening(daemon_);
    retired_.emplace_back(daemon_, absl::Now());
  }
  {
    // A daemon cannot be stopped while requests are with the workers.
    const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return handling_ == 0; };
    MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&none));
  }
  for (const auto& [daemon, time] : retired_) MHD_stop_daemon(daemon);
  close(listener_);
}

int HttpServer::Parts::port() const {
  sockaddr_in6 address = {};
  socklen_t size = sizeof address;
  getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  // The port is where an IPv4 address has it, too.
  return ntohs(address.sin6_port);
}

void HttpServer::Parts::OnConnection(void* parts, MHD_Connection* connection, void** /*context*/,
                                     MHD_ConnectionNotificationCode what) {
  Parts& self = *static_cast<Parts*>(parts);
  if (what == MHD_CONNECTION_NOTIFY_STARTED) return self.Add(connection);
  MutexLock lock(&self.mutex_);
  self.connections_.erase(connection);
}

void HttpServer::Parts::Add(MHD_Connection* connection) {
  const int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
  MutexLock lock(&mutex_);
  if (connections_.size() >= kMaxConnections) {
    const auto first = std::min_element(
        connections_.begin(), connections_.end(), [](const auto& one, const auto& other) {
          const auto rank = [](const Connection& c) {
            // Those that close already leave by themselves.
            return std::pair(c.state == State::kClosing ? 9 : static_cast<int>(c.state), c.since);
          };
          return rank(one.second) < rank(other.second);
        });
    Close(first->second);
  }
  connections_[connection] = {.fd = fd};
}

bool HttpServer::Parts::BeginHandling(MHD_Connection* connection) {
  MutexLock lock(&mutex_);
  if (stopping_) return false;
  ++handling_;
  SetState(connection, State::kHandling);
  return true;
}

void HttpServer::Parts::EndHandling(MHD_Connection* connection) {
  {
    MutexLock lock(&mutex_);
    SetState(connection, State::kSending);
  }
  MHD_resume_connection(connection);
  MutexLock lock(&mutex_);
  --handling_;
}

void HttpServer::Parts::SetState(MHD_Connection* connection, State state) {
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  found->second.state = state;
  found->second.since = absl::Now();
}

MHD_Result HttpServer::Parts::OnRequest(void* parts, MHD_Connection* connection, const char* path,
                                        const char* method, const char* /*version*/,
                                        const char* /*upload*/, size_t* upload_size,
                                        void** context) {
  Parts& self = *static_cast<Parts*>(parts);
  // The headers are read; the end of the request is still to come.
  if (*context == nullptr) {
    *context = new Exchange;
    return MHD_YES;
  }
  Exchange& exchange = *static_cast<Exchange*>(*context);
  if (exchange.answer.has_value()) return Send(connection, *exchange.answer);
  // No method of ours has a body: it is not kept.
  if (*upload_size > 0) {
    *upload_size = 0;
    return MHD_YES;
  }
  if (!self.BeginHandling(connection)) return MHD_NO;
  exchange.request = ReadRequest(connection, path, method);
  MHD_suspend_connection(connection);
  self.workers_.Schedule(WorkSize::kManagement, [&self, &exchange, connection] {
    exchange.answer = self.handler_(exchange.request);
    self.EndHandling(connection);
  });
  return MHD_YES;
}

void HttpServer::Parts::Watch() {
  NameThisThread("http watch");
  const auto stopping = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; };
  for (;;) {
    std::vector<MHD_Daemon*> due;
    {
      MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping), absl::Seconds(1))) return;
      const absl::Time now = absl::Now();
      for (auto& [connection, one] : connections_) {
        const bool waits = one.state == State::kReading || one.state == State::kSending;
        if (waits && now - one.since > absl::Seconds(kRequestSeconds)) Close(one);
      }
      // While requests are with the workers they may be one of these daemons'.
      const bool handling = handling_ > 0;
      std::erase_if(retired_, [&](const auto& retired) {
        if (retired.second > now || handling) return false;
        due.push_back(retired.first);
        return true;
      });
    }
    // Not under the lock, which ends of connections take.
    for (MHD_Daemon* const daemon : due) MHD_stop_daemon(daemon);
  }
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address,
                                                              const TlsFiles* tls,
                                                              HttpHandler handler) {
  const absl::StatusOr<int> listener = Listen(address);
  if (!listener.ok()) return listener.status();
  auto parts = std::make_unique<Parts>(*listener, std::move(handler));
  if (!parts->StartDaemon(tls)) return CannotListen(address, "libmicrohttpd does not start");
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(parts)));
}

HttpServer::HttpServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
HttpServer::~HttpServer() = default;

int HttpServer::port() const { return parts_->port(); }

absl::Status HttpServer::UseCertificates(const TlsFiles& tls) {
  if (parts_->StartDaemon(&tls)) return absl::OkStatus();
  return absl::UnavailableError("libmicrohttpd cannot use the TLS files; see --log-level debug");
}

}  // namespace perceptrond
