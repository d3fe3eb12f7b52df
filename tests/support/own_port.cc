#include "tests/support/own_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace perceptrond::testing {
namespace {

constexpr int kFirstPort = 10'000;
// Of one process: tests of a fleet take some forty. More reach into those of the process that was
// started next.
constexpr int kPortsAProcess = 64;

// The system chooses ports from this one on.
int FirstChosenPort() {
  int first = 32'768;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first;
  return first;
}

bool IsFree(int port) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  // A port whose last connections wait for their end is free for a server.
  const int yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool free =
      bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
      listen(listener, 1) == 0;
  close(listener);
  return free;
}

}  // namespace

int OwnPort() {
  static int next = 0;
  const int ports = FirstChosenPort() - kFirstPort;
  for (int tries = 0; tries < ports; ++tries) {
    const int port =
        kFirstPort + static_cast<int>((int64_t{getpid()} * kPortsAProcess + next++) % ports);
    if (IsFree(port)) return port;
  }
  std::fprintf(stderr, "no port from %d to %d is free\n", kFirstPort, kFirstPort + ports - 1);
  std::abort();
}

}  // namespace perceptrond::testing
