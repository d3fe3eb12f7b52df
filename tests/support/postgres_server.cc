#include "tests/support/postgres_server.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace perceptrond::testing {
namespace {

constexpr char kPrograms[] = "/usr/lib/postgresql/15/bin/";

// PostgreSQL refuses root.
const passwd* User() { return geteuid() == 0 ? getpwnam("postgres") : nullptr; }

std::string NotifyPath(const std::string& directory) { return directory + "/notify"; }

pid_t Run(const std::string& directory, std::vector<std::string> words) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (const passwd* user = User()) {
    if (setgroups(0, nullptr) != 0 || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0)
      _exit(126);
    // It was forgotten with the user.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
  }
  const int out = open((directory + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  setenv("NOTIFY_SOCKET", NotifyPath(directory).c_str(), 1);
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
  // Where the server says that it is ready, as systemd's services do.
  const std::string path = NotifyPath(directory_.path());
  std::filesystem::remove(path);
  const int notices = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  if (bind(notices, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      chmod(path.c_str(), 0666) != 0)
    throw std::runtime_error("cannot listen at " + path);
  pid_ = Run(directory_.path(),
             {"postgres", "-D", directory_.path() + "/data", "-k", directory_.path(), "-c",
              "listen_addresses=", "-c", "max_connections=200", "-c", "shared_buffers=16MB", "-c",
              // Other memory would outlive a server that is killed.
              "dynamic_shared_memory_type=mmap"});
  const int ended = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  pollfd waits[] = {{notices, POLLIN, 0}, {ended, POLLIN, 0}};
  std::string notice(4096, '\0');
  while (!absl::StrContains(notice, "READY=1") && waits[1].revents == 0) {
    if (poll(waits, 2, -1) < 0 || waits[0].revents == 0) continue;
    notice.resize(4096);
    notice.resize(std::max<ssize_t>(recv(notices, notice.data(), notice.size(), 0), 0));
  }
  close(notices);
  close(ended);
  if (waits[1].revents != 0) throw std::runtime_error("PostgreSQL has ended");
}

void PostgresServer::Signal(int signal) const {
  // It begins no other process meanwhile.
  kill(pid_, SIGSTOP);
  std::ifstream children(absl::StrCat("/proc/", pid_, "/task/", pid_, "/children"));
  for (pid_t child = 0; children >> child;) kill(child, signal);
  kill(pid_, signal);
}

void PostgresServer::Kill() {
  if (pid_ == 0) return;
  Signal(SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = 0;
  // The segment that shows that its data is in use outlives its processes. The seventh line of the file has its number.
  std::ifstream file(directory_.path() + "/data/postmaster.pid");
  std::string line;
  for (int i = 0; i < 6; ++i) std::getline(file, line);
  int64_t key = 0;
  int segment = 0;
  if (file >> key >> segment) shmctl(segment, IPC_RMID, nullptr);
}

void PostgresServer::Pause() { Signal(SIGSTOP); }

void PostgresServer::Resume() { Signal(SIGCONT); }

}  // namespace perceptrond::testing
