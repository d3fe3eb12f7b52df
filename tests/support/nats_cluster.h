// Real nats-servers with JetStream on the loopback address, in a directory of their own.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/support/temp_dir.h"

namespace perceptrond::testing {

class NatsCluster {
 public:
  // Starts this many servers; one is no cluster. Does not wait until they have a leader.
  explicit NatsCluster(int servers);
  ~NatsCluster();
  NatsCluster(const NatsCluster&) = delete;
  NatsCluster& operator=(const NatsCluster&) = delete;

  int size() const { return static_cast<int>(servers_.size()); }
  // "nats://127.0.0.1:4222", of one server and of all.
  std::string url(int server) const;
  std::vector<std::string> urls() const;

  // By SIGKILL. The server's directory stays.
  void Kill(int server);
  void Start(int server);

 private:
  static std::string NameOf(int server);

  struct Server {
    int port = 0;
    int cluster_port = 0;
    pid_t pid = 0;
  };

  const TempDir directory_;
  std::vector<Server> servers_;
};

}  // namespace perceptrond::testing
