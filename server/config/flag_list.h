// Builds the server's flags: one method for each kind of value, which parses it, states its range
// and default in --help, and prints it for a config file. The flags themselves are in options.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/config/options.h"

namespace perceptrond {

inline constexpr uint64_t kKiB = uint64_t{1} << 10;
inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kGiB = uint64_t{1} << 30;
inline constexpr uint64_t kTiB = uint64_t{1} << 40;

// The value as a config file's string.
std::string Quoted(absl::string_view value);
// The error message for a value of which Flag::set said what is wrong. It repeats no password of a URL.
std::string NotValid(std::string value, absl::string_view wrong);

// Builds the list of flags. Each method adds a flag of one kind.
class FlagList {
 public:
  // The flags added so far.
  std::vector<Flag> Take() { return std::move(flags_); }

  // `unit` begins the line that states the range: "Features".
  void Number(const std::string& name, const std::string& unit, uint64_t* field, uint64_t min,
              uint64_t max, const std::string& help);
  void Bytes(const std::string& name, uint64_t* field, uint64_t min, uint64_t max,
             const std::string& help);
  void Time(const std::string& name, absl::Duration* field, absl::Duration min, absl::Duration max,
            const std::string& help);
  // Zero stands for off.
  void TimeOrOff(const std::string& name, absl::Duration* field, absl::Duration max,
                 const std::string& help);
  // One of several names, each of which stands for a value.
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
  // Names of machines, separated by commas; none if it is empty.
  void HostNames(const std::string& name, std::vector<std::string>* field, const std::string& help);
  // rocksdb, memory, or the URI of a database in PostgreSQL.
  void Journal(const std::string& name, JournalKind* kind, std::string* postgres,
               const std::string& help);
  // Takes the name of a schema in PostgreSQL.
  void Schema(const std::string& name, std::string* field, const std::string& help);
  // HOST:PORT, with a port; or nothing, if the field is empty.
  void Address(const std::string& name, std::string* field, const std::string& help);
  // The same, or empty.
  void OptionalAddress(const std::string& name, std::string* field, const std::string& help);
  void MetricsAddress(const std::string& name, std::string* field, const std::string& help);
  void Directory(const std::string& name, std::string* field, const std::string& help);
  // A file that exists.
  void File(const std::string& name, std::string* field, const std::string& help);
  // A file that is created if it does not exist.
  void NewFile(const std::string& name, std::string* field, const std::string& help);
  // Given without a value, or as true or false.
  void Switch(const std::string& name, bool* field, const std::string& help);

 private:
  using Set = std::function<std::string(const std::string&)>;

  void Add(std::string name, std::string form, std::string help, Set set,
           std::function<std::string()> get);
  void AddList(const std::string& name, const std::string& form,
               const std::vector<std::string>* field, const std::string& help,
               std::function<std::string(const std::vector<std::string>&)> set);

  std::vector<Flag> flags_;
};

}  // namespace perceptrond
