#include "server/config/endpoint.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace perceptrond {
namespace {

constexpr absl::string_view kUnixPrefix = "unix:";

}  // namespace

std::optional<std::string> HostOf(absl::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos) return std::nullopt;
  const absl::string_view host = address.substr(0, colon);
  const absl::string_view port = address.substr(colon + 1);
  uint32_t number;
  if (port.empty() || !std::all_of(port.begin(), port.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(port, &number) || number > 65535) {
    return std::nullopt;
  }
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    const std::string bare(host.substr(1, host.size() - 2));
    in6_addr parsed;
    if (inet_pton(AF_INET6, bare.c_str(), &parsed) != 1) return std::nullopt;
    return bare;
  }
  if (host.empty() || host.find_first_of(":[]/ ") != absl::string_view::npos) return std::nullopt;
  return std::string(host);
}

bool IsAddress(absl::string_view address) {
  if (absl::StartsWith(address, kUnixPrefix)) return address.size() > kUnixPrefix.size();
  return HostOf(address).has_value();
}

bool IsLoopback(absl::string_view address) {
  if (absl::StartsWith(address, kUnixPrefix)) return true;
  const std::optional<std::string> host = HostOf(address);
  if (!host) return false;
  if (absl::EqualsIgnoreCase(*host, "localhost")) return true;
  in_addr v4;
  if (inet_pton(AF_INET, host->c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6;
  if (inet_pton(AF_INET6, host->c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return false;
}

bool IsWildcard(absl::string_view address) {
  const std::optional<std::string> host = HostOf(address);
  if (!host) return false;
  in_addr v4;
  if (inet_pton(AF_INET, host->c_str(), &v4) == 1) return v4.s_addr == INADDR_ANY;
  in6_addr v6;
  return inet_pton(AF_INET6, host->c_str(), &v6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&v6);
}

bool IsListenedOn(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return false;
  const bool connected =
      connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(descriptor);
  return connected;
}

}  // namespace perceptrond
