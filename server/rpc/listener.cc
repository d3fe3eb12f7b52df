#include "server/rpc/listener.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/time/clock.h"
#include "core/sync/thread_name.h"
#include "server/config/logging.h"

namespace perceptrond {
namespace {

// Connections accepted on one socket before the others get a turn.
constexpr int kMaxAcceptsInTurn = 64;
// The time between two runs of Options::on_second.
constexpr absl::Duration kInterval = absl::Seconds(1);
constexpr absl::Duration kLogInterval = absl::Minutes(1);
// Unacknowledged for this long, sent data means that the peer is gone; gRPC's own default.
constexpr int kUserTimeoutMilliseconds = 20000;

void Watch(int epoll, int descriptor, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.fd = descriptor;
  epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

int OpenSpare() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

}  // namespace

Listener::Listener(std::vector<ListeningSocket> sockets, Connections& connections,
                   Watchdog& watchdog, Options options)
    : sockets_(std::move(sockets)),
      connections_(connections),
      watchdog_(watchdog),
      options_(std::move(options)) {}

Listener::~Listener() { Stop(); }

void Listener::Start(std::unique_ptr<GrpcAcceptor> acceptor) {
  acceptor_ = std::move(acceptor);
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  stop_ = eventfd(0, EFD_CLOEXEC);
  spare_ = OpenSpare();
  Watch(epoll_, stop_, EPOLLIN);
  for (const ListeningSocket& socket : sockets_) Watch(epoll_, socket.descriptor(), EPOLLIN);
  thread_ = std::thread([this] {
    NameThisThread("listener");
    Run();
  });
}

void Listener::Stop() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    static_cast<void>(write(stop_, &one, sizeof one));
    thread_.join();
  }
  sockets_.clear();
  for (int* const descriptor : {&epoll_, &stop_, &spare_}) {
    if (*descriptor >= 0) close(std::exchange(*descriptor, -1));
  }
}

void Listener::Run() {
  std::array<epoll_event, 64> events;
  absl::Time next = absl::Now() + kInterval;
  for (;;) {
    const int64_t wait = absl::ToInt64Milliseconds(next - absl::Now()) + 1;
    const int count = epoll_wait(epoll_, events.data(), events.size(),
                                 static_cast<int>(std::clamp<int64_t>(wait, 0, 1000)));
    for (int i = 0; i < count; ++i) {
      const int descriptor = events[static_cast<size_t>(i)].data.fd;
      if (descriptor == stop_) return;
      AcceptAll(descriptor);
    }
    if (absl::Now() < next) continue;
    next = absl::Now() + kInterval;
    if (!accepting_) SetAccepting(true);
    options_.on_second();
    LogRefused();
  }
}

void Listener::LogRefused() {
  const std::array<uint64_t, kRefusalReasons> refused = connections_.stats().refused;
  if (refused == logged_refused_ || absl::Now() < next_log_) return;
  std::vector<LogField> fields;
  for (size_t i = 0; i < refused.size(); ++i) {
    if (refused[i] == logged_refused_[i]) continue;
    fields.emplace_back(RefusalReasonName(static_cast<RefusalReason>(i)),
                        refused[i] - logged_refused_[i]);
  }
  LogAll(LogLevel::kWarning, "connections were refused for these limits", fields);
  logged_refused_ = refused;
  next_log_ = absl::Now() + kLogInterval;
}

void Listener::AcceptAll(int socket) {
  for (int i = 0; i < kMaxAcceptsInTurn && AcceptOne(socket); ++i) {
  }
}

bool Listener::AcceptOne(int socket) {
  SocketAddress remote;
  const int descriptor = accept4(socket, remote.get(), &remote.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (descriptor >= 0) {
    HandOver(descriptor, remote);
    return true;
  }
  switch (errno) {
    case EAGAIN:
      return false;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      if (RefuseWithSpare(socket)) return true;
      SetAccepting(false);
      return false;
    default:
      // The connection ended while it waited.
      return true;
  }
}

void Listener::HandOver(int descriptor, const SocketAddress& remote) {
  const bool is_own = options_.is_own(remote);
  const std::shared_ptr<Connection> connection = is_own && options_.closes_own ? nullptr
                                                 : is_own ? connections_.AddOwn(remote)
                                                          : connections_.Add(remote);
  if (connection == nullptr) {
    close(descriptor);
    return;
  }
  if (remote.family() != AF_UNIX) {
    const int on = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeoutMilliseconds,
               sizeof kUserTimeoutMilliseconds);
  }
  if (!watchdog_.Add(descriptor, connection)) {
    // One that is refused is counted already.
    if (!connection->refusal().has_value()) connections_.OnRefused(RefusalReason::kDescriptors);
    connections_.Remove(*connection);
    close(descriptor);
    return;
  }
  GrpcAcceptor::NewConnectionParameters parameters;
  parameters.fd = descriptor;
  acceptor_->HandleNewConnection(&parameters);
}

bool Listener::RefuseWithSpare(int socket) {
  if (spare_ < 0) return false;
  close(std::exchange(spare_, -1));
  const int descriptor = accept4(socket, nullptr, nullptr, SOCK_CLOEXEC);
  if (descriptor >= 0) {
    close(descriptor);
    connections_.OnRefused(RefusalReason::kDescriptors);
  }
  spare_ = OpenSpare();
  return descriptor >= 0;
}

void Listener::SetAccepting(bool accepting) {
  if (spare_ < 0) spare_ = OpenSpare();
  accepting_ = accepting;
  for (const ListeningSocket& socket : sockets_) {
    epoll_event event = {};
    event.events = accepting ? uint32_t{EPOLLIN} : 0;
    event.data.fd = socket.descriptor();
    epoll_ctl(epoll_, EPOLL_CTL_MOD, socket.descriptor(), &event);
  }
}

}  // namespace perceptrond
