#include "server/rpc/listening_sockets.h"

#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/config/endpoint.h"

namespace perceptrond {
namespace {

void Enable(int descriptor, int level, int option) {
  const int on = 1;
  setsockopt(descriptor, level, option, &on, sizeof on);
}

// A listening socket on this address, or -1 and errno.
int OpenSocket(const SocketAddress& address) {
  const int descriptor = socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return -1;
  if (address.family() != AF_UNIX) {
    // A restarted server gets its port although connections of the one before linger. Not
    // SO_REUSEPORT: a second server on the same port must be an error and not share it.
    Enable(descriptor, SOL_SOCKET, SO_REUSEADDR);
    Enable(descriptor, IPPROTO_TCP, TCP_NODELAY);
  }
  if (address.family() == AF_INET6) {
    const int off = 0;
    setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (bind(descriptor, address.get(), address.size) != 0 || listen(descriptor, SOMAXCONN) != 0) {
    const int error = errno;
    close(descriptor);
    errno = error;
    return -1;
  }
  return descriptor;
}

in_port_t& PortOf(SocketAddress& address) {
  return address.family() == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_port
                                      : reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port;
}

SocketAddress AnyAddress() {
  SocketAddress address;
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  v6->sin6_family = AF_INET6;
  v6->sin6_addr = in6addr_any;
  address.size = sizeof *v6;
  return address;
}

// The addresses that a host stands for; empty if it has none.
std::vector<SocketAddress> Resolve(const std::string& host) {
  std::vector<SocketAddress> addresses;
  // One socket of IPv6 for both families, where the kernel has IPv6.
  if (host == "0.0.0.0" || host == "::") addresses.push_back(AnyAddress());
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), "0", &hints, &found) != 0) return addresses;
  const absl::Cleanup free = [found] { freeaddrinfo(found); };
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    SocketAddress& address = addresses.emplace_back();
    std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
    address.size = one->ai_addrlen;
  }
  return addresses;
}

absl::Status CannotListen(const std::string& address, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("cannot listen on ", address, ": ", why));
}

absl::StatusOr<ListeningAddress> ListenOnPath(const std::string& name, const std::string& path) {
  SocketAddress address;
  auto* const local = reinterpret_cast<sockaddr_un*>(&address.storage);
  local->sun_family = AF_UNIX;
  if (path.size() >= sizeof local->sun_path) {
    return CannotListen(name, absl::StrCat("the path has ", path.size(),
                                           " bytes; the system "
                                           "allows at most ",
                                           sizeof local->sun_path - 1));
  }
  std::memcpy(local->sun_path, path.data(), path.size());
  address.size = sizeof *local;
  if (IsListenedOn(path))
    return CannotListen(name, "another process listens there; stop it or choose another path");
  struct stat file = {};
  if (stat(path.c_str(), &file) == 0 && S_ISSOCK(file.st_mode)) unlink(path.c_str());
  const int descriptor = OpenSocket(address);
  if (descriptor < 0) return CannotListen(name, std::strerror(errno));
  ListeningAddress result{name, {}};
  result.sockets.emplace_back(descriptor, path);
  return result;
}

}  // namespace

ListeningSocket::ListeningSocket(ListeningSocket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

ListeningSocket::~ListeningSocket() {
  if (descriptor_ < 0) return;
  if (!path_.empty()) unlink(path_.c_str());
  close(descriptor_);
}

SocketAddress ListeningSocket::address() const {
  SocketAddress address;
  getsockname(descriptor_, address.get(), &address.size);
  return address;
}

absl::StatusOr<ListeningAddress> ListenOn(const std::string& address) {
  absl::string_view path = address;
  if (absl::ConsumePrefix(&path, "unix:")) return ListenOnPath(address, std::string(path));
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (!absl::SimpleAtoi(address.substr(colon + 1), &port))
    return CannotListen(address, "it has no port; write HOST:PORT");
  ListeningAddress result;
  bool any = false;
  for (SocketAddress& one : Resolve(HostOf(address).value_or(""))) {
    if (any) break;
    // Port 0 takes one free port, which is the same for all addresses of the host.
    PortOf(one) = htons(static_cast<uint16_t>(port));
    const int descriptor = OpenSocket(one);
    if (descriptor < 0) continue;
    result.sockets.emplace_back(descriptor, "");
    SocketAddress bound = result.sockets.back().address();
    port = ntohs(PortOf(bound));
    const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(&one.storage)->sin6_addr;
    any = one.family() == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&v6);
  }
  if (result.sockets.empty()) {
    return CannotListen(address, "the port is in use, or the address is not one of this machine");
  }
  result.name = absl::StrCat(address.substr(0, colon), ":", port);
  return result;
}

}  // namespace perceptrond
