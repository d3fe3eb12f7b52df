// Whether this machine has IPv6: many containers do not.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace perceptrond::testing {

inline bool HasIpv6() {
  const int descriptor = socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  const bool bound =
      bind(descriptor, reinterpret_cast<const sockaddr*>(&loopback), sizeof loopback) == 0;
  close(descriptor);
  return bound;
}

}  // namespace perceptrond::testing
