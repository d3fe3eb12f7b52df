#include "server/page/http.h"

#include <arpa/inet.h>

#include "absl/strings/match.h"

namespace perceptrond {

bool IsAddressOrLocalhost(absl::string_view host) {
  if (host.empty()) return true;
  in6_addr v6;
  if (host.front() == '[') {
    const std::string bare(host.substr(1, host.find(']') - 1));
    return inet_pton(AF_INET6, bare.c_str(), &v6) == 1;
  }
  const std::string name(host.substr(0, host.find(':')));
  in_addr v4;
  return absl::EqualsIgnoreCase(name, "localhost") || inet_pton(AF_INET, name.c_str(), &v4) == 1;
}

}  // namespace perceptrond
