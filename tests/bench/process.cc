#include "tests/bench/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace perceptrond::bench {
namespace {

// The value of ` key=` in a log line.
std::string Field(const std::string& line, const std::string& key) {
  const size_t at = line.find(" " + key + "=");
  if (at == std::string::npos) return "";
  const size_t begin = at + key.size() + 2;
  std::string value = line.substr(begin, line.find_first_of(" \n", begin) - begin);
  if (absl::StartsWith(value, "\"")) value = value.substr(1, value.size() - 2);
  return value;
}

pid_t Spawn(const std::vector<std::string>& command, int log) {
  std::vector<char*> argv;
  for (const std::string& arg : command) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid != 0) return pid;
  // Should the benchmarks abort, their servers go too.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(log, STDERR_FILENO);
  execv(argv[0], argv.data());
  _exit(127);
}

}  // namespace

Process::Process(const std::vector<std::string>& command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
  const auto start = std::chrono::steady_clock::now();
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
    const std::string address = Field(line, "address");
    if (absl::StrContains(line, "serving ") && !address.empty())
      addresses_ = absl::StrSplit(address, ',');
  }
  start_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  // The pipe must not fill up.
  log_reader_ = std::thread([log] {
    char more[4096];
    while (std::fgets(more, sizeof more, log) != nullptr) std::fputs(more, stderr);
    std::fclose(log);
  });
}

Process::~Process() {
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  log_reader_.join();
}

double Process::ResidentBytes() const {
  std::ifstream status(absl::StrCat("/proc/", pid_, "/status"));
  std::string line;
  while (std::getline(status, line)) {
    if (absl::StartsWith(line, "VmRSS:")) return std::strtod(line.c_str() + 6, nullptr) * 1024;
  }
  return 0;
}

std::vector<std::string> RealServerCommand(const std::string& dir) {
  return {PERCEPTROND_BINARY,
          "--address",
          "127.0.0.1:0",
          "--address",
          absl::StrCat("unix:", dir, "/real.sock"),
          "--data-dir",
          dir + "/data",
          "--metrics-address",
          "127.0.0.1:0"};
}

std::vector<std::string> NullServerCommand(const std::string& dir) {
  return {NULL_SERVER_BINARY, "127.0.0.1:0", absl::StrCat("unix:", dir, "/null.sock")};
}

}  // namespace perceptrond::bench
