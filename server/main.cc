// perceptrond: parses the options, serves until SIGTERM or SIGINT, drains, and exits.
#include <pthread.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "server/config/build_info.h"
#include "server/config/logging.h"
#include "server/config/options.h"
#include "server/server.h"

int main(int argc, char** argv) {
  using perceptrond::Log;
  using perceptrond::LogLevel;

  const perceptrond::ParseResult parsed =
      perceptrond::ParseOptions(std::vector<std::string>(argv + 1, argv + argc));
  if (parsed.exit_code.has_value()) {
    std::fputs(parsed.out.c_str(), stdout);
    std::fputs(parsed.err.c_str(), stderr);
    return *parsed.exit_code;
  }
  const perceptrond::Options& options = parsed.options;
  perceptrond::InitLogging(options.log_level, options.log_format);
  for (const std::string& name : parsed.unknown_variables) {
    Log(LogLevel::kWarning,
        "an environment variable is not a setting and has no effect; see perceptrond --help",
        {{"variable", name}});
  }

  // Turns off Abseil's detection of lock cycles, which Debian's build enables: it enters every lock
  // of this program and of gRPC in a global graph. In tests ThreadSanitizer detects lock cycles.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);

  // Blocked before any thread is created, so that only sigwait below receives them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  // A write beyond the file size limit must fail and not end the process.
  std::signal(SIGXFSZ, SIG_IGN);

  absl::StatusOr<std::unique_ptr<perceptrond::Server>> server = perceptrond::Server::Start(options);
  if (!server.ok()) {
    Log(LogLevel::kError, "cannot start the server", {{"error", server.status().message()}});
    return 1;
  }
  Log(LogLevel::kInfo, "serving",
      {{"version", perceptrond::GetBuildInfo().version},
       {"address", absl::StrJoin((*server)->addresses(), ",")},
       {"metrics_port", (*server)->metrics_port()},
       {"data_dir",
        options.journal == perceptrond::JournalKind::kMemory ? "(memory)" : options.data_dir}});

  int signal = 0;
  sigwait(&signals, &signal);
  Log(LogLevel::kInfo, "draining", {{"signal", signal == SIGTERM ? "SIGTERM" : "SIGINT"}});
  (*server)->Shutdown();
  Log(LogLevel::kInfo, "stopped");
  return 0;
}
