#include "tests/support/server_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "tests/support/temp_dir.h"

namespace perceptrond::testing {
namespace {

// The value of ` key=` in a log line.
std::string Field(const std::string& line, const std::string& key) {
  const size_t at = line.find(" " + key + "=");
  if (at == std::string::npos) return "";
  const size_t begin = at + key.size() + 2;
  return line.substr(begin, line.find_first_of(" \n", begin) - begin);
}

}  // namespace

ServerProcess::ServerProcess(std::string data_dir, std::vector<std::string> flags)
    : data_dir_(std::move(data_dir)), flags_(std::move(flags)) {
  Start("127.0.0.1:0");
}

ServerProcess::~ServerProcess() {
  if (pid_ > 0) Kill();
}

void ServerProcess::Start(const std::string& address) {
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) std::abort();
  std::vector<std::string> args = {PERCEPTROND_BINARY, "--address", address,
                                   "--data-dir",       data_dir_,   "--metrics-address",
                                   "127.0.0.1:0"};
  args.insert(args.end(), flags_.begin(), flags_.end());
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(pipe_ends[1], STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(pipe_ends[1]);
  std::FILE* const log = fdopen(pipe_ends[0], "r");
  std::string seen;
  char line[4096];
  while (true) {
    if (std::fgets(line, sizeof line, log) == nullptr) {
      std::fprintf(stderr, "the server did not start:\n%s", seen.c_str());
      std::abort();
    }
    seen += line;
    address_ = Field(line, "address");
    if (seen.find(" serving ") != std::string::npos && !address_.empty()) break;
  }
  metrics_port_ = std::atoi(Field(line, "metrics_port").c_str());
  // The pipe must not fill up; what the server says afterwards belongs to the test's own output.
  log_reader_ = std::thread([log] {
    char more[4096];
    while (std::fgets(more, sizeof more, log) != nullptr) std::fputs(more, stderr);
    std::fclose(log);
  });
}

void ServerProcess::Signal(int signal) const { kill(pid_, signal); }

int ServerProcess::Wait() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  log_reader_.join();
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void ServerProcess::Kill() {
  Signal(SIGKILL);
  Wait();
}

int ServerProcess::Terminate() {
  Signal(SIGTERM);
  return Wait();
}

void ServerProcess::Restart() { Start(address_); }

CommandResult RunCommand(const std::string& command, const std::string& input) {
  const TempDir dir;
  const std::string in = dir.path() + "/in";
  std::ofstream(in, std::ios::binary) << input;
  CommandResult result;
  std::FILE* const pipe = popen(("( " + command + " ) < " + in).c_str(), "r");
  char buffer[4096];
  size_t got = 0;
  while ((got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0) result.out.append(buffer, got);
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return result;
}

}  // namespace perceptrond::testing
