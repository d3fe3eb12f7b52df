#include "tests/support/server_process.h"

#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/own_port.h"
#include "tests/support/temp_dir.h"

namespace perceptrond::testing {

std::string PerceptronctlBinary() { return PERCEPTRONCTL_BINARY; }

ServerProcess::ServerProcess(std::string data_dir, std::vector<std::string> flags)
    : data_dir_(std::move(data_dir)),
      flags_(std::move(flags)),
      address_(absl::StrCat("127.0.0.1:", OwnPort())),
      process_(Start()) {}

std::unique_ptr<Process> ServerProcess::Start() const {
  std::vector<std::string> command = {PERCEPTROND_BINARY, "--address", address_, "--data-dir",
                                      data_dir_};
  const bool has_metrics_address = absl::c_any_of(
      flags_, [](const std::string& flag) { return absl::StartsWith(flag, "--metrics-address"); });
  if (!has_metrics_address) command.emplace_back("--metrics-address=127.0.0.1:0");
  command.insert(command.end(), flags_.begin(), flags_.end());
  return std::make_unique<Process>(command);
}

int ServerProcess::metrics_port() const {
  return std::atoi(process_->Field("metrics_port").c_str());
}

void ServerProcess::Kill() {
  Signal(SIGKILL);
  Wait();
}

int ServerProcess::Terminate() {
  Signal(SIGTERM);
  return Wait();
}

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

CommandResult RunServer(const std::string& arguments) {
  // What names the tests' data is no setting of the server's, and it would say so.
  return RunCommand("env -u PERCEPTROND_DATA " + std::string(PERCEPTROND_BINARY) + " " + arguments +
                    " 2>&1");
}

std::string ReadAll(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  return content.str();
}

}  // namespace perceptrond::testing
