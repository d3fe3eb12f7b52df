#include "tests/support/process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace perceptrond::testing {
namespace {

// Servers call each other, and no proxy that the environment names, which here answers nobody.
std::vector<std::string> Environment() {
  std::vector<std::string> variables = {"http_proxy=http://127.0.0.1:9"};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string name = std::string(*variable).substr(0, std::string(*variable).find('='));
    if (!absl::EndsWithIgnoreCase(name, "_proxy")) variables.emplace_back(*variable);
  }
  return variables;
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& one : strings) pointers.push_back(const_cast<char*>(one.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

pid_t Spawn(const std::vector<std::string>& command, int log) {
  const std::vector<char*> argv = Pointers(command);
  const std::vector<std::string> environment = Environment();
  const std::vector<char*> variables = Pointers(environment);
  const pid_t pid = fork();
  if (pid != 0) return pid;
  // Should the parent abort, its servers go too.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(log, STDERR_FILENO);
  execve(argv[0], argv.data(), variables.data());
  _exit(127);
}

}  // namespace

Process::Process(const std::vector<std::string>& command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
  pid_ = Spawn(command, ends[1]);
  close(ends[1]);
  std::FILE* const log = fdopen(ends[0], "r");
  std::string seen;
  char line[4096];
  while (addresses_.empty()) {
    if (std::fgets(line, sizeof line, log) == nullptr) {
      std::fprintf(stderr, "%s did not start:\n%s", command[0].c_str(), seen.c_str());
      std::abort();
    }
    seen += line;
    serving_line_ = line;
    const std::string address = Field("address");
    if (absl::StrContains(line, "serving ") && !address.empty())
      addresses_ = absl::StrSplit(address, ',');
  }
  // The pipe must not fill up.
  log_reader_ = std::thread([this, log] {
    char more[4096];
    while (std::fgets(more, sizeof more, log) != nullptr) {
      std::fputs(more, stderr);
      const std::lock_guard<std::mutex> lock(mutex_);
      log_.emplace_back(more);
      logged_.notify_all();
    }
    std::fclose(log);
    const std::lock_guard<std::mutex> lock(mutex_);
    log_ended_ = true;
    logged_.notify_all();
  });
}

Process::~Process() {
  if (pid_ <= 0) return;
  Signal(SIGKILL);
  Wait();
}

std::string Process::Field(const std::string& key) const {
  const size_t at = serving_line_.find(" " + key + "=");
  if (at == std::string::npos) return "";
  const size_t begin = at + key.size() + 2;
  std::string value =
      serving_line_.substr(begin, serving_line_.find_first_of(" \n", begin) - begin);
  if (absl::StartsWith(value, "\"")) value = value.substr(1, value.size() - 2);
  return value;
}

std::vector<std::string> Process::Log() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return log_;
}

std::string Process::AwaitLog(const std::string& text) const {
  std::unique_lock<std::mutex> lock(mutex_);
  auto found = log_.end();
  logged_.wait(lock, [&] {
    found = std::find_if(log_.begin(), log_.end(),
                         [&](const std::string& line) { return absl::StrContains(line, text); });
    return found != log_.end() || log_ended_;
  });
  return found == log_.end() ? "" : *found;
}

void Process::Signal(int signal) const { kill(pid_, signal); }

int Process::Wait() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  log_reader_.join();
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace perceptrond::testing
