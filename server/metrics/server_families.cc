#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/features/words.h"
#include "server/config/build_info.h"
#include "server/metrics/family.h"
#include "server/metrics/stats.h"

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

namespace {

constexpr MetricKind kCounter = MetricKind::kCounter;
constexpr MetricKind kGauge = MetricKind::kGauge;

std::optional<double> Number(std::optional<uint64_t> value) {
  return value ? std::optional<double>(*value) : std::nullopt;
}

void AppendDiskFamilies(const ServerStats& stats, MetricFamilies& families) {
  AppendSingle("perceptrond_disk_free_bytes",
               "Free space for this server on the journal's file system.", kGauge,
               Number(stats.disk_free_bytes), families);
  AppendSingle("perceptrond_disk_size_bytes", "Size of the journal's file system.", kGauge,
               Number(stats.disk_size_bytes), families);
  AppendSingle("perceptrond_disk_reserve_bytes",
               "The journal refuses updates while less than this is free.", kGauge,
               Number(stats.disk_reserve_bytes), families);
}

void AppendMemoryFamilies(const ServerStats& stats, MetricFamilies& families) {
  MetricFamily reserved{"perceptrond_memory_reserved_bytes",
                        "Memory reserved within the memory budget, by what it is for.", kGauge};
  MetricFamily refusals{"perceptrond_memory_refusals_total",
                        "Requests refused because their memory did not fit the memory budget, by "
                        "what it was for.",
                        kCounter};
  for (const ServerStats::MemoryUsed& one : stats.memory_uses) {
    reserved.Add({{"use", one.use}}, static_cast<double>(one.bytes));
    refusals.Add({{"use", one.use}}, static_cast<double>(one.refusals));
  }
  Append(std::move(reserved), families);
  Append(std::move(refusals), families);
}

// Predictions that wait for their labels.
void AppendPredictionFamilies(const WaitingPredictions::Stats& stats, MetricFamilies& families) {
  AppendSingle("perceptrond_predictions_waiting", "Predictions that wait for their labels.", kGauge,
               static_cast<double>(stats.waiting), families);
  AppendSingle("perceptrond_predictions_joined_total",
               "Predictions whose labels came and were learned.", kCounter,
               static_cast<double>(stats.joined), families);
  AppendSingle("perceptrond_predictions_expired_total",
               "Predictions removed without a label, for their age or for lack of room.", kCounter,
               static_cast<double>(stats.expired), families);
  MetricFamily delay{"perceptrond_prediction_label_delay_seconds",
                     "Time from a prediction to its label.", MetricKind::kHistogram};
  MetricSample& sample = delay.samples.emplace_back();
  sample.histogram.sum = stats.delay_sum;
  uint64_t count = 0;
  for (size_t i = 0; i < stats.delays.size(); ++i) {
    count += stats.delays[i];
    const bool is_last = i == WaitingPredictions::kDelayBounds.size();
    sample.histogram.buckets.push_back(
        {is_last ? std::numeric_limits<double>::infinity() : WaitingPredictions::kDelayBounds[i],
         count});
  }
  Append(std::move(delay), families);
}

void AppendFleetFamilies(const ServerStats::Fleet& fleet, MetricFamilies& families) {
  const auto gauge = [&](const char* name, const char* help, double value) {
    AppendSingle(name, help, kGauge, value, families);
  };
  gauge("perceptrond_fleet_servers", "Servers of the fleet that are alive, this one included.",
        static_cast<double>(fleet.servers));
  gauge("perceptrond_fleet_partitions", "Partitions of the fleet's models.",
        static_cast<double>(fleet.partitions));
  gauge("perceptrond_fleet_partitions_written", "Partitions that this server writes.",
        static_cast<double>(fleet.partitions_written));
  gauge("perceptrond_fleet_partitions_unreachable",
        "Partitions whose end the journal did not tell when this server last asked for it.",
        static_cast<double>(fleet.partitions_unreachable));
  AppendSingle("perceptrond_fleet_take_overs_total",
               "Times that this server became a partition's writer.", kCounter,
               static_cast<double>(fleet.take_overs), families);
  gauge("perceptrond_fleet_contact_seconds",
        "Time since this server last read a partition's log to its end; of the partition with the "
        "longest.",
        fleet.contact_seconds);
  gauge("perceptrond_fleet_delay_seconds",
        "How long ago a partition's log had updates that this server lacks, by its own clock, "
        "when it could last read the log; of the partition with the longest. 0: it has all.",
        fleet.delay_seconds);
  gauge("perceptrond_fleet_pending_entries",
        "Entries of the partitions' logs that this server has not read yet.",
        static_cast<double>(fleet.pending_entries));
  MetricFamily rows{"perceptrond_fleet_rows_total",
                    "Examples of streams whose models other servers write, by where they were "
                    "evaluated: here, or forwarded to the writer.",
                    kCounter};
  rows.Add({{"evaluated", "here"}}, static_cast<double>(fleet.evaluated_rows));
  rows.Add({{"evaluated", "writer"}}, static_cast<double>(fleet.forwarded_rows));
  Append(std::move(rows), families);
}

}  // namespace

void AppendServerFamilies(const ServerStats& stats, size_t exported, MetricFamilies& families) {
  // The two numbers are read at different times.
  const uint64_t models = std::max<uint64_t>(stats.models, exported);
  const auto gauge = [&](const char* name, const char* help, uint64_t value) {
    AppendSingle(name, help, kGauge, static_cast<double>(value), families);
  };
  const auto counter = [&](const char* name, const char* help, uint64_t value) {
    AppendSingle(name, help, kCounter, static_cast<double>(value), families);
  };
  gauge("perceptrond_models", "Models that exist, in memory or not.", models);
  gauge("perceptrond_models_not_exported",
        "Models without series of their own, beyond --metrics-max-models.", models - exported);
  gauge("perceptrond_models_in_memory", "Models in memory.", stats.models_in_memory);
  gauge("perceptrond_memory_bytes", "Memory that models use.", stats.memory_bytes);
  gauge("perceptrond_memory_budget_bytes",
        "Limit of the memory that models, requests, answers and analyses use.",
        stats.memory_budget_bytes);
  AppendMemoryFamilies(stats, families);
  counter("perceptrond_slow_consumers_total",
          "Calls ended, while memory was short, because their client did not receive an answer.",
          stats.slow_consumers);
  counter("perceptrond_journal_commits_total", "Commits: batches of updates made durable.",
          stats.journal_commits);
  counter("perceptrond_journal_commit_failures_total", "Commits that failed.",
          stats.journal_commit_failures);
  AppendSingle("perceptrond_journal_commit_seconds_total",
               "Time spent on commits, including those that failed.", kCounter,
               stats.journal_commit_seconds, families);
  AppendSingle("perceptrond_journal_wait_seconds",
               "Time that the oldest uncommitted message has waited for its commit.", kGauge,
               stats.journal_wait_seconds, families);
  gauge("perceptrond_journal_lost_writes",
        "Writes that the journal had and lacked when it was opened with --accept-data-loss.",
        stats.journal_lost_writes);
  gauge("perceptrond_journal_read_only",
        "1 while the journal cannot be written, since its disk is full or read-only; else 0.",
        stats.journal_read_only ? 1 : 0);
  AppendDiskFamilies(stats, families);
  gauge(
      "perceptrond_snapshot_threshold_bytes",
      "Growth of a model's journal that triggers a snapshot, if it exceeds twice the model's size.",
      stats.snapshot_threshold_bytes);
  counter("perceptrond_loads_total", "Models loaded into memory.", stats.loads);
  counter("perceptrond_evictions_total",
          "Models evicted from memory to keep within the memory budget.", stats.evictions);
  counter("perceptrond_models_expired_total",
          "Models deleted because they were not used for their expire_after.",
          stats.models_expired);
  counter("perceptrond_snapshots_total", "Snapshots written.", stats.snapshots);
  counter("perceptrond_snapshot_failures_total",
          "Snapshots that could not be written; the journal keeps their records.",
          stats.snapshot_failures);
  if (stats.fleet.has_value()) AppendFleetFamilies(*stats.fleet, families);
  AppendPredictionFamilies(stats.predictions, families);
  AppendTransportFamilies(stats.transport, families);
}

void AppendBuildFamily(MetricFamilies& families) {
  const BuildInfo& build = GetBuildInfo();
  MetricFamily family{"perceptrond_build_info", "What this server was built from; always 1.",
                      kGauge};
  family.Add({{"version", build.version},
              {"revision", build.revision},
              {"compiler", build.compiler},
              {"icu_version", IcuVersion()}},
             1);
  Append(std::move(family), families);
}

void AppendProcessFamilies(const ProcessStats& stats, MetricFamilies& families) {
  AppendSingle("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.",
               kCounter, stats.cpu_seconds, families);
  AppendSingle("process_resident_memory_bytes", "Resident memory size in bytes.", kGauge,
               Number(stats.resident_bytes), families);
  AppendSingle("process_virtual_memory_bytes", "Virtual memory size in bytes.", kGauge,
               Number(stats.virtual_bytes), families);
  AppendSingle("process_open_fds", "Number of open file descriptors.", kGauge,
               Number(stats.open_fds), families);
  AppendSingle("process_max_fds", "Maximum number of open file descriptors.", kGauge,
               Number(stats.max_fds), families);
  AppendSingle("process_start_time_seconds",
               "Start time of the process since unix epoch in seconds.", kGauge,
               stats.start_time_seconds, families);
}

}  // namespace perceptrond
