// Servers that answer a line with a line over TCP: Vowpal Wabbit's daemon, and a bare echo.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/bench/load.h"

namespace perceptrond::bench {

// A process of its own and one connection to it. Not thread-safe.
class LinePeer {
 public:
  // `vw --daemon` of that program, with 2^20 weights.
  static LinePeer VowpalWabbit(const std::string& program);
  // Sends back what it receives.
  static LinePeer Echo();
  LinePeer(LinePeer&& other) noexcept;
  // Ends the process.
  ~LinePeer();

  // Sends `lines` round and round, with at most `kWindow` of them unanswered; answers a second.
  double Rate(const std::vector<std::string>& lines, double seconds);
  // One line after the other, each once the last is answered.
  Latency OneAtATime(const std::vector<std::string>& lines, double seconds);

 private:
  // Enough that the daemon never waits, and that its answers, which it writes one by one, are read
  // many at a time.
  static constexpr size_t kWindow = 256;

  // Connects, for at most 10 s.
  LinePeer(pid_t pid, int port);
  void Send(const std::string& text) const;
  // Waits for answers; how many came.
  size_t Receive() const;

  pid_t pid_;
  int connection_ = -1;
  size_t next_ = 0;
};

}  // namespace perceptrond::bench
