#include "server/metrics/server_families.h"

#include <algorithm>
#include <optional>

#include "server/config/build_info.h"

namespace perceptrond {
namespace {

constexpr MetricKind kCounter = MetricKind::kCounter;
constexpr MetricKind kGauge = MetricKind::kGauge;

std::optional<double> Number(std::optional<uint64_t> value) {
  return value ? std::optional<double>(*value) : std::nullopt;
}

void AppendDiskFamilies(const ServerStats& stats, MetricFamilies& families) {
  AppendSingle("perceptrond_disk_free_bytes",
               "What the journal's file system has free for this server.", kGauge,
               Number(stats.disk_free_bytes), families);
  AppendSingle("perceptrond_disk_size_bytes", "Size of the journal's file system.", kGauge,
               Number(stats.disk_size_bytes), families);
  AppendSingle("perceptrond_disk_reserve_bytes",
               "With less than this free nothing is written: updates are refused.", kGauge,
               Number(stats.disk_reserve_bytes), families);
}

}  // namespace

void AppendServerFamilies(const ServerStats& stats, size_t exported, MetricFamilies& families) {
  // The two were not read at one moment.
  const uint64_t models = std::max<uint64_t>(stats.models, exported);
  const auto gauge = [&](const char* name, const char* help, uint64_t value) {
    AppendSingle(name, help, kGauge, static_cast<double>(value), families);
  };
  const auto counter = [&](const char* name, const char* help, uint64_t value) {
    AppendSingle(name, help, kCounter, static_cast<double>(value), families);
  };
  gauge("perceptrond_models", "Models that exist, loaded or not.", models);
  gauge("perceptrond_models_not_exported",
        "Models without series of their own, because there are more than --metrics-max-models.",
        models - exported);
  gauge("perceptrond_models_loaded", "Models in memory.", stats.models_loaded);
  gauge("perceptrond_memory_bytes", "Memory that the loaded models take.", stats.memory_bytes);
  gauge("perceptrond_memory_budget_bytes", "Memory that the loaded models may take.",
        stats.memory_budget_bytes);
  counter("perceptrond_journal_commits_total", "Batches of updates made durable.",
          stats.journal_commits);
  counter("perceptrond_journal_commit_failures_total",
          "Batches of updates that could not be made durable.", stats.journal_commit_failures);
  AppendSingle("perceptrond_journal_commit_seconds_total",
               "Time spent writing these batches, those that failed too.", kCounter,
               stats.journal_commit_seconds, families);
  AppendSingle("perceptrond_journal_wait_seconds",
               "How long the oldest message that waits for its updates to be durable has waited.",
               kGauge, stats.journal_wait_seconds, families);
  AppendDiskFamilies(stats, families);
  gauge("perceptrond_snapshot_threshold_bytes",
        "A model's journal may grow by this, or by the model's own size, before a snapshot.",
        stats.snapshot_threshold_bytes);
  counter("perceptrond_loads_total", "Models loaded into memory.", stats.loads);
  counter("perceptrond_evictions_total", "Models taken out of memory to keep to the budget.",
          stats.evictions);
  counter("perceptrond_snapshots_total", "Snapshots written.", stats.snapshots);
  counter("perceptrond_snapshot_failures_total",
          "Snapshots that could not be written; their records are kept.", stats.snapshot_failures);
}

void AppendBuildFamily(MetricFamilies& families) {
  const BuildInfo& build = GetBuildInfo();
  MetricFamily family{"perceptrond_build_info", "What this server was built from; always 1.",
                      kGauge};
  family.Add(
      {{"version", build.version}, {"revision", build.revision}, {"compiler", build.compiler}}, 1);
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
