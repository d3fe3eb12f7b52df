#include "tests/support/nats_cluster.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/support/own_port.h"

namespace perceptrond::testing {

NatsCluster::NatsCluster(int servers) : servers_(static_cast<size_t>(servers)) {
  std::string routes;
  for (Server& server : servers_) {
    server.port = OwnPort();
    server.cluster_port = OwnPort();
    absl::StrAppend(&routes, routes.empty() ? "" : ", ", "nats://127.0.0.1:", server.cluster_port);
  }
  for (int i = 0; i < size(); ++i) {
    std::ofstream config(absl::StrCat(directory_.path(), "/", NameOf(i), ".conf"));
    config << "server_name: " << NameOf(i) << "\nlisten: 127.0.0.1:" << servers_[i].port
           << "\njetstream { store_dir: \"" << directory_.path() << "/" << NameOf(i)
           << "\", max_memory_store: 256MB, max_file_store: 1GB }\n";
    if (size() > 1) {
      config << "cluster { name: c, listen: 127.0.0.1:" << servers_[i].cluster_port
             << ", routes: [ " << routes << "] }\n";
    }
    config.close();
    Start(i);
  }
}

NatsCluster::~NatsCluster() {
  for (int i = 0; i < size(); ++i) Kill(i);
}

std::string NatsCluster::NameOf(int server) { return absl::StrCat("n", server); }

std::string NatsCluster::url(int server) const {
  return absl::StrCat("nats://127.0.0.1:", servers_[static_cast<size_t>(server)].port);
}

std::vector<std::string> NatsCluster::urls() const {
  std::vector<std::string> urls;
  for (int i = 0; i < size(); ++i) urls.push_back(url(i));
  return urls;
}

void NatsCluster::Start(int server) {
  const std::string base = absl::StrCat(directory_.path(), "/", NameOf(server));
  const std::string config = base + ".conf";
  const std::string log = base + ".log";
  const pid_t pid = fork();
  if (pid == 0) {
    // Should the test abort, its servers go too.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    execlp("nats-server", "nats-server", "--config", config.c_str(), nullptr);
    _exit(127);
  }
  servers_[static_cast<size_t>(server)].pid = pid;
}

void NatsCluster::Kill(int server) {
  pid_t& pid = servers_[static_cast<size_t>(server)].pid;
  if (pid == 0) return;
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  pid = 0;
}

}  // namespace perceptrond::testing
