#include "client/target.h"

#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <memory>
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

}  // namespace

Target MakeTarget(const std::string& addresses) {
  const bool is_one = !absl::StrContains(addresses, ',');
  // gRPC's own lists, and names in its own forms.
  const bool is_target = absl::StartsWith(addresses, "ipv4:") ||
                         absl::StartsWith(addresses, "ipv6:") || absl::StrContains(addresses, "//");
  if (is_one || is_target) return {addresses, ""};
  Found found;
  std::string first;
  for (const absl::string_view address : absl::StrSplit(addresses, ',', absl::SkipWhitespace())) {
    const size_t colon = address.rfind(':');
    std::string host(absl::StripAsciiWhitespace(address.substr(0, colon)));
    const std::string port(colon == absl::string_view::npos
                               ? ""
                               : absl::StripAsciiWhitespace(address.substr(colon + 1)));
    if (host.size() > 1 && host.front() == '[') host = host.substr(1, host.size() - 2);
    if (first.empty()) first = host;
    LookUp(host, port, found);
  }
  // One target has addresses of one family.
  if (!found.four.empty()) return {absl::StrCat("ipv4:", absl::StrJoin(found.four, ",")), first};
  if (!found.six.empty()) return {absl::StrCat("ipv6:", absl::StrJoin(found.six, ",")), first};
  // gRPC says that nothing is there.
  return {addresses, first};
}

}  // namespace perceptrond::client
