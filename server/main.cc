// perceptrond: parses the options, serves until SIGTERM or SIGINT, drains, and exits. On SIGHUP it
// reads settings and certificates again, as it does when their files change.
#include <pthread.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "server/config/build_info.h"
#include "server/config/file_fingerprint.h"
#include "server/config/logging.h"
#include "server/config/options.h"
#include "server/maintenance/commands.h"
#include "server/server.h"

namespace {

using perceptrond::Log;
using perceptrond::LogLevel;
using perceptrond::Options;

// The next signal; 0 if none comes within a second.
int NextSignal(const sigset_t& signals) {
  const timespec second = {.tv_sec = 1, .tv_nsec = 0};
  for (;;) {
    const int signal = sigtimedwait(&signals, nullptr, &second);
    if (signal > 0) return signal;
    if (errno == EAGAIN) return 0;
  }
}

// Ends the process if the wall clock was set back far. Abseil waits until moments of that clock: threads that
// were waiting then, for milliseconds, would wait for as long as it was set back. What was acknowledged is in the
// journal.
class WallClockGuard {
 public:
  void Check() {
    const auto offset = Offset();
    if (offset + kMost < offset_) {
      Log(LogLevel::kError,
          "the wall clock was set back; exiting, since timers would stand still for as long",
          {{"seconds", std::chrono::duration<double>(offset_ - offset).count()}});
      std::_Exit(1);
    }
    // What it was set back by before, little by little, has passed.
    offset_ = offset;
  }

 private:
  static constexpr std::chrono::seconds kMost{10};

  static std::chrono::nanoseconds Offset() {
    return std::chrono::system_clock::now().time_since_epoch() -
           std::chrono::steady_clock::now().time_since_epoch();
  }

  std::chrono::nanoseconds offset_ = Offset();
};

// Reads the settings again, has those take effect that can, and names the others.
void ReloadOptions(const std::vector<std::string>& args, Options& options,
                   perceptrond::Server& server) {
  const perceptrond::ParseResult parsed = perceptrond::ParseOptions(args);
  if (parsed.exit_code.has_value()) {
    Log(LogLevel::kError, "cannot use the settings; those in use stay", {{"error", parsed.err}});
    return;
  }
  std::vector<std::string> changed = perceptrond::ChangedFlags(options, parsed.options);
  std::erase_if(changed, [](const std::string& flag) {
    return flag == "log-level" || flag == "log-format" || flag == "slow-call";
  });
  options.log_level = parsed.options.log_level;
  options.log_format = parsed.options.log_format;
  options.slow_call = parsed.options.slow_call;
  perceptrond::InitLogging(options.log_level, options.log_format);
  server.SetSlowCall(options.slow_call);
  Log(LogLevel::kInfo, "read the settings again",
      {{"log_level", perceptrond::LogLevelName(options.log_level)}});
  if (!changed.empty()) {
    Log(LogLevel::kWarning, "changed settings take effect at the next start",
        {{"settings", absl::StrJoin(changed, ",")}});
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (perceptrond::IsMaintenance(args)) return perceptrond::RunMaintenance(args);
  const perceptrond::ParseResult parsed = perceptrond::ParseOptions(args);
  if (parsed.exit_code.has_value()) {
    std::fputs(parsed.out.c_str(), stdout);
    std::fputs(parsed.err.c_str(), stderr);
    return *parsed.exit_code;
  }
  perceptrond::FileWatch config(parsed.config_file);
  Options options = parsed.options;
  perceptrond::InitLogging(options.log_level, options.log_format);
  for (const std::string& name : parsed.unknown_variables) {
    Log(LogLevel::kWarning,
        "an environment variable is not a setting and has no effect; see perceptrond --help",
        {{"variable", name}});
  }

  // Turns off Abseil's detection of lock cycles, which Debian's build enables: it enters every lock
  // of this program and of gRPC in a global graph. In tests ThreadSanitizer detects lock cycles.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);

  // Blocked before any thread is created, so that only NextSignal receives them.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
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
       {"data_dir", options.journal == perceptrond::JournalKind::kRocksDb  ? options.data_dir
                    : options.journal == perceptrond::JournalKind::kMemory ? "(memory)"
                                                                           : options.postgres}});

  WallClockGuard clock;
  int signal = 0;
  while (signal != SIGTERM && signal != SIGINT) {
    signal = NextSignal(signals);
    if (signal == SIGHUP) {
      config.OnRead();
      ReloadOptions(args, options, **server);
      (*server)->Reload();
    } else if (signal == 0) {
      clock.Check();
      if (config.HasChanged()) ReloadOptions(args, options, **server);
      (*server)->ReloadChanged();
    }
  }
  Log(LogLevel::kInfo, "draining", {{"signal", signal == SIGTERM ? "SIGTERM" : "SIGINT"}});
  (*server)->Shutdown();
  Log(LogLevel::kInfo, "stopped");
  return 0;
}
