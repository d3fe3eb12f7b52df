#include "client/target.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

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

}  // namespace

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
