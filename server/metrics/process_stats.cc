#include "server/metrics/process_stats.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace perceptrond {
namespace {

std::string ReadProcFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The fields of the first line that starts with `prefix`, without the prefix.
std::vector<std::string> LineAfter(const std::string& text, absl::string_view prefix) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, prefix)) return absl::StrSplit(line, ' ', absl::SkipEmpty());
  }
  return {};
}

std::optional<uint64_t> Number(const std::vector<std::string>& fields, size_t i) {
  uint64_t value;
  if (i >= fields.size() || !absl::SimpleAtoi(fields[i], &value)) return std::nullopt;
  return value;
}

// Fields of /proc/self/stat by their number in proc(5), minus 3: those after the command's name,
// which may itself have spaces and parentheses.
constexpr size_t kState = 3;
constexpr size_t kUserTicks = 14 - kState;
constexpr size_t kSystemTicks = 15 - kState;
constexpr size_t kStartTicks = 22 - kState;
constexpr size_t kVirtualBytes = 23 - kState;
constexpr size_t kResidentPages = 24 - kState;

std::vector<std::string> StatFields(const std::string& stat) {
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return {};
  return absl::StrSplit(stat.substr(name_end + 1), absl::ByAnyChar(" \n"), absl::SkipEmpty());
}

std::optional<uint64_t> CountEntries(const std::string& directory) {
  std::error_code error;
  uint64_t count = 0;
  auto entry = std::filesystem::directory_iterator(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) ++count;
  if (error) return std::nullopt;
  return count;
}

}  // namespace

ProcessStats ReadProcessStats(const std::string& proc) {
  const double ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  const std::vector<std::string> fields = StatFields(ReadProcFile(proc + "/self/stat"));
  ProcessStats stats;
  const auto user = Number(fields, kUserTicks);
  const auto system = Number(fields, kSystemTicks);
  if (user && system) stats.cpu_seconds = static_cast<double>(*user + *system) / ticks_per_second;
  stats.virtual_bytes = Number(fields, kVirtualBytes);
  if (const auto pages = Number(fields, kResidentPages)) {
    stats.resident_bytes = *pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  }
  const auto started = Number(fields, kStartTicks);
  const auto booted = Number(LineAfter(ReadProcFile(proc + "/stat"), "btime "), 0);
  if (started && booted) {
    stats.start_time_seconds =
        static_cast<double>(*booted) + static_cast<double>(*started) / ticks_per_second;
  }
  stats.open_fds = CountEntries(proc + "/self/fd");
  stats.max_fds = Number(LineAfter(ReadProcFile(proc + "/self/limits"), "Max open files"), 0);
  return stats;
}

}  // namespace perceptrond
