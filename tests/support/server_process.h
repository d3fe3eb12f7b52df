// The real server, as a process of its own: started, killed, stopped, started again on the same
// data.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace perceptrond::testing {

// Runs until it is stopped or this is destroyed. Listens on free ports of the loopback address. Not
// thread-safe.
class ServerProcess {
 public:
  // Returns once the server serves. Aborts the test program, with the server's words, if it does
  // not come to that.
  explicit ServerProcess(std::string data_dir, std::vector<std::string> flags = {});
  // SIGKILL, if it still runs.
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  const std::string& address() const { return address_; }
  int metrics_port() const { return metrics_port_; }
  pid_t pid() const { return pid_; }

  void Signal(int signal) const;
  // Waits for the end: the exit code, or minus the signal that ended it.
  int Wait();
  // SIGKILL and wait.
  void Kill();
  // SIGTERM and wait for the exit code.
  int Terminate();
  // Starts again on the same data and the same port, after Wait.
  void Restart();

 private:
  void Start(const std::string& address);

  const std::string data_dir_;
  const std::vector<std::string> flags_;
  pid_t pid_ = -1;
  std::string address_;
  int metrics_port_ = 0;
  std::thread log_reader_;
};

// What a command printed to standard output, and its exit code.
struct CommandResult {
  int exit_code = 0;
  std::string out;
};
// Runs a shell command with `input` on standard input. Standard error goes where the test's goes.
CommandResult RunCommand(const std::string& command, const std::string& input = "");

}  // namespace perceptrond::testing
