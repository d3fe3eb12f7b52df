#include "server/config/option_flags.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
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

std::string FormatBytes(uint64_t bytes) {
  for (const auto& [suffix, size] : kByteUnits) {
    if (bytes >= size && bytes % size == 0) return absl::StrCat(bytes / size, suffix);
  }
  return absl::StrCat(bytes);
}

// The host of "HOST:PORT", without the brackets of an IPv6 address; nothing if it is no such
// address.
std::optional<std::string> HostOf(absl::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos) return std::nullopt;
  absl::string_view host = address.substr(0, colon);
  const absl::string_view port = address.substr(colon + 1);
  uint32_t number;
  if (port.empty() || !std::all_of(port.begin(), port.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(port, &number) || number > 65535) {
    return std::nullopt;
  }
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    const std::string bare(host.substr(1, host.size() - 2));
    in6_addr parsed;
    if (inet_pton(AF_INET6, bare.c_str(), &parsed) != 1) return std::nullopt;
    return bare;
  }
  if (host.empty() || host.find_first_of(":[]/ ") != absl::string_view::npos) return std::nullopt;
  return std::string(host);
}

bool IsAddress(absl::string_view address) {
  constexpr absl::string_view kUnix = "unix:";
  if (absl::StartsWith(address, kUnix)) return address.size() > kUnix.size();
  return HostOf(address).has_value();
}

std::string Quoted(absl::string_view value) {
  const char quote = value.find('"') == absl::string_view::npos ? '"' : '\'';
  const std::string mark(1, quote);
  return absl::StrCat(mark, value, mark);
}

// The flags, each bound to its field. `options` must outlive it.
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
          return "expected HOST:PORT, [IPV6]:PORT with a port from 0 to 65535, or unix:PATH";
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
        const bool off = value.empty() || value == "off";
        if (!off && !HostOf(value)) {
          return "expected HOST:PORT with a port from 0 to 65535, or off";
        }
        // CivetWeb, as Debian builds it.
        if (value.front() == '[')
          return "metrics are served over IPv4 alone: expected an address such as 0.0.0.0:7601";
        *field = off ? "" : value;
        return "";
      },
      [field] { return Quoted(field->empty() ? "off" : *field); });
}

void FlagList::Directory(const std::string& name, std::string* field, const std::string& help) {
  Add(
      name, "DIR", absl::StrCat(help, "\nDefault ", *field, "."),
      [field](const std::string& value) -> std::string {
        if (value.empty()) return "expected a directory's path";
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
  Addresses("address", &o->addresses,
            "Where to serve gRPC: HOST:PORT, [IPV6]:PORT or unix:PATH, separated by commas;\n"
            "port 0 takes a free one. Whoever reaches an address that is not loopback may read,\n"
            "train and delete every model, unless --tls-client-ca keeps them out.");
  Directory("data-dir", &o->data_dir,
            "Where the journal lives; made if missing. One server at a time may use it.");
  Choice("journal", &o->journal,
         {{"rocksdb", JournalKind::kRocksDb}, {"memory", JournalKind::kMemory}},
         "What keeps the models. With memory all of them are lost when the server stops.");
  Choice("durability", &o->durability,
         {{"sync", Durability::kSync},
          {"interval", Durability::kInterval},
          {"none", Durability::kNone}},
         "When an acknowledged update is on disk. sync: before it is acknowledged, by an fsync\n"
         "that concurrent streams share. interval: within --durability-interval, which a power\n"
         "failure may cost. none: when the system likes. Killing the server loses nothing.");
  Time("durability-interval", &o->durability_interval, absl::Milliseconds(1), absl::Hours(1),
       "With --durability=interval: the most that a power failure may cost.");
  Bytes("memory-budget", &o->memory_budget, kMiB, 1024 * kTiB,
        "Memory for loaded models. Beyond it the longest unused ones leave memory and are loaded\n"
        "again on their next use, which then takes longer.");
  Bytes("max-message-bytes", &o->max_message_bytes, 64 * kKiB, kGiB,
        "The largest message taken; a larger one ends its call with RESOURCE_EXHAUSTED\n"
        "(MESSAGE_TOO_LARGE). A message beyond four times this is not even taken into memory.");
  Number("max-in-flight-messages", "Messages a stream", &o->max_in_flight_messages, 1, 10000,
         "Unanswered messages after which a stream is read no further until answers went out.\n"
         "More hides more latency and takes more memory.");
  Bytes("max-in-flight-bytes", &o->max_in_flight_bytes, 64 * kKiB, 16 * kGiB,
        "The same in bytes of answers, and of updates on their way to the journal. One message is\n"
        "always taken, whatever its size.");
  Number("max-example-features", "Features", &o->max_example_features, 1, uint64_t{1} << 28,
         "The most features one example may have; more is INVALID_ARGUMENT (TOO_MANY_FEATURES).");
  Bytes("snapshot-bytes", &o->snapshot_bytes, 4 * kKiB, kTiB,
        "A model's snapshot is taken when its journal since the last one exceeds this and\n"
        "twice the model's own size. Less means faster loading and more writing.");
  MetricsAddress("metrics-address", &o->metrics_address,
                 "Where to serve Prometheus metrics over HTTP, at /metrics; off: nowhere.\n"
                 "Whoever reaches it may read every model's name and counts.");
  Number("metrics-max-models", "Models", &o->metrics_max_models, 0, 1000000,
         "How many models get metrics of their own; each has 30 to 40 series. The rest are\n"
         "counted in perceptrond_models_not_exported.");
  Choice("status-page", &o->status_page, {{"on", true}, {"off", false}},
         "Whether the metrics' address also serves a page with the models and their curves, at /.\n"
         "Whoever reaches it may read names, descriptions, curves and the heaviest features.");
  Time("busy-poll", &o->busy_poll, absl::ZeroDuration(), absl::Milliseconds(1),
       "How long the server looks for the next request before it sleeps, while requests come one\n"
       "at a time and it has nothing else to do: waking takes longer than answering. It costs the\n"
       "processor's time; 0 where that is short, as under a container's limit of processors.\n"
       "Only on two to seven processors.");
  Time("drain-timeout", &o->drain_timeout, absl::ZeroDuration(), absl::Hours(1),
       "How long a stopping server lets calls finish before it cancels them. What was\n"
       "acknowledged is durable either way.");
  Choice("log-level", &o->log_level,
         {{"trace", LogLevel::kTrace},
          {"debug", LogLevel::kDebug},
          {"info", LogLevel::kInfo},
          {"warning", LogLevel::kWarning},
          {"error", LogLevel::kError}},
         "The least important lines still logged to standard error. trace and debug include\n"
         "gRPC's and Protobuf's own.");
  Choice("log-format", &o->log_format, {{"text", LogFormat::kText}, {"json", LogFormat::kJson}},
         "How a log line is written: key=value text, or one JSON object.");
  File("tls-cert", &o->tls_cert,
       "PEM certificate chain of the server; with --tls-key. Without it nothing is encrypted.");
  File("tls-key", &o->tls_key, "PEM private key of the server; with --tls-cert.");
  File("tls-client-ca", &o->tls_client_ca,
       "PEM certificates of the authorities that must have signed a client's certificate;\n"
       "others are turned away. Without it any client is served.");
}

}  // namespace

std::vector<Flag> MakeFlags(Options* options) { return FlagList(options).Take(); }

bool IsLoopback(absl::string_view address) {
  if (absl::StartsWith(address, "unix:")) return true;
  const std::optional<std::string> host = HostOf(address);
  if (!host) return false;
  if (absl::EqualsIgnoreCase(*host, "localhost")) return true;
  in_addr v4;
  if (inet_pton(AF_INET, host->c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6;
  if (inet_pton(AF_INET6, host->c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return false;
}

}  // namespace perceptrond
