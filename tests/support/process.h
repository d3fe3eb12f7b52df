// A server program in a process of its own, from its start until it says that it serves.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace perceptrond::testing {

// Not thread-safe. The program is killed when the thread that started it ends, if not before.
class Process {
 public:
  // Returns once the program has logged `serving ... address=A[,B...]` to standard error. Aborts,
  // with the program's words, if it ends before. Its later words go to standard error, too.
  explicit Process(const std::vector<std::string>& command);
  // SIGKILL, if it still runs.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // In the order they were asked for.
  const std::vector<std::string>& addresses() const { return addresses_; }
  // The value of ` key=` in the line that said so; "" without one.
  std::string Field(const std::string& key) const;
  pid_t pid() const { return pid_; }

  // What it has logged since, a string for each line.
  std::vector<std::string> Log() const;
  // Waits until there is a line that contains the text, and returns the first; "" if the program ends
  // without one.
  std::string AwaitLog(const std::string& text) const;

  void Signal(int signal) const;
  // Waits for the end: the exit code, or minus the signal that ended it.
  int Wait();

 private:
  // -1 after Wait.
  pid_t pid_ = -1;
  std::string serving_line_;
  std::vector<std::string> addresses_;
  mutable std::mutex mutex_;
  mutable std::condition_variable logged_;
  // Guarded by mutex_.
  std::vector<std::string> log_;
  bool log_ended_ = false;
  std::thread log_reader_;
};

}  // namespace perceptrond::testing
