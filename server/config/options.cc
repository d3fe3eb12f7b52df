#include "server/config/options.h"

#include <unistd.h>

#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/config/endpoint.h"

namespace perceptrond {
namespace {

constexpr uint64_t kKiB = uint64_t{1} << 10;
constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kTiB = uint64_t{1} << 40;

constexpr std::pair<const char*, uint64_t> kByteUnits[] = {
    {"TiB", kTiB}, {"GiB", kGiB}, {"MiB", kMiB}, {"KiB", kKiB}};

std::optional<uint64_t> ParseBytes(absl::string_view text) {
  uint64_t unit = 1;
  for (const auto& [suffix, size] : kByteUnits) {
    if (absl::EndsWithIgnoreCase(text, suffix)) {
      unit = size;
      text.remove_suffix(3);
      break;
    }
  }
  uint64_t number;
  if (text.empty() || !absl::ascii_isdigit(text.front()) || !absl::SimpleAtoi(text, &number) ||
      number > std::numeric_limits<uint64_t>::max() / unit) {
    return std::nullopt;
  }
  return number * unit;
}

// In the largest unit that divides the number.
std::string FormatBytes(uint64_t bytes) {
  for (const auto& [suffix, size] : kByteUnits) {
    if (bytes >= size && bytes % size == 0) return absl::StrCat(bytes / size, suffix);
  }
  return absl::StrCat(bytes);
}

// The value as a config file's string.
std::string Quoted(absl::string_view value) {
  const char quote = value.find('"') == absl::string_view::npos ? '"' : '\'';
  const std::string mark(1, quote);
  return absl::StrCat(mark, value, mark);
}

// Builds the list of flags. Each method adds a flag of one kind.
class FlagList {
 public:
  explicit FlagList(Options* options);

  std::vector<Flag> Take() { return std::move(flags_); }

 private:
  using Set = std::function<std::string(const std::string&)>;

  void Add(std::string name, std::string form, std::string help, Set set,
           std::function<std::string()> get) {
    auto set_one = [set = std::move(set)](const std::vector<std::string>& values) {
      return set(values.back());
    };
    flags_.push_back({std::move(name), std::move(form), std::move(help), false, std::move(set_one),
                      std::move(get)});
  }

  void Number(const std::string& name, const std::string& unit, uint64_t* field, uint64_t min,
              uint64_t max, const std::string& help) {
    const std::string range = absl::StrCat("from ", min, " to ", max);
    Add(
        name, "N", absl::StrCat(help, "\n", unit, ", ", range, "; default ", *field, "."),
        [=](const std::string& value) {
          uint64_t number;
          const bool ok = !value.empty() && absl::ascii_isdigit(value.front()) &&
                          absl::SimpleAtoi(value, &number) && min <= number && number <= max;
          if (!ok) return absl::StrCat("expected a whole number ", range);
          *field = number;
          return std::string();
        },
        [=] { return absl::StrCat(*field); });
  }

  void Bytes(const std::string& name, uint64_t* field, uint64_t min, uint64_t max,
             const std::string& help) {
    const std::string range = absl::StrCat("from ", FormatBytes(min), " to ", FormatBytes(max));
    Add(
        name, "SIZE",
        absl::StrCat(help, "\nBytes, or with KiB, MiB, GiB, TiB; ", range, "; default ",
                     FormatBytes(*field), "."),
        [=](const std::string& value) {
          const std::optional<uint64_t> bytes = ParseBytes(value);
          if (!bytes || *bytes < min || *bytes > max) {
            return absl::StrCat(
                "expected a whole number of bytes, or one with KiB, MiB, GiB or TiB, ", range);
          }
          *field = *bytes;
          return std::string();
        },
        [=] { return Quoted(FormatBytes(*field)); });
  }

  void Time(const std::string& name, absl::Duration* field, absl::Duration min, absl::Duration max,
            const std::string& help) {
    const std::string range =
        absl::StrCat("from ", absl::FormatDuration(min), " to ", absl::FormatDuration(max));
    Add(
        name, "DURATION",
        absl::StrCat(help, "\nA number with us, ms, s, m or h; ", range, "; default ",
                     absl::FormatDuration(*field), "."),
        [=](const std::string& value) {
          absl::Duration duration;
          if (!absl::ParseDuration(value, &duration) || duration < min || duration > max) {
            return absl::StrCat("expected a duration like 100ms, 2s or 1m30s, ", range);
          }
          *field = duration;
          return std::string();
        },
        [=] { return Quoted(absl::FormatDuration(*field)); });
  }

  template <typename Enum>
  void Choice(const std::string& name, Enum* field,
              std::vector<std::pair<std::string, Enum>> choices, const std::string& help) {
    const auto name_of = [choices](Enum value) {
      for (const auto& [choice, meant] : choices) {
        if (meant == value) return choice;
      }
      return std::string();
    };
    std::vector<std::string> names;
    for (const auto& [choice, meant] : choices) names.push_back(choice);
    const std::string range = absl::StrJoin(names, "|");
    Add(
        name, range, absl::StrCat(help, "\nDefault ", name_of(*field), "."),
        [=](const std::string& value) {
          for (const auto& [choice, meant] : choices) {
            if (choice != value) continue;
            *field = meant;
            return std::string();
          }
          return absl::StrCat("expected one of ", absl::StrJoin(names, ", "));
        },
        [=] { return Quoted(name_of(*field)); });
  }

  void Addresses(const std::string& name, std::vector<std::string>* field, const std::string& help);
  void MetricsAddress(const std::string& name, std::string* field, const std::string& help);
  void Directory(const std::string& name, std::string* field, const std::string& help);
  void File(const std::string& name, std::string* field, const std::string& help);

  std::vector<Flag> flags_;
};

void FlagList::Addresses(const std::string& name, std::vector<std::string>* field,
                         const std::string& help) {
  const auto set = [field](const std::vector<std::string>& values) -> std::string {
    std::vector<std::string> addresses;
    for (const std::string& value : values) {
      for (const absl::string_view part : absl::StrSplit(value, ',')) {
        const absl::string_view address = absl::StripAsciiWhitespace(part);
        if (!IsAddress(address)) {
          return "expected HOST:PORT or [IPV6]:PORT with a port from 0 to 65535, or unix:PATH";
        }
        addresses.emplace_back(address);
      }
    }
    *field = std::move(addresses);
    return "";
  };
  const auto get = [field] {
    return absl::StrCat("[",
                        absl::StrJoin(*field, ", ",
                                      [](std::string* out, const std::string& address) {
                                        out->append(Quoted(address));
                                      }),
                        "]");
  };
  flags_.push_back({name, "ADDRESS,...",
                    absl::StrCat(help, "\nDefault ", absl::StrJoin(*field, ","), "."), true, set,
                    get});
}

void FlagList::MetricsAddress(const std::string& name, std::string* field,
                              const std::string& help) {
  Add(
      name, "HOST:PORT|off", absl::StrCat(help, "\nDefault ", *field, "."),
      [field](const std::string& value) -> std::string {
        if (value.empty() || value == "off") {
          field->clear();
          return "";
        }
        if (!HostOf(value)) return "expected HOST:PORT with a port from 0 to 65535, or off";
        // Debian builds CivetWeb without IPv6.
        if (value.front() == '[')
          return "metrics are served over IPv4 alone: expected an address such as 0.0.0.0:7601";
        *field = value;
        return "";
      },
      [field] { return Quoted(field->empty() ? "off" : *field); });
}

void FlagList::Directory(const std::string& name, std::string* field, const std::string& help) {
  Add(
      name, "DIR", absl::StrCat(help, "\nDefault ", *field, "."),
      [field](const std::string& value) -> std::string {
        if (value.empty()) return "expected the path of a directory";
        *field = value;
        return "";
      },
      [field] { return Quoted(*field); });
}

void FlagList::File(const std::string& name, std::string* field, const std::string& help) {
  Add(
      name, "FILE", absl::StrCat(help, "\nDefault none."),
      [field](const std::string& value) -> std::string {
        if (!value.empty() && access(value.c_str(), R_OK) != 0) {
          return "expected a file that can be read";
        }
        *field = value;
        return "";
      },
      [field] { return Quoted(*field); });
}

FlagList::FlagList(Options* o) {
  Addresses(
      "address", &o->addresses,
      "Addresses to serve gRPC on: HOST:PORT, [IPV6]:PORT or unix:PATH, separated by commas.\n"
      "Port 0 takes a free port. Every client that reaches an address can read, train and\n"
      "delete all models, unless --tls-client-ca is set.");
  Directory(
      "data-dir", &o->data_dir,
      "Directory of the journal, which holds all models. Created if missing. Only one server\n"
      "at a time can use it.");
  Choice(
      "journal", &o->journal,
      {{"rocksdb", JournalKind::kRocksDb}, {"memory", JournalKind::kMemory}},
      "Where models are stored. rocksdb: in --data-dir. memory: nowhere; all models are lost when\n"
      "the server stops.");
  Choice(
      "durability", &o->durability,
      {{"sync", Durability::kSync},
       {"interval", Durability::kInterval},
       {"none", Durability::kNone}},
      "When updates reach the disk. sync: before they are acknowledged; concurrent streams share\n"
      "one fsync. interval: at most --durability-interval later. none: when the operating system\n"
      "writes them. A power failure loses updates that have not reached the disk; killing the\n"
      "server loses no acknowledged update.");
  Time(
      "durability-interval", &o->durability_interval, absl::Milliseconds(1), absl::Hours(1),
      "The time between two fsyncs with --durability=interval: a power failure loses at most this\n"
      "much.");
  Bytes("memory-budget", &o->memory_budget, kMiB, 1024 * kTiB,
        "Memory for models. Above it the server evicts the least recently used models, and\n"
        "loads them again on their next use, which takes longer.");
  Bytes("max-message-bytes", &o->max_message_bytes, 64 * kKiB, kGiB,
        "Size limit of a request message. A larger message ends its call with RESOURCE_EXHAUSTED\n"
        "(MESSAGE_TOO_LARGE). gRPC rejects a message of more than four times this limit unread.");
  Number(
      "max-in-flight-messages", "Messages per stream", &o->max_in_flight_messages, 1, 10000,
      "Unanswered messages at which the server stops reading a stream until it has sent answers.\n"
      "A higher limit hides more latency and uses more memory.");
  Bytes("max-in-flight-bytes", &o->max_in_flight_bytes, 64 * kKiB, 16 * kGiB,
        "The same limit in bytes per stream, for answers and for updates on their way to the "
        "journal.\n"
        "A stream can always send one message, whatever its size.");
  Number("max-example-features", "Features", &o->max_example_features, 1, uint64_t{1} << 28,
         "The most features that one example may have. An example with more gets the row error\n"
         "TOO_MANY_FEATURES.");
  Bytes(
      "snapshot-bytes", &o->snapshot_bytes, 4 * kKiB, kTiB,
      "Size of a model's journal at which the server writes a snapshot, if that is also more than\n"
      "twice the size of the model. A smaller size makes loading faster and writes more.");
  MetricsAddress("metrics-address", &o->metrics_address,
                 "Address to serve Prometheus metrics on, over HTTP at /metrics; off serves none.\n"
                 "Every client that reaches it can read the names and figures of all models.");
  Number(
      "metrics-max-models", "Models", &o->metrics_max_models, 0, 1000000,
      "The most models with metrics of their own, which are 30 to 50 series each. Further models\n"
      "are counted in perceptrond_models_not_exported.");
  Choice("status-page", &o->status_page, {{"on", true}, {"off", false}},
         "Whether to serve a page with all models and their learning curves, at / of the metrics\n"
         "address. Every client that reaches it can read names, descriptions, curves and the top\n"
         "features of all models.");
  Time(
      "busy-poll", &o->busy_poll, absl::ZeroDuration(), absl::Milliseconds(1),
      "How long an idle server polls for the next request before it sleeps, while requests arrive\n"
      "one at a time. Polling lowers latency, since waking up takes longer than answering, and "
      "uses\n"
      "processor time. Set 0 where that is limited, as in a container with a CPU limit. Has an\n"
      "effect on machines with two to seven processors only.");
  Time("drain-timeout", &o->drain_timeout, absl::ZeroDuration(), absl::Hours(1),
       "How long a stopping server waits for in-flight calls before it cancels them. Acknowledged\n"
       "updates are kept in both cases.");
  Choice(
      "log-level", &o->log_level,
      {{"trace", LogLevel::kTrace},
       {"debug", LogLevel::kDebug},
       {"info", LogLevel::kInfo},
       {"warning", LogLevel::kWarning},
       {"error", LogLevel::kError}},
      "The least severe level that is logged, to standard error. debug and trace include messages\n"
      "of gRPC and Protobuf.");
  Choice("log-format", &o->log_format, {{"text", LogFormat::kText}, {"json", LogFormat::kJson}},
         "Format of log lines. text: a message and key=value pairs. json: one object per line.");
  File("tls-cert", &o->tls_cert,
       "PEM file with the server's certificate chain. Enables TLS, with --tls-key; without both\n"
       "nothing is encrypted.");
  File("tls-key", &o->tls_key, "PEM file with the private key of --tls-cert.");
  File("tls-client-ca", &o->tls_client_ca,
       "PEM file with certificate authorities. Clients must have a certificate that one of these\n"
       "signed. Without it every client is accepted.");
}

}  // namespace

std::vector<Flag> MakeFlags(Options* options) { return FlagList(options).Take(); }

}  // namespace perceptrond
