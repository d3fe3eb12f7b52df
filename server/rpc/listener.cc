#include "server/rpc/listener.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/time/clock.h"
#include "core/sync/thread_name.h"
#include "server/config/logging.h"

namespace perceptrond {
namespace {

// One connection after another is accepted for so long before others get a turn.
constexpr int kMaxAcceptsInTurn = 64;
// The time between two looks at the connections while bytes arrive, and otherwise.
constexpr absl::Duration kLookInterval = absl::Milliseconds(50);
constexpr absl::Duration kQuietLookInterval = absl::Milliseconds(500);
// Looking takes at most one part in so many of one processor.
constexpr int kLookShare = 50;
// A connection is closed for memory only without progress for this long, and with this much.
constexpr absl::Duration kMinStall = absl::Milliseconds(500);
constexpr uint64_t kMinHeldBytes = 1 << 20;
// Unacknowledged for this long, sent data means that the peer is gone; gRPC's own default.
constexpr int kUserTimeoutMilliseconds = 20000;

void Watch(int epoll, int descriptor, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.fd = descriptor;
  epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

int OpenSpare() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

// What has arrived on a connection, ever.
uint64_t ReceivedBytes(int descriptor) {
  tcp_info info = {};
  socklen_t size = sizeof info;
  getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size);
  return info.tcpi_bytes_received;
}

// What of it gRPC has not read yet.
uint64_t WaitingBytes(int descriptor) {
  int waiting = 0;
  ioctl(descriptor, FIONREAD, &waiting);
  return static_cast<uint64_t>(std::max(waiting, 0));
}

uint64_t ResidentBytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  unsigned long size = 0;
  unsigned long resident = 0;
  const bool read = std::fscanf(file, "%lu %lu", &size, &resident) == 2;
  std::fclose(file);
  return read ? resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
}

}  // namespace

Listener::Listener(std::vector<ListeningSocket> sockets, Connections& connections, Options options)
    : sockets_(std::move(sockets)), connections_(connections), options_(std::move(options)) {}

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
  for (const auto& [descriptor, open] : open_) {
    connections_.Remove(*open.connection);
    close(descriptor);
  }
  open_.clear();
  for (int* const descriptor : {&epoll_, &stop_, &spare_}) {
    if (*descriptor >= 0) close(std::exchange(*descriptor, -1));
  }
}

void Listener::Run() {
  std::array<epoll_event, 64> events;
  absl::Time next_look = absl::Now() + kQuietLookInterval;
  absl::Time next_second = absl::Now() + absl::Seconds(1);
  for (;;) {
    const absl::Duration wait = std::min(next_look, next_second) - absl::Now();
    const int count =
        epoll_wait(epoll_, events.data(), events.size(),
                   std::clamp<int>(static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1, 0, 1000));
    for (int i = 0; i < count; ++i) {
      const int descriptor = events[static_cast<size_t>(i)].data.fd;
      if (descriptor == stop_) return;
      open_.contains(descriptor) ? OnEnded(descriptor) : AcceptAll(descriptor);
    }
    const absl::Time now = absl::Now();
    if (now >= next_look) {
      if (!accepting_) SetAccepting(true);
      const bool busy = CheckAll(now);
      const absl::Time looked = absl::Now();
      next_look =
          looked + std::max((looked - now) * kLookShare, busy ? kLookInterval : kQuietLookInterval);
    }
    if (now >= next_second) {
      options_.on_second();
      next_second = now + absl::Seconds(1);
    }
  }
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
  const int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (own < 0) {
    connections_.OnRefused(RefusalReason::kDescriptors);
    connections_.Remove(*connection);
    close(descriptor);
    return;
  }
  const bool is_tcp = remote.family() != AF_UNIX;
  if (is_tcp) {
    const int on = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeoutMilliseconds,
               sizeof kUserTimeoutMilliseconds);
  }
  open_.emplace(
      own, Open{connection, ConnectionWatch(absl::Now()), is_tcp && !connection->peer().empty()});
  // Without events of its own: the end of a connection is always reported.
  Watch(epoll_, own, 0);
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

void Listener::OnEnded(int descriptor) {
  const auto found = open_.find(descriptor);
  connections_.Remove(*found->second.connection);
  open_.erase(found);
  // gRPC may still have the connection open, so that closing this descriptor does not end the
  // registration.
  epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
  close(descriptor);
}

bool Listener::CheckAll(absl::Time now) {
  bool busy = false;
  std::vector<std::pair<int, CloseReason>> condemned;
  for (auto& [descriptor, open] : open_) {
    if (!open.is_tcp) continue;
    const uint64_t received = ReceivedBytes(descriptor);
    busy |= std::exchange(open.received, received) != received;
    // More may arrive between the two system calls.
    open.read = std::max(open.read, received - std::min(received, WaitingBytes(descriptor)));
    const std::optional<CloseReason> reason =
        open.watch.Check({open.read, open.connection->counts()}, options_.watch, now);
    if (reason.has_value()) condemned.emplace_back(descriptor, *reason);
  }
  for (const auto& [descriptor, reason] : condemned) Close(descriptor, reason);
  if (busy && options_.max_resident_bytes > 0 && ResidentBytes() > options_.max_resident_bytes)
    CloseForMemory(now);
  return busy;
}

void Listener::CloseForMemory(absl::Time now) {
  int worst = -1;
  uint64_t most = kMinHeldBytes;
  for (const auto& [descriptor, open] : open_) {
    const uint64_t held = open.watch.held_bytes();
    if (held <= most || now - open.watch.progress_time() < kMinStall) continue;
    most = held;
    worst = descriptor;
  }
  if (worst >= 0) Close(worst, CloseReason::kMemory);
}

void Listener::Close(int descriptor, CloseReason reason) {
  const Open& open = open_.at(descriptor);
  connections_.OnClosed(reason);
  Log(LogLevel::kWarning, "closed a connection that sent too much without a message or a call",
      {{"reason", CloseReasonName(reason)},
       {"peer", open.connection->peer()},
       {"received_bytes", open.received},
       {"unfinished_bytes", open.watch.held_bytes()},
       {"calls_in_flight", open.connection->counts().in_flight}});
  // Resets the connection and drops what has arrived, which gRPC would go on reading after a mere
  // shutdown; that wakes gRPC if it waits.
  sockaddr none = {};
  none.sa_family = AF_UNSPEC;
  connect(descriptor, &none, sizeof none);
  shutdown(descriptor, SHUT_RDWR);
  OnEnded(descriptor);
}

}  // namespace perceptrond
