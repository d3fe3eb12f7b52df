// Addresses as gRPC takes them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace perceptrond::client {

// Where a channel connects to.
struct Target {
  // In gRPC's form.
  std::string address;
  // The host whose name the certificates of several servers have; empty for one server.
  std::string host;
  // Of several servers: their numeric addresses.
  std::vector<std::string> servers;
};

// The addresses as gRPC takes them, of which people write HOST, HOST:PORT, several between commas, IPv6 addresses with
// brackets or without, and space around; the default port is 7600. Of gRPC's own forms unix:PATH, dns:///HOST:PORT and
// ipv4:ADDRESS:PORT,... are taken, whose hosts and ports are read alike. INVALID_ARGUMENT: what is wrong with one, such as its port.
absl::StatusOr<std::string> ReadAddresses(const std::string& addresses);

// The target for an address, or for several of the form "host:port,host:port", of which the channel
// uses the first that it can connect to, and another when that connection ends. Several names are
// looked up now, which may block; one that is not found is left out.
Target MakeTarget(const std::string& addresses);

// Whether a channel to these addresses takes no proxy that the environment names (http_proxy): it is to this machine, or
// to several servers, of which a proxy would get the list.
bool GoesDirect(const std::string& addresses);

// The variable of the environment that names the proxy of such a channel otherwise; empty: none is set.
std::string ProxyVariable();

// The server that has this address, "host:port"; absent if none has. A name is looked up, which may block.
std::optional<Target> FindServer(const Target& servers, const std::string& address);

}  // namespace perceptrond::client
