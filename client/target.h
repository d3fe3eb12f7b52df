// Addresses as gRPC takes them.
#pragma once

#include <optional>
#include <string>
#include <vector>

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

// The target for an address, or for several of the form "host:port,host:port", of which the channel
// uses the first that it can connect to, and another when that connection ends. Several names are
// looked up now, which may block; one that is not found is left out.
Target MakeTarget(const std::string& addresses);

// The server that has this address, "host:port"; absent if none has. A name is looked up, which may block.
std::optional<Target> FindServer(const Target& servers, const std::string& address);

}  // namespace perceptrond::client
