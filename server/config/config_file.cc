#include "server/config/config_file.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace perceptrond {

std::string EnvironmentName(const std::string& flag) {
  return absl::StrCat("PERCEPTROND_",
                      absl::AsciiStrToUpper(absl::StrReplaceAll(flag, {{"-", "_"}})));
}

const char* Environment(const std::string& flag) {
  const char* value = std::getenv(EnvironmentName(flag).c_str());
  return value != nullptr && *value != '\0' ? value : nullptr;
}

namespace {

// NAME_SERVICE_HOST, NAME_SERVICE_PORT[_PORTNAME]; and as links have it, with the service's URL or
// a part of it: NAME_PORT, NAME_PORT_7600_TCP, NAME_PORT_7600_TCP_ADDR, ..._PORT and ..._PROTO.
bool IsOfAService(absl::string_view name, absl::string_view value) {
  if (absl::EndsWith(name, "_SERVICE_HOST") || absl::EndsWith(name, "_SERVICE_PORT") ||
      absl::StrContains(name, "_SERVICE_PORT_")) {
    return true;
  }
  if (!absl::StrContains(name, "_PORT")) return false;
  for (const absl::string_view protocol : {"tcp", "udp", "sctp"}) {
    const std::string part = absl::StrCat("_", absl::AsciiStrToUpper(protocol), "_");
    if (absl::StartsWith(value, absl::StrCat(protocol, "://"))) return true;
    if (absl::StrContains(name, "_PORT_") && absl::StrContains(name, part)) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> UnknownVariables(const std::set<std::string>& known) {
  std::set<std::string> unknown;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::pair<std::string, std::string> variable =
        absl::StrSplit(*entry, absl::MaxSplits('=', 1));
    const auto& [name, value] = variable;
    if (absl::StartsWith(name, "PERCEPTROND_") && !value.empty() && !known.contains(name) &&
        name != "PERCEPTROND_SERVER" && !IsOfAService(name, value)) {
      unknown.insert(name);
    }
  }
  return {unknown.begin(), unknown.end()};
}

std::vector<CLI::ConfigItem> ConfigFile::from_config(std::istream& input) const {
  const std::string text(std::istreambuf_iterator<char>(input), {});
  for (const absl::string_view line : absl::StrSplit(text, '\n')) CheckComment(line);
  std::istringstream again(text);
  std::vector<CLI::ConfigItem> items = ConfigBase::from_config(again);
  std::set<std::string> seen;
  for (const CLI::ConfigItem& item : items) {
    if (!item.parents.empty() || !keys_.contains(item.name)) {
      throw Error(absl::StrCat("unknown key ", item.fullname()));
    }
    if (!seen.insert(item.name).second) {
      throw Error(absl::StrCat("key ", item.name, " is given twice"));
    }
    for (const std::string& value : item.inputs) {
      if (value.find_first_of("\"'") == 0) {
        throw Error(absl::StrCat("key ", item.name, ": unbalanced quotes, or a # in the value"));
      }
    }
  }
  std::erase_if(items, [](const CLI::ConfigItem& item) { return Environment(item.name); });
  return items;
}

// To CLI11 a comment starts at any '#', which may cut a value short in silence. Here it starts
// behind a blank and outside quotes, and any other '#' is an error.
void ConfigFile::CheckComment(absl::string_view line) {
  absl::ConsumeSuffix(&line, "\r");
  const size_t hash = line.find('#');
  const absl::string_view before = absl::StripLeadingAsciiWhitespace(line.substr(0, hash));
  if (hash == absl::string_view::npos || before.empty() || before.front() == ';') return;
  const auto count = [&](char c) { return std::count(before.begin(), before.end(), c); };
  const bool blank = absl::ascii_isspace(before.back());
  const bool closed = count('"') % 2 == 0 && count('\'') % 2 == 0;
  if (blank && closed && (count('"') == 0 || count('\'') == 0)) return;
  const absl::string_view key = before.substr(0, before.find('='));
  throw Error(absl::StrCat("key ", absl::StripTrailingAsciiWhitespace(key),
                           ": unbalanced quotes, or a # in the value"));
}

CLI::ConfigError ConfigFile::Error(const std::string& message) {
  return CLI::ConfigError("--config: " + message, CLI::ExitCodes::ConfigError);
}

}  // namespace perceptrond
