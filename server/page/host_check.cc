#include "server/page/host_check.h"

#include <arpa/inet.h>

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace perceptrond {
namespace {

bool IsAllowed(const std::vector<std::string>& names, absl::string_view host) {
  if (host.empty()) return true;
  in6_addr v6;
  if (host.front() == '[') {
    const std::string bare(host.substr(1, host.find(']') - 1));
    return inet_pton(AF_INET6, bare.c_str(), &v6) == 1;
  }
  const std::string name(host.substr(0, host.find(':')));
  in_addr v4;
  if (absl::EqualsIgnoreCase(name, "localhost") || inet_pton(AF_INET, name.c_str(), &v4) == 1)
    return true;
  return absl::c_any_of(names,
                        [&](const std::string& one) { return absl::EqualsIgnoreCase(one, name); });
}

}  // namespace

HttpHandler WithHostCheck(std::vector<std::string> names, HttpHandler handler) {
  return [names = std::move(names), handler = std::move(handler)](const HttpRequest& request) {
    if (IsAllowed(names, request.host)) return handler(request);
    HttpAnswer answer;
    answer.status = 403;
    answer.headers = {{"Content-Type", "text/plain; charset=utf-8"}, {"Cache-Control", "no-store"}};
    answer.body =
        "Metrics and page are not served by this name: use an address or localhost, or add the "
        "name "
        "to --metrics-hosts. A proxy must send one of these as Host.\n";
    return answer;
  };
}

}  // namespace perceptrond
