// The server's config file and environment, as CLI11 is to read them.
#pragma once

#include <CLI/CLI.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace perceptrond {

// The variable that stands for a flag: PERCEPTROND_DATA_DIR for "data-dir".
std::string EnvironmentName(const std::string& flag);

// Its value; null if it is not set or empty.
const char* Environment(const std::string& flag);

// The variables that are set, begin with PERCEPTROND_ and are none of these; not those that are
// another's: perceptronctl's, and what Kubernetes tells every container of a Service that is called
// perceptrond or perceptrond-NAME. In the order of their names.
std::vector<std::string> UnknownVariables(const std::set<std::string>& known);

// CLI11 would let the file win over the environment, ignore keys it does not know, and take the
// first of two values.
class ConfigFile final : public CLI::ConfigBase {
 public:
  explicit ConfigFile(std::set<std::string> keys) : keys_(std::move(keys)) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

 private:
  static void CheckComment(absl::string_view line);
  static CLI::ConfigError Error(const std::string& message);

  const std::set<std::string> keys_;
};

}  // namespace perceptrond
