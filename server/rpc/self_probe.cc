#include "server/rpc/self_probe.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "core/sync/thread_name.h"

namespace perceptrond {
namespace {

// The preface and empty settings: RFC 9113, section 3.4.
constexpr absl::string_view kOpening("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);

// The address at which this machine reaches a wildcard address; any other is returned unchanged.
SocketAddress ReachableOf(SocketAddress address) {
  if (address.family() == AF_INET) {
    in_addr& host = reinterpret_cast<sockaddr_in*>(&address.storage)->sin_addr;
    if (host.s_addr == htonl(INADDR_ANY)) host.s_addr = htonl(INADDR_LOOPBACK);
  } else if (address.family() == AF_INET6) {
    in6_addr& host = reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_addr;
    if (IN6_IS_ADDR_UNSPECIFIED(&host)) host = in6addr_loopback;
  }
  return address;
}

// A free port of the address from which this machine reaches `target`.
SocketAddress SourceFor(const SocketAddress& target) {
  SocketAddress source = target;
  if (source.family() == AF_INET) {
    reinterpret_cast<sockaddr_in*>(&source.storage)->sin_port = 0;
  } else if (source.family() == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&source.storage)->sin6_port = 0;
  } else {
    // The kernel chooses a name that is no file.
    source.size = sizeof(sa_family_t);
  }
  return source;
}

bool Same(const SocketAddress& a, const SocketAddress& b) {
  return a.size == b.size && a.size > 0 && std::memcmp(&a.storage, &b.storage, a.size) == 0;
}

// Whether `events` came within the timeout.
bool Await(int descriptor, int16_t events, absl::Duration timeout) {
  pollfd waiting = {descriptor, events, 0};
  return poll(&waiting, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout))) == 1;
}

std::string ErrorOf(absl::string_view what) {
  return absl::StrCat(what, ": ", std::strerror(errno));
}

}  // namespace

SelfProbe::SelfProbe(std::vector<Target> targets, Options options)
    : targets_(std::move(targets)), options_(std::move(options)) {
  {
    MutexLock lock(&mutex_);
    own_.size = 0;
  }
  if (options_.interval <= absl::ZeroDuration()) return;
  thread_ = std::thread([this] {
    NameThisThread("self probe");
    Run();
  });
}

void SelfProbe::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

bool SelfProbe::IsOwn(const SocketAddress& remote) const {
  MutexLock lock(&mutex_);
  return Same(own_, remote);
}

void SelfProbe::Run() {
  std::vector<State> states(targets_.size());
  for (;;) {
    for (size_t i = 0; i < targets_.size(); ++i) Check(targets_[i], states[i]);
    MutexLock lock(&mutex_);
    const auto stopping = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; };
    if (mutex_.AwaitWithTimeout(absl::Condition(&stopping), options_.interval)) return;
  }
}

void SelfProbe::Check(const Target& target, State& state) {
  const uint64_t accepted = options_.accepted();
  const std::string error = Probe(ReachableOf(target.address));
  if (!error.empty() && options_.accepted() > accepted + 1) return;
  if (error.empty()) {
    state = {.answered = true, .failures = 0};
  } else if (state.answered && ++state.failures >= options_.failures) {
    state.failures = 0;
    options_.on_failure(target.name, error);
  }
}

std::string SelfProbe::Probe(const SocketAddress& address) {
  const int descriptor = socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return ErrorOf("cannot open a socket");
  const absl::Cleanup close_it = [this, descriptor] {
    {
      MutexLock lock(&mutex_);
      own_.size = 0;
    }
    close(descriptor);
  };
  const SocketAddress source = SourceFor(address);
  if (bind(descriptor, source.get(), source.size) != 0) return ErrorOf("cannot bind a socket");
  {
    // Before it connects: the listener may accept it before connect() returns.
    MutexLock lock(&mutex_);
    own_ = SocketAddress();
    getsockname(descriptor, own_.get(), &own_.size);
  }
  if (connect(descriptor, address.get(), address.size) != 0 && errno != EINPROGRESS)
    return ErrorOf("cannot connect");
  if (!Await(descriptor, POLLOUT, options_.timeout)) return "the connection is not accepted";
  // Any answer will do, and so does the end of the connection, which may have come already.
  if (send(descriptor, kOpening.data(), kOpening.size(), MSG_NOSIGNAL) < 0 && errno != EPIPE &&
      errno != ECONNRESET)
    return ErrorOf("cannot send");
  if (!Await(descriptor, POLLIN, options_.timeout)) return "the connection is not answered";
  return "";
}

}  // namespace perceptrond
