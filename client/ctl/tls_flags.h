// The flags that say how to reach a server that serves TLS.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/connection.h"

namespace CLI {
class App;
}  // namespace CLI

namespace perceptrond::client {

// Must outlive the parsing of its application.
class TlsFlags {
 public:
  void AddTo(CLI::App* app);
  // Absent: none was given. INVALID_ARGUMENT: flags that do not go together, a file that cannot be
  // read or holds no PEM.
  absl::StatusOr<std::optional<TlsOptions>> Read() const;

 private:
  bool tls_ = false;
  std::string ca_;
  std::string certificate_;
  std::string key_;
  std::string server_name_;
};

}  // namespace perceptrond::client
