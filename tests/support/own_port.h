// A port for a server that is stopped and started again at the same address.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>

namespace perceptrond::testing {

// A port of the loopback address that the system gives to nobody else, whoever runs tests there: the calling process
// holds it, bound without listening, until it ends. A server that sets SO_REUSEADDR can listen at it, and one at a time.
inline int OwnPort() {
  const int holder = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (setsockopt(holder, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(holder, any, size) != 0 || getsockname(holder, any, &size) != 0) {
    std::perror("a port for a test");
    std::abort();
  }
  return ntohs(address.sin_port);
}

}  // namespace perceptrond::testing
