#include "server/config/unknown_variables.h"

#include <unistd.h>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace perceptrond {
namespace {

// Whether Kubernetes sets the variable for a Service. The names are NAME_SERVICE_HOST,
// NAME_SERVICE_PORT[_PORTNAME], and those of Docker links, whose values are the service's URL or a
// part of it: NAME_PORT, NAME_PORT_7600_TCP, NAME_PORT_7600_TCP_ADDR, ..._PORT and ..._PROTO.
bool IsKubernetesVariable(absl::string_view name, absl::string_view value) {
  if (absl::EndsWith(name, "_SERVICE_HOST") || absl::EndsWith(name, "_SERVICE_PORT") ||
      absl::StrContains(name, "_SERVICE_PORT_")) {
    return true;
  }
  if (!absl::StrContains(name, "_PORT")) return false;
  for (const absl::string_view protocol : {"tcp", "udp", "sctp"}) {
    const std::string part = absl::StrCat("_", absl::AsciiStrToUpper(protocol), "_");
    if (absl::StartsWith(value, absl::StrCat(protocol, "://"))) return true;
    if (absl::StrContains(name, "_PORT_") && absl::StrContains(name, part)) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> UnknownVariables(const std::set<std::string>& known) {
  std::set<std::string> unknown;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::pair<std::string, std::string> variable =
        absl::StrSplit(*entry, absl::MaxSplits('=', 1));
    const auto& [name, value] = variable;
    if (absl::StartsWith(name, "PERCEPTROND_") && !value.empty() && !known.contains(name) &&
        name != "PERCEPTROND_SERVER" && !IsKubernetesVariable(name, value)) {
      unknown.insert(name);
    }
  }
  return {unknown.begin(), unknown.end()};
}

}  // namespace perceptrond
