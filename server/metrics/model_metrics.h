// The figures that the metrics read from the core at scrape time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "core/convergence/progress.h"
#include "core/model/stored_examples.h"

namespace perceptrond {

// The state of one model.
struct ModelMetrics {
  // Without "models/".
  std::string id;
  ConvergenceReport report;
  uint64_t revision = 0;
  // Size of the journal since the last snapshot. Absent if the model is not loaded.
  std::optional<uint64_t> journal_bytes;
  // InfinitePast if there is no snapshot or the model is not loaded.
  absl::Time snapshot_time = absl::InfinitePast();
  size_t memory_bytes = 0;
  // Absent if the model is not loaded.
  std::optional<StoredExamplesStatistics> stored_examples;
  bool in_memory = false;
};

// The state of the server. Counts are since its start.
struct ServerStats {
  // Models that exist, loaded or not.
  uint64_t models = 0;
  uint64_t models_loaded = 0;
  uint64_t memory_bytes = 0;
  uint64_t memory_budget_bytes = 0;
  uint64_t journal_commits = 0;
  uint64_t journal_commit_failures = 0;
  double journal_commit_seconds = 0;
  // The time that the oldest uncommitted message has waited.
  double journal_wait_seconds = 0;
  // The journal's file system. Absent if the journal is in memory or the system call fails.
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
