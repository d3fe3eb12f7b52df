// The server's settings and the flags that set them. Flags take precedence over the environment,
// and that over a config file. To add a flag, add one entry to the list in options.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/config/logging.h"

namespace perceptrond {

enum class JournalKind : uint8_t { kRocksDb, kMemory, kPostgres };

// kAuto: kSync. kInterval and kNone are for kRocksDb alone, kReplicated and kExternal for kPostgres.
enum class DurabilityChoice : uint8_t { kAuto, kSync, kInterval, kNone, kReplicated, kExternal };

// The fields have the default values. Meaning, unit and range of each are in options.cc, from
// which --help prints them.
struct Options {
  std::vector<std::string> addresses = {"127.0.0.1:7600"};
  std::string data_dir = "./perceptrond-data";
  // Empty if the server makes no backups.
  std::string backup_dir;
  bool accept_data_loss = false;
  JournalKind journal = JournalKind::kRocksDb;
  // For kPostgres: the database's URI.
  std::string postgres;
  // The fleet, with kPostgres.
  std::string fleet = "perceptrond";
  std::string fleet_address = "127.0.0.1:7602";
  // Empty: the host of fleet_address, with the port of the first TCP address.
  std::string client_address;
  // Empty: fleet_address.
  std::string fleet_advertise;
  uint64_t fleet_partitions = 16;
  absl::Duration fleet_timeout = absl::Seconds(2);
  absl::Duration fleet_max_lag = absl::Seconds(30);
  // Paths, all set or none.
  std::string fleet_cert;
  std::string fleet_key;
  std::string fleet_ca;
  DurabilityChoice durability = DurabilityChoice::kAuto;
  absl::Duration durability_interval = absl::Milliseconds(100);
  uint64_t memory_budget = uint64_t{1} << 30;
  // 0: what models in use leave of memory_budget, at least a quarter.
  uint64_t in_flight_budget = 0;
  absl::Duration write_timeout = absl::Seconds(30);
  uint64_t max_models = 100'000;
  uint64_t max_model_features = uint64_t{1} << 28;
  uint64_t max_producers = 10000;
  uint64_t max_message_bytes = uint64_t{16} << 20;
  uint64_t max_in_flight_messages = 1024;
  uint64_t max_in_flight_bytes = uint64_t{16} << 20;
  uint64_t max_example_features = uint64_t{1} << 20;
  uint64_t max_message_cost = uint64_t{4'000'000'000};
  uint64_t max_queued_calls = 1024;
  absl::Duration max_queue_wait = absl::Milliseconds(10);
  absl::Duration max_analysis_time = absl::Minutes(15);
  uint64_t max_queued_analyses = 64;
  uint64_t snapshot_bytes = uint64_t{4} << 20;
  uint64_t max_history_bytes = uint64_t{256} << 20;
  // Empty if metrics are off.
  std::string metrics_address = "127.0.0.1:7601";
  // Names by which metrics and page may be asked for. Empty: on loopback none, elsewhere any.
  std::vector<std::string> metrics_hosts;
  uint64_t metrics_max_models = 1000;
  // Needs the metrics address and TLS.
  bool metrics_tls = false;
  // Needs the metrics address.
  bool status_page = true;
  // 0: as many as descriptors allow; see ConnectionLimits.
  uint64_t max_connections = 0;
  uint64_t max_connections_per_address = 0;
  uint64_t max_streams_per_connection = 1000;
  uint64_t max_streams = 10000;
  absl::Duration receive_timeout = absl::Minutes(5);
  // Zero: never.
  absl::Duration max_connection_idle = absl::Minutes(15);
  absl::Duration max_connection_age = absl::ZeroDuration();
  absl::Duration self_probe_interval = absl::Seconds(10);
  absl::Duration busy_poll = absl::Microseconds(100);
  absl::Duration drain_timeout = absl::Seconds(30);
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kText;
  // Zero: slow calls are not logged.
  absl::Duration slow_call = absl::Seconds(1);
  // Paths of PEM files, or empty. Certificate and key are both set or both empty; the client CA is
  // set only with them.
  std::string tls_cert;
  std::string tls_key;
  std::string tls_client_ca;
  // Path, or empty: every client may do everything.
  std::string access_file;
  // Of each principal of the access file that has no other limit; 0: none.
  uint64_t max_examples_per_second = 0;
  // Path, or empty: administrative calls are recorded in the log.
  std::string audit_log;
  // Whether other machines may reach an address without TLS and authentication.
  bool insecure = false;
};

struct ParseResult {
  Options options;
  // If set, the caller prints `out` and `err` and exits with this code: 0 for --help, --version and
  // --print-config, 2 for an error.
  std::optional<int> exit_code;
  // The path that --config names; empty without it.
  std::string config_file;
  std::string out;
  std::string err;
  // Environment variables that are named like settings and are none: misspelt, or of another
  // version. The caller should log them; they are no error, since other software may use such
  // names. With --print-config they are in `err`.
  std::vector<std::string> unknown_variables;
};

// Parses the arguments (without the program's name) and the environment variables
// PERCEPTROND_<FLAG>; an empty variable counts as not set. Reads the config file if one is named.
// Does not exit or print.
ParseResult ParseOptions(const std::vector<std::string>& args);

// The options in the form of a config file, from which --config reads the same options.
std::string ConfigText(const Options& options);

// The names of the flags whose values differ.
std::vector<std::string> ChangedFlags(const Options& before, const Options& after);

struct Flag {
  std::string name;
  // The form of its value in --help: "HOST:PORT", "N".
  std::string form;
  std::string help;
  // Whether it may be given more than once.
  bool repeatable = false;
  // Whether it may be given without a value, which stands for true.
  bool is_switch = false;
  // Sets the field from the given values. Returns what values are expected if they are invalid, and
  // an empty string otherwise.
  std::function<std::string(const std::vector<std::string>&)> set;
  // The current value in the form of a config file.
  std::function<std::string()> get;
};

// The flags, each bound to its field of `options`, which must outlive them.
std::vector<Flag> MakeFlags(Options* options);

}  // namespace perceptrond
