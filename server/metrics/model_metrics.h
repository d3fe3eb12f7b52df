// What the core tells the metrics, read at scrape time only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "core/convergence/progress.h"
#include "core/model/retention.h"

namespace perceptrond {

// One model at one moment.
struct ModelMetrics {
  // Without "models/".
  std::string id;
  ConvergenceReport report;
  uint64_t revision = 0;
  // Of the journal since the last snapshot. Absent: not known, since the model is not loaded.
  std::optional<uint64_t> journal_bytes;
  // InfinitePast: none was taken, or not known.
  absl::Time snapshot_time = absl::InfinitePast();
  size_t memory_bytes = 0;
  // Absent: not loaded.
  std::optional<RetentionStatistics> retained;
  bool in_memory = false;
};

// The server at one moment. Counts run since it started.
struct ServerStats {
  // Models that exist, loaded or not.
  uint64_t models = 0;
  uint64_t models_loaded = 0;
  uint64_t memory_bytes = 0;
  uint64_t memory_budget_bytes = 0;
  uint64_t journal_commits = 0;
  uint64_t journal_commit_failures = 0;
  double journal_commit_seconds = 0;
  // Of the oldest message that waits for its updates to be durable.
  double journal_wait_seconds = 0;
  // Of the file system that the journal is on. Absent: the journal is on none, or it cannot be
  // asked.
  std::optional<uint64_t> disk_free_bytes;
  std::optional<uint64_t> disk_size_bytes;
  std::optional<uint64_t> disk_reserve_bytes;
  uint64_t snapshot_threshold_bytes = 0;
  uint64_t loads = 0;
  uint64_t evictions = 0;
  uint64_t snapshots = 0;
  uint64_t snapshot_failures = 0;
};

}  // namespace perceptrond
