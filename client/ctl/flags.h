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
}  // namespace CLI

namespace CLI {
class Validator;
}  // namespace CLI

namespace CLI {
class App;
}  // namespace CLI

namespace perceptrond::client {

// Appends what stands between the commas, each time that the flag is given. Nothing between two of
// them, or at an end, is an error: what was forgotten cannot be known, and to leave it out would
// move the others. `to` must outlive the parsing of `command`.
CLI::Option* AddListFlag(CLI::App* command, const std::string& flag, std::vector<std::string>* to,
                         const std::string& help);
CLI::Option* AddListFlag(CLI::App* command, const std::string& flag, std::vector<double>* to,
                         const std::string& help);

// A number from `least` to `most`, both finite. CLI::Range lets nan pass.
CLI::Validator Between(double least, double most);

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
