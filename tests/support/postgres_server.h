// A real PostgreSQL server in a directory of its own, on a Unix socket.
#pragma once

#include <sys/types.h>

#include <string>

#include "tests/support/temp_dir.h"

namespace perceptrond::testing {

class PostgresServer {
 public:
  // Creates a database cluster and starts a server, and waits until it answers.
  PostgresServer();
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  // libpq's keywords.
  std::string connection() const;
  // As an address.
  std::string uri(const std::string& database = "postgres") const;
  // Ends the server at once, as a failure of its process does, or starts it again.
  void Kill();
  void Start();
  // Its processes do nothing until they are resumed.
  void Pause();
  void Resume();

 private:
  void Signal(int signal) const;

  const TempDir directory_;
  pid_t pid_ = 0;
};

}  // namespace perceptrond::testing
