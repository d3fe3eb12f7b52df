// The server's settings, from flags, environment and a config file, in this order of precedence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/model/committer.h"
#include "server/config/logging.h"

namespace perceptrond {

enum class JournalKind : uint8_t { kRocksDb, kMemory };

// Defaults are those of the fields; meaning, unit and range of each are in options.cc, as --help
// prints them.
struct Options {
  std::vector<std::string> addresses = {"127.0.0.1:7600"};
  std::string data_dir = "./perceptrond-data";
  JournalKind journal = JournalKind::kRocksDb;
  Durability durability = Durability::kSync;
  absl::Duration durability_interval = absl::Milliseconds(100);
  uint64_t memory_budget = uint64_t{1} << 30;
  uint64_t max_message_bytes = uint64_t{16} << 20;
  uint64_t max_in_flight_messages = 1024;
  uint64_t max_in_flight_bytes = uint64_t{16} << 20;
  uint64_t max_example_features = uint64_t{1} << 20;
  uint64_t snapshot_bytes = uint64_t{4} << 20;
  // Empty: no endpoint.
  std::string metrics_address = "127.0.0.1:7601";
  uint64_t metrics_max_models = 1000;
  // Beside the metrics; none where there are none.
  bool status_page = true;
  absl::Duration busy_poll = absl::Microseconds(100);
  absl::Duration drain_timeout = absl::Seconds(30);
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kText;
  // PEM files; empty: none. Certificate and key are both set or both empty; a client CA only with
  // them.
  std::string tls_cert;
  std::string tls_key;
  std::string tls_client_ca;
};

struct ParseResult {
  Options options;
  // Set: print `out` and `err` and exit with it. 0 for --help, --version and --print-config, 2 for
  // an error.
  std::optional<int> exit_code;
  std::string out;
  std::string err;
  // Variables of the environment that look like settings and are none: misspelt, or of another
  // version. No error, since others may name variables likewise; to be told. --print-config tells
  // them in `err`.
  std::vector<std::string> unknown_variables;
};

// Parses the arguments (without the program's name) and the environment variables
// PERCEPTROND_<FLAG>; an empty variable counts as unset. Reads the config file if one is named.
// Never exits and never prints.
ParseResult ParseOptions(const std::vector<std::string>& args);

// The options in config-file form: given to --config, it yields the same options.
std::string ConfigText(const Options& options);

// Whether only this machine can reach the address: a Unix socket, localhost, 127.0.0.0/8 or ::1.
// Addresses as --address takes them.
bool IsLoopback(absl::string_view address);

}  // namespace perceptrond
