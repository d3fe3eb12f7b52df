#include "tests/support/own_port.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace perceptrond::testing {
namespace {

constexpr int kFirstPort = 20'000;

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

// The file that says which port a test was given last; of the same name and content in tests/deploy/processes.py. It is
// locked until the descriptor is closed.
int OpenTurn() {
  const std::string path = std::filesystem::temp_directory_path() / "perceptrond-test-ports";
  const int turn = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (turn < 0 || flock(turn, LOCK_EX) != 0) {
    std::perror(path.c_str());
    std::abort();
  }
  return turn;
}

}  // namespace

int OwnPort() {
  const int turn = OpenTurn();
  const int end = FirstChosenPort();
  std::string text(16, '\0');
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, read(turn, text.data(), text.size()))));
  // Runs that have a directory each begin anywhere.
  int port = text.empty() ? kFirstPort + getpid() % (end - kFirstPort) : std::atoi(text.c_str());
  int tries = 0;
  do {
    port = port + 1 < end ? port + 1 : kFirstPort;
    if (++tries > end - kFirstPort) {
      std::fprintf(stderr, "no port from %d to %d is free\n", kFirstPort, end - 1);
      std::abort();
    }
  } while (!IsFree(port));
  text = std::to_string(port);
  if (ftruncate(turn, 0) != 0 ||
      pwrite(turn, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    std::perror("perceptrond-test-ports");
    std::abort();
  }
  close(turn);
  return port;
}

}  // namespace perceptrond::testing
