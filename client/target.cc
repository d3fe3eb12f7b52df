#include "client/target.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/call_metadata.h"

namespace perceptrond::client {
namespace {

// Numeric addresses with their ports, by family.
struct Found {
  std::vector<std::string> four;
  std::vector<std::string> six;
};

void LookUp(const std::string& host, const std::string& port, Found& found) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &list) != 0) return;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    std::array<char, NI_MAXHOST> numeric{};
    std::array<char, NI_MAXSERV> number{};
    if (getnameinfo(one->ai_addr, one->ai_addrlen, numeric.data(), numeric.size(), number.data(),
                    number.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
      continue;
    if (one->ai_family == AF_INET)
      found.four.push_back(absl::StrCat(numeric.data(), ":", number.data()));
    if (one->ai_family == AF_INET6)
      found.six.push_back(absl::StrCat("[", numeric.data(), "]:", number.data()));
  }
}

// An address of the form "host:port", or "[host]:port".
struct HostAndPort {
  std::string host;
  std::string port;
};

HostAndPort Split(absl::string_view address) {
  const size_t colon = address.rfind(':');
  HostAndPort both{std::string(absl::StripAsciiWhitespace(address.substr(0, colon))), ""};
  if (colon != absl::string_view::npos)
    both.port = std::string(absl::StripAsciiWhitespace(address.substr(colon + 1)));
  if (both.host.size() > 1 && both.host.front() == '[')
    both.host = both.host.substr(1, both.host.size() - 2);
  return both;
}

constexpr char kFour[] = "ipv4:";
constexpr char kSix[] = "ipv6:";
constexpr char kDns[] = "dns:///";
constexpr absl::string_view kDefaultPort = "7600";

// Whether it has a character that neither a host's name nor a zone has.
bool HasOtherCharacter(absl::string_view host) {
  return absl::c_any_of(host, [](unsigned char c) {
    return c <= ' ' || c == '*' || c == '/' || c == ']' || c == '\x7f';
  });
}

bool IsIpv6(absl::string_view host) {
  // Without the zone, as in fe80::1%eth0.
  const std::string bare(host.substr(0, host.find('%')));
  in6_addr address;
  return !absl::EndsWith(host, "%") && !HasOtherCharacter(host) &&
         inet_pton(AF_INET6, bare.c_str(), &address) == 1;
}

constexpr absl::string_view kAccepted =
    "give HOST, HOST:PORT, unix:PATH, dns:///HOST:PORT or ipv4:ADDRESS:PORT,...";

// Names that gRPC takes for the scheme of what follows their colon.
bool IsScheme(absl::string_view host) {
  return absl::c_linear_search(std::array<absl::string_view, 7>{"dns", "ipv4", "ipv6", "unix",
                                                                "unix-abstract", "vsock", "xds"},
                               host);
}

absl::Status CheckScheme(absl::string_view address) {
  for (const absl::string_view scheme : {"http://", "https://", "grpc://", "grpcs://", "tcp://"}) {
    if (!absl::StartsWith(address, scheme)) continue;
    const absl::string_view plain = address.substr(scheme.size());
    return absl::InvalidArgumentError(absl::StrCat(
        address, " is a URL; give HOST:PORT of gRPC, as ", plain.substr(0, plain.find('/')),
        absl::EndsWith(scheme, "s://") ? ", and --tls for TLS" : "",
        " (perceptrond serves gRPC on port 7600, its web page on 7601)"));
  }
  return absl::OkStatus();
}

// HOST or HOST:PORT, with the default port where there is none.
absl::StatusOr<std::string> ReadAddress(absl::string_view address) {
  if (absl::Status status = CheckScheme(address); !status.ok()) return status;
  const auto refuse = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(address, ": ", what));
  };
  absl::string_view host = address;
  absl::string_view port = kDefaultPort;
  if (absl::ConsumePrefix(&host, "[")) {
    const size_t bracket = host.find(']');
    if (bracket == absl::string_view::npos || !IsIpv6(host.substr(0, bracket)))
      return refuse("brackets are for an IPv6 address, as [::1]:7600");
    port = host.substr(bracket + 1);
    host = host.substr(0, bracket);
    if (port.empty())
      port = kDefaultPort;
    else if (!absl::ConsumePrefix(&port, ":"))
      return refuse("give [HOST]:PORT");
  } else if (!IsIpv6(host)) {
    const size_t colon = host.rfind(':');
    if (colon != absl::string_view::npos) {
      port = host.substr(colon + 1);
      host = host.substr(0, colon);
    }
    // gRPC takes a scheme for a host's name, and the other way round.
    if (absl::StrContains(host, ':') || IsScheme(host))
      return refuse(absl::StrCat("this is no address; ", kAccepted));
  }
  // Digits alone, which a resolver takes for the number of an address, are a port.
  if (host.find_first_not_of("0123456789") == absl::string_view::npos || HasOtherCharacter(host))
    return refuse(absl::StrCat("there is no host's name; ", kAccepted));
  uint32_t number = 0;
  if (port.find_first_not_of("0123456789") != absl::string_view::npos ||
      !absl::SimpleAtoi(port, &number) || number < 1 || number > 65535) {
    return refuse(absl::StrCat(port.empty() ? "an empty text" : port,
                               " is no port; ports are 1 to 65535, 7600 by default"));
  }
  return absl::StrCat(IsIpv6(host) ? absl::StrCat("[", host, "]") : std::string(host), ":", port);
}

}  // namespace

absl::StatusOr<std::string> ReadAddresses(const std::string& addresses) {
  absl::string_view list = absl::StripAsciiWhitespace(addresses);
  if (absl::ConsumePrefix(&list, "unix:")) {
    // Behind "//" gRPC expects an empty authority.
    if (list.empty() || absl::StrContains(list, ',') ||
        (absl::StartsWith(list, "//") && !absl::StartsWith(list, "///")))
      return absl::InvalidArgumentError(
          absl::StrCat(addresses, ": give one path of a socket, without a comma: unix:PATH"));
    return absl::StrCat("unix:", list);
  }
  absl::string_view scheme;
  for (const absl::string_view one : {absl::string_view(kDns), absl::string_view(kFour)}) {
    if (absl::ConsumePrefix(&list, one)) scheme = one;
  }
  std::vector<std::string> read;
  for (const absl::string_view one : absl::StrSplit(list, ',')) {
    const absl::string_view address = absl::StripAsciiWhitespace(one);
    if (address.empty()) continue;
    absl::StatusOr<std::string> each = ReadAddress(address);
    if (!each.ok()) return each.status();
    in_addr number;
    if (scheme == kFour && inet_pton(AF_INET, Split(*each).host.c_str(), &number) != 1)
      return absl::InvalidArgumentError(
          absl::StrCat(addresses, ": ipv4: is for numeric addresses, as ipv4:127.0.0.1:7600"));
    read.push_back(*std::move(each));
  }
  if (read.empty() || (scheme == kDns && read.size() > 1))
    return absl::InvalidArgumentError(absl::StrCat(addresses.empty() ? "an empty text" : addresses,
                                                   " is no address; ", kAccepted));
  return absl::StrCat(scheme, absl::StrJoin(read, ","));
}

bool GoesDirect(const std::string& addresses) {
  if (absl::StrContains(addresses, ',') || IsLocalAddress(addresses)) return true;
  // Debian's /etc/hosts has these. A token takes the way of other names: elsewhere a resolver would be asked for them.
  const std::string host = absl::AsciiStrToLower(Split(absl::StripPrefix(addresses, kDns)).host);
  return host == "ip6-localhost" || host == "ip6-loopback";
}

std::string ProxyVariable() {
  // gRPC's order.
  for (const char* const name : {"grpc_proxy", "https_proxy", "http_proxy"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') return name;
  }
  return "";
}

Target MakeTarget(const std::string& addresses) {
  const bool is_one = !absl::StrContains(addresses, ',');
  // gRPC's own lists, and names in its own forms.
  const bool is_target = absl::StartsWith(addresses, kFour) || absl::StartsWith(addresses, kSix) ||
                         absl::StrContains(addresses, "//");
  if (is_one || is_target) return {addresses, "", {}};
  Found found;
  std::string first;
  for (const absl::string_view address : absl::StrSplit(addresses, ',', absl::SkipWhitespace())) {
    const auto [host, port] = Split(address);
    if (first.empty()) first = host;
    LookUp(host, port, found);
  }
  // One target has addresses of one family.
  if (!found.four.empty())
    return {absl::StrCat(kFour, absl::StrJoin(found.four, ",")), first, found.four};
  if (!found.six.empty())
    return {absl::StrCat(kSix, absl::StrJoin(found.six, ",")), first, found.six};
  // gRPC says that nothing is there.
  return {addresses, first, {}};
}

std::optional<Target> FindServer(const Target& servers, const std::string& address) {
  Found found;
  const auto [host, port] = Split(address);
  LookUp(host, port, found);
  for (const auto& [prefix, numeric] : {std::pair(kFour, found.four), std::pair(kSix, found.six)}) {
    for (const std::string& one : numeric) {
      const auto& known = servers.servers;
      if (std::find(known.begin(), known.end(), one) != known.end())
        return Target{absl::StrCat(prefix, one), servers.host, {}};
    }
  }
  return std::nullopt;
}

}  // namespace perceptrond::client
