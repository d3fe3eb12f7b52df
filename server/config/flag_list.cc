#include "server/config/flag_list.h"

#include <unistd.h>

#include <limits>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/journal/postgres/uri.h"
#include "server/config/endpoint.h"

namespace perceptrond {
namespace {

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

}  // namespace

std::string Quoted(absl::string_view value) {
  const char quote = value.find('"') == absl::string_view::npos ? '"' : '\'';
  const std::string mark(1, quote);
  return absl::StrCat(mark, value, mark);
}

std::string NotValid(std::string value, absl::string_view wrong) {
  // A URI may have a password between "//" and '@', and after '?'.
  if (const size_t query = value.find('?');
      query != std::string::npos && absl::StrContains(value.substr(0, query), "://"))
    value.replace(query + 1, std::string::npos, "...");
  for (size_t at = value.rfind('@'); at != std::string::npos && at > 0;) {
    const size_t begin = value.rfind("//", at);
    if (begin == std::string::npos) break;
    value.replace(begin + 2, at - begin - 2, "...");
    at = value.rfind('@', begin);
  }
  return absl::StrCat("\"", absl::Utf8SafeCEscape(value), "\" is not valid; ", wrong);
}

void FlagList::Add(std::string name, std::string form, std::string help, Set set,
                   std::function<std::string()> get) {
  auto set_one = [set = std::move(set)](const std::vector<std::string>& values) {
    return set(values.back());
  };
  flags_.push_back({.name = std::move(name),
                    .form = std::move(form),
                    .help = std::move(help),
                    .set = std::move(set_one),
                    .get = std::move(get)});
}

void FlagList::Number(const std::string& name, const std::string& unit, uint64_t* field,
                      uint64_t min, uint64_t max, const std::string& help) {
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

void FlagList::Bytes(const std::string& name, uint64_t* field, uint64_t min, uint64_t max,
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

void FlagList::Time(const std::string& name, absl::Duration* field, absl::Duration min,
                    absl::Duration max, const std::string& help) {
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

void FlagList::TimeOrOff(const std::string& name, absl::Duration* field, absl::Duration max,
                         const std::string& help) {
  const auto text = [field] {
    return *field == absl::ZeroDuration() ? "off" : absl::FormatDuration(*field);
  };
  const std::string range = absl::StrCat("at most ", absl::FormatDuration(max));
  Add(
      name, "DURATION|off",
      absl::StrCat(help, "\nA number with us, ms, s, m or h, ", range, "; default ", text(), "."),
      [=](const std::string& value) {
        absl::Duration duration;
        const bool is_off = value == "off";
        if (!is_off && (!absl::ParseDuration(value, &duration) || duration < absl::ZeroDuration() ||
                        duration > max)) {
          return absl::StrCat("expected a duration like 100ms, 2s or 1m30s, ", range, ", or off");
        }
        *field = duration;
        return std::string();
      },
      [=] { return Quoted(text()); });
}

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
  AddList(name, "ADDRESS,...", field,
          absl::StrCat(help, "\nDefault ", absl::StrJoin(*field, ","), "."), set);
}

void FlagList::HostNames(const std::string& name, std::vector<std::string>* field,
                         const std::string& help) {
  const auto set = [field](const std::vector<std::string>& values) -> std::string {
    std::vector<std::string> hosts;
    for (const std::string& value : values) {
      for (const absl::string_view part : absl::StrSplit(value, ',', absl::SkipWhitespace())) {
        const absl::string_view host = absl::StripAsciiWhitespace(part);
        if (!absl::c_all_of(host, [](unsigned char c) {
              return absl::ascii_isalnum(c) || c == '-' || c == '.' || c == '_';
            })) {
          return "expected names of machines, without ports";
        }
        hosts.emplace_back(host);
      }
    }
    *field = std::move(hosts);
    return "";
  };
  AddList(name, "NAME,...", field, help + "\nDefault none.", set);
}

void FlagList::Journal(const std::string& name, JournalKind* kind, std::string* postgres,
                       const std::string& help) {
  const auto set = [=](const std::string& value) -> std::string {
    if (value == "rocksdb" || value == "memory") {
      *kind = value == "memory" ? JournalKind::kMemory : JournalKind::kRocksDb;
      postgres->clear();
      return "";
    }
    if (!IsPostgresUri(value)) return "expected rocksdb, memory, or postgres://...";
    std::string wrong = CheckPostgresUri(value);
    if (!wrong.empty()) return wrong;
    *kind = JournalKind::kPostgres;
    *postgres = value;
    return "";
  };
  const auto get = [=] {
    if (*kind == JournalKind::kPostgres) return Quoted(*postgres);
    return Quoted(*kind == JournalKind::kMemory ? "memory" : "rocksdb");
  };
  Add(name, "rocksdb|memory|URI", absl::StrCat(help, "\nDefault rocksdb."), set, get);
}

void FlagList::Schema(const std::string& name, std::string* field, const std::string& help) {
  const auto set = [field](const std::string& value) -> std::string {
    if (!IsSchemaName(value)) {
      return "expected up to 50 lower-case letters, digits and underscores, first no digit, and "
             "not pg_";
    }
    *field = value;
    return "";
  };
  Add(name, "NAME", absl::StrCat(help, "\nDefault ", *field, "."), set,
      [field] { return Quoted(*field); });
}

void FlagList::Address(const std::string& name, std::string* field, const std::string& help) {
  const bool optional = field->empty();
  const auto set = [=](const std::string& value) -> std::string {
    const bool absent = optional && value.empty();
    if (!absent && (!HostOf(value).has_value() || absl::EndsWith(value, ":0")))
      return "expected HOST:PORT, with a port that other servers know";
    *field = value;
    return "";
  };
  Add(name, "HOST:PORT", absl::StrCat(help, "\nDefault ", optional ? "none" : *field, "."), set,
      [field] { return Quoted(*field); });
}

void FlagList::OptionalAddress(const std::string& name, std::string* field,
                               const std::string& help) {
  const auto set = [field](const std::string& value) -> std::string {
    if (!value.empty() && (!HostOf(value).has_value() || absl::EndsWith(value, ":0")))
      return "expected HOST:PORT, with a port that clients know, or nothing";
    *field = value;
    return "";
  };
  Add(name, "HOST:PORT", absl::StrCat(help, "\nDefault ", Quoted(*field), "."), set,
      [field] { return Quoted(*field); });
}

void FlagList::AddList(const std::string& name, const std::string& form,
                       const std::vector<std::string>* field, const std::string& help,
                       std::function<std::string(const std::vector<std::string>&)> set) {
  const auto get = [field] {
    const auto quote = [](std::string* out, const std::string& one) { out->append(Quoted(one)); };
    return field->empty() ? Quoted("") : absl::StrCat("[", absl::StrJoin(*field, ", ", quote), "]");
  };
  flags_.push_back({.name = name,
                    .form = form,
                    .help = help,
                    .repeatable = true,
                    .set = std::move(set),
                    .get = get});
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
        *field = value;
        return "";
      },
      [field] { return Quoted(field->empty() ? "off" : *field); });
}

void FlagList::Directory(const std::string& name, std::string* field, const std::string& help) {
  const bool optional = field->empty();
  Add(
      name, "DIR", absl::StrCat(help, "\nDefault ", optional ? "none" : *field, "."),
      [=](const std::string& value) -> std::string {
        if (value.empty() && !optional) return "expected the path of a directory";
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

void FlagList::NewFile(const std::string& name, std::string* field, const std::string& help) {
  Add(
      name, "FILE", absl::StrCat(help, "\nDefault none."),
      [field](const std::string& value) {
        *field = value;
        return std::string();
      },
      [field] { return Quoted(*field); });
}

void FlagList::Switch(const std::string& name, bool* field, const std::string& help) {
  Add(
      name, "", absl::StrCat(help, "\nDefault ", *field ? "true" : "false", "."),
      [field](const std::string& value) -> std::string {
        if (value != "true" && value != "false") return "expected true or false";
        *field = value == "true";
        return "";
      },
      [field] { return *field ? "true" : "false"; });
  flags_.back().is_switch = true;
}

}  // namespace perceptrond
