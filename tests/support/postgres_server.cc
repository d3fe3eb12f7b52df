#include "tests/support/postgres_server.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace perceptrond::testing {
namespace {

constexpr char kPrograms[] = "/usr/lib/postgresql/15/bin/";

// PostgreSQL refuses root.
const passwd* User() { return geteuid() == 0 ? getpwnam("postgres") : nullptr; }

// In a process of its own group, so that its children can be paused with it.
pid_t Run(const std::string& directory, std::vector<std::string> words) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);
  if (const passwd* user = User()) {
    if (setgroups(0, nullptr) != 0 || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0)
      _exit(126);
    // It was forgotten with the user.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
  }
  const int out = open((directory + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  words[0] = kPrograms + words[0];
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

PostgresServer::PostgresServer() {
  if (const passwd* user = User()) {
    if (chown(directory_.path().c_str(), user->pw_uid, user->pw_gid) != 0)
      throw std::runtime_error("cannot give the directory to postgres");
  }
  const pid_t pid =
      Run(directory_.path(), {"initdb", "--no-sync", "--auth=trust", "--username=test",
                              "--encoding=UTF8", "-D", directory_.path() + "/data"});
  int status = 0;
  waitpid(pid, &status, 0);
  if (status != 0) throw std::runtime_error("initdb failed: is postgresql-15 installed?");
  Start();
}

PostgresServer::~PostgresServer() { Kill(); }

std::string PostgresServer::connection() const {
  return absl::StrCat("host=", directory_.path(), " user=test dbname=postgres");
}

std::string PostgresServer::uri(const std::string& database) const {
  return absl::StrCat("postgres://test@/", database,
                      "?host=", absl::StrReplaceAll(directory_.path(), {{"/", "%2F"}}));
}

void PostgresServer::Start() {
  std::filesystem::remove(directory_.path() + "/data/postmaster.pid");
  pid_ = Run(directory_.path(),
             {"postgres", "-D", directory_.path() + "/data", "-k", directory_.path(), "-c",
              "listen_addresses=", "-c", "max_connections=200", "-c", "shared_buffers=16MB"});
  // The socket is there once connections are taken; an answer needs the end of recovery.
  while (true) {
    const pid_t asked =
        Run(directory_.path(), {"pg_isready", "-q", "-h", directory_.path(), "-U", "test"});
    int status = 0;
    waitpid(asked, &status, 0);
    if (status == 0) return;
    if (waitpid(pid_, nullptr, WNOHANG) == pid_) throw std::runtime_error("PostgreSQL has ended");
    absl::SleepFor(absl::Milliseconds(10));
  }
}

void PostgresServer::Signal(int signal) const { killpg(pid_, signal); }

void PostgresServer::Kill() {
  if (pid_ == 0) return;
  Signal(SIGKILL);
  waitpid(pid_, nullptr, 0);
  // Its children notice the end of their parent's pipe.
  pid_ = 0;
}

void PostgresServer::Pause() { Signal(SIGSTOP); }

void PostgresServer::Resume() { Signal(SIGCONT); }

}  // namespace perceptrond::testing
