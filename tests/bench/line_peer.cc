#include "tests/bench/line_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace perceptrond::bench {
namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A socket on a free port.
std::pair<int, int> BindToFreePort() {
  const int bound = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  if (bind(bound, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      getsockname(bound, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    std::abort();
  return {bound, ntohs(address.sin_port)};
}

void SetNoDelay(int connection) {
  const int on = 1;
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

[[noreturn]] void ServeEcho(int listening) {
  const int connection = accept(listening, nullptr, nullptr);
  SetNoDelay(connection);
  static char part[64 << 10];
  for (ssize_t got = 0; (got = read(connection, part, sizeof part)) > 0;) {
    for (ssize_t sent = 0; sent < got;) {
      const ssize_t written = write(connection, part + sent, static_cast<size_t>(got - sent));
      if (written <= 0) _exit(1);
      sent += written;
    }
  }
  _exit(0);
}

}  // namespace

LinePeer LinePeer::VowpalWabbit(const std::string& program) {
  const auto [bound, port] = BindToFreePort();
  close(bound);
  const std::string number = absl::StrCat(port);
  const pid_t pid = fork();
  if (pid == 0) {
    // Its child, which serves, ends with it after SIGTERM alone.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    execl(program.c_str(), program.c_str(), "--daemon", "--foreground", "--num_children", "1",
          "--port", number.c_str(), "-b", "20", "--holdout_off", "--quiet", nullptr);
    _exit(127);
  }
  return LinePeer(pid, port);
}

LinePeer LinePeer::Echo() {
  const auto [bound, port] = BindToFreePort();
  if (listen(bound, 1) != 0) std::abort();
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ServeEcho(bound);
  }
  close(bound);
  return LinePeer(pid, port);
}

LinePeer::LinePeer(pid_t pid, int port) : pid_(pid) {
  const sockaddr_in address = Loopback(port);
  for (int tries = 0; tries < 1000; ++tries) {
    connection_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(connection_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      SetNoDelay(connection_);
      return;
    }
    close(connection_);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::fprintf(stderr, "no server of lines on port %d\n", port);
  std::abort();
}

LinePeer::LinePeer(LinePeer&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      connection_(std::exchange(other.connection_, -1)),
      next_(other.next_) {}

LinePeer::~LinePeer() {
  if (pid_ < 0) return;
  close(connection_);
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
}

void LinePeer::Send(const std::string& text) const {
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t written = write(connection_, text.data() + sent, text.size() - sent);
    if (written <= 0) std::abort();
    sent += static_cast<size_t>(written);
  }
}

size_t LinePeer::Receive() const {
  char part[16 << 10];
  const ssize_t got = read(connection_, part, sizeof part);
  if (got <= 0) std::abort();
  return static_cast<size_t>(std::count(part, part + got, '\n'));
}

double LinePeer::Rate(const std::vector<std::string>& lines, double seconds) {
  size_t unanswered = 0;
  uint64_t answered = 0;
  std::string text;
  const Clock::time_point start = Clock::now();
  while (Since(start) < seconds) {
    text.clear();
    for (; unanswered < kWindow; ++unanswered) {
      text += lines[next_];
      next_ = (next_ + 1) % lines.size();
    }
    Send(text);
    while (unanswered > kWindow / 2) {
      const size_t got = Receive();
      unanswered -= got;
      answered += got;
    }
  }
  while (unanswered > 0) {
    const size_t got = Receive();
    unanswered -= got;
    answered += got;
  }
  return static_cast<double>(answered) / Since(start);
}

Latency LinePeer::OneAtATime(const std::vector<std::string>& lines, double seconds) {
  std::vector<double> taken;
  const Clock::time_point start = Clock::now();
  while (taken.empty() || Since(start) < seconds) {
    const Clock::time_point asked = Clock::now();
    Send(lines[next_]);
    while (Receive() == 0) {
    }
    taken.push_back(Since(asked));
    next_ = (next_ + 1) % lines.size();
  }
  return Summarize(std::move(taken));
}

}  // namespace perceptrond::bench
