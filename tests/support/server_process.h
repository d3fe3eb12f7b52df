// The real server, as a process of its own: started, killed, stopped, started again on the same
// data. And other commands, run to their end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace perceptrond::testing {

// The path of perceptronctl.
std::string PerceptronctlBinary();

// Runs until it is stopped or this is destroyed. Listens on free ports of the loopback address. Not
// thread-safe, but for address().
class ServerProcess {
 public:
  // Returns once the server serves. Aborts the test program, with the server's words, if it does
  // not come to that.
  explicit ServerProcess(std::string data_dir, std::vector<std::string> flags = {});

  // The same after a restart. Threads: any.
  const std::string& address() const { return address_; }
  int metrics_port() const;
  pid_t pid() const { return process_->pid(); }

  // See Process.
  std::vector<std::string> Log() const { return process_->Log(); }
  std::string AwaitLog(const std::string& text) const { return process_->AwaitLog(text); }

  void Signal(int signal) const { process_->Signal(signal); }
  // Waits for the end: the exit code, or minus the signal that ended it.
  int Wait() { return process_->Wait(); }
  // SIGKILL and wait.
  void Kill();
  // SIGTERM and wait for the exit code.
  int Terminate();
  // Starts again on the same data and the same port, after Wait.
  void Restart() { process_ = Start(); }

 private:
  std::unique_ptr<Process> Start() const;

  const std::string data_dir_;
  const std::vector<std::string> flags_;
  const std::string address_;
  std::unique_ptr<Process> process_;
};

// What a command printed to standard output, and its exit code.
struct CommandResult {
  int exit_code = 0;
  std::string out;
};
// Runs a shell command with `input` on standard input. Standard error goes where the test's goes.
CommandResult RunCommand(const std::string& command, const std::string& input = "");
// Runs the server's program with these arguments, to its end; with standard error in the output.
CommandResult RunServer(const std::string& arguments);

// The whole file.
std::string ReadAll(const std::string& path);

}  // namespace perceptrond::testing
