// Flags that several commands have, and checks of their values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/connection.h"

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace perceptrond::client {

// Adds a flag whose value is a comma-separated list; each use of the flag appends to *to. An empty
// item is a usage error, because dropping it would shift the items after it. `to` must outlive the
// parsing of `command`.
CLI::Option* AddListFlag(CLI::App* command, const std::string& flag, std::vector<std::string>* to,
                         const std::string& help);
CLI::Option* AddListFlag(CLI::App* command, const std::string& flag, std::vector<double>* to,
                         const std::string& help);

// Accepts numbers in [least, most], both finite. Unlike CLI::Range it does not accept NaN.
CLI::Validator Between(double least, double most);

// The --tls* flags: how to connect to a server that uses TLS. Must outlive the parsing of `app`.
class TlsFlags {
 public:
  void AddTo(CLI::App* app);
  // The options with the files read; absent if no flag was given. INVALID_ARGUMENT: flags that
  // contradict each other, an unreadable file, a file that is not PEM.
  absl::StatusOr<std::optional<TlsOptions>> Read() const;

 private:
  bool tls_ = false;
  std::string ca_;
  std::string certificate_;
  std::string key_;
  std::string server_name_;
};

}  // namespace perceptrond::client
