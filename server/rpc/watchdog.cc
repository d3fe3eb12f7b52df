#include "server/rpc/watchdog.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "core/sync/thread_name.h"
#include "server/config/logging.h"
#include "server/rpc/freed_memory.h"

namespace perceptrond {
namespace {

// The time between two checks of the connections while bytes arrive, and otherwise.
constexpr absl::Duration kCheckInterval = absl::Milliseconds(50);
constexpr absl::Duration kQuietCheckInterval = absl::Milliseconds(500);
// Checking takes at most one part in this many of one processor, unless that would make it rarer than quiet connections are
// checked: on a machine that is short of processors a check takes long, and connections fill the memory meanwhile.
constexpr int kCheckShare = 50;
// A connection is closed for memory only without progress for this long, and with this much.
constexpr absl::Duration kMinStall = absl::Milliseconds(200);
constexpr uint64_t kMinHeldBytes = 1 << 20;
// How long gRPC may take to free what closed connections held.
constexpr absl::Duration kReleaseTime = absl::Milliseconds(250);
// How long a refused client may take to make a call.
constexpr absl::Duration kRefusalTime = absl::Seconds(5);

void AddTo(int epoll, int descriptor, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.fd = descriptor;
  epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

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

Watchdog::~Watchdog() { Stop(); }

void Watchdog::Start() {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  stop_ = eventfd(0, EFD_CLOEXEC);
  AddTo(epoll_, stop_, EPOLLIN);
  thread_ = std::thread([this] {
    NameThisThread("watchdog");
    Run();
  });
}

void Watchdog::Stop() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  static_cast<void>(write(stop_, &one, sizeof one));
  thread_.join();
  MutexLock lock(&mutex_);
  while (!open_.empty()) OnEnded(open_.begin()->first);
  close(epoll_);
  close(stop_);
}

bool Watchdog::Add(int descriptor, std::shared_ptr<Connection> connection) {
  const int handle = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (handle < 0) return false;
  MutexLock lock(&mutex_);
  const absl::Time now = absl::Now();
  open_.emplace(handle, Open{std::move(connection), now, ConnectionWatch(now)});
  // Without events of its own: the end of a connection is always reported.
  AddTo(epoll_, handle, 0);
  return true;
}

void Watchdog::Run() {
  absl::Time next = absl::Now() + kQuietCheckInterval;
  while (AwaitEnds(next)) {
    const absl::Time start = absl::Now();
    const bool busy = CheckAll(start);
    const absl::Time end = absl::Now();
    next =
        end + (busy ? std::clamp((end - start) * kCheckShare, kCheckInterval, kQuietCheckInterval)
                    : kQuietCheckInterval);
  }
}

bool Watchdog::AwaitEnds(absl::Time until) {
  std::array<epoll_event, 64> events;
  for (absl::Time now = absl::Now(); now < until; now = absl::Now()) {
    const auto wait = static_cast<int>(absl::ToInt64Milliseconds(until - now)) + 1;
    const int count = epoll_wait(epoll_, events.data(), events.size(), wait);
    MutexLock lock(&mutex_);
    for (int i = 0; i < count; ++i) {
      const int descriptor = events[static_cast<size_t>(i)].data.fd;
      if (descriptor == stop_) return false;
      OnEnded(descriptor);
    }
  }
  return true;
}

void Watchdog::OnEnded(int handle) {
  const auto found = open_.find(handle);
  connections_.Remove(*found->second.connection);
  open_.erase(found);
  // gRPC may still have the connection open, so that closing this descriptor does not end the
  // registration.
  epoll_ctl(epoll_, EPOLL_CTL_DEL, handle, nullptr);
  close(handle);
}

bool Watchdog::CheckAll(absl::Time now) {
  bool busy = false;
  std::vector<std::pair<int, CloseReason>> condemned;
  MutexLock lock(&mutex_);
  for (auto& [handle, open] : open_) {
    // The kernel counts no bytes of Unix sockets.
    if (open.connection->peer().empty()) continue;
    const uint64_t received = ReceivedBytes(handle);
    busy |= std::exchange(open.received, received) != received;
    // More may arrive between the two system calls.
    open.read = std::max(open.read, received - std::min(received, WaitingBytes(handle)));
    const std::optional<CloseReason> reason =
        open.watch.Check({open.read, open.connection->counts()}, options_.limits, now);
    if (reason.has_value()) condemned.emplace_back(handle, *reason);
    if (open.connection->refusal().has_value()) EndRefused(handle, open, now);
  }
  for (const auto& [handle, reason] : condemned) Close(handle, reason);
  if (options_.max_resident_bytes > 0) CloseForMemory(now);
  return busy;
}

uint64_t Watchdog::ExcessBytes() const {
  const uint64_t most =
      options_.max_resident_bytes + connections_.stats().streams * options_.stream_bytes;
  return std::max(ResidentBytes(), most) - most;
}

void Watchdog::EndRefused(int handle, Open& open, absl::Time now) {
  const Connection::Counts counts = open.connection->counts();
  const bool was_answered = std::exchange(open.answered, counts.begun > 0 && counts.in_flight == 0);
  // For gRPC the client has closed it: gRPC closes it too, once it has read what has arrived, and
  // calls among that still find the connection.
  if (was_answered || now - open.since > kRefusalTime) shutdown(handle, SHUT_RD);
}

void Watchdog::CloseForMemory(absl::Time now) {
  if (now - memory_close_time_ < kReleaseTime || ExcessBytes() == 0) return;
  // Connections that were closed before have left freed memory, too.
  ReturnFreedMemory();
  for (uint64_t excess = ExcessBytes(); excess > 0;) {
    int worst = -1;
    uint64_t most = kMinHeldBytes;
    for (const auto& [handle, open] : open_) {
      const uint64_t held = open.watch.held_bytes();
      if (held <= most || now - open.watch.progress_time() < kMinStall) continue;
      most = held;
      worst = handle;
    }
    if (worst < 0) return;
    memory_close_time_ = now;
    excess -= std::min(excess, most);
    Close(worst, CloseReason::kMemory);
  }
}

void Watchdog::Close(int handle, CloseReason reason) {
  const Open& open = open_.at(handle);
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
  connect(handle, &none, sizeof none);
  shutdown(handle, SHUT_RDWR);
  OnEnded(handle);
}

}  // namespace perceptrond
