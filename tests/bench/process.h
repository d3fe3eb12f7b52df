// A server in a process of its own, timed from its start until it says that it serves.
#pragma once

#include <sys/types.h>

#include <string>
#include <thread>
#include <vector>

namespace perceptrond::bench {

// Not thread-safe.
class Process {
 public:
  // Returns once the program has logged `serving ... address=A[,B...]` to standard error. Aborts,
  // with the program's words, if it ends before.
  explicit Process(const std::vector<std::string>& command);
  // SIGKILL.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // In the order they were asked for.
  const std::vector<std::string>& addresses() const { return addresses_; }
  // From fork to the line.
  double start_seconds() const { return start_seconds_; }
  double ResidentBytes() const;

 private:
  pid_t pid_ = -1;
  std::vector<std::string> addresses_;
  double start_seconds_ = 0;
  std::thread log_reader_;
};

// Both listen on a free port of the loopback address and on a Unix socket in `dir`.
std::vector<std::string> RealServerCommand(const std::string& dir);
std::vector<std::string> NullServerCommand(const std::string& dir);

}  // namespace perceptrond::bench
