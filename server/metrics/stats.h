// The figures that the metrics read at scrape time: from the core, and from the kernel about this
// process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/convergence/progress.h"
#include "core/ledger/stored_examples.h"
#include "core/store/waiting_predictions.h"
#include "perceptron/v1/model.pb.h"
#include "server/rpc/connections.h"

namespace perceptrond {

// The state of one model.
struct ModelMetrics {
  // Without "models/".
  std::string id;
  ConvergenceReport report;
  uint64_t revision = 0;
  // Size of the journal since the last snapshot. Absent if the model is not in memory.
  std::optional<uint64_t> journal_bytes;
  // InfinitePast if there is no snapshot or the model is not in memory.
  absl::Time snapshot_time = absl::InfinitePast();
  size_t memory_bytes = 0;
  // Absent if the model is not in memory.
  std::optional<StoredExamplesStatistics> stored_examples;
  // Of the learner auto, eight; none of other learners, and if the model is not in memory.
  std::vector<::perceptron::v1::Member> members;
  bool in_memory = false;
  // Whether this server writes the model, as it does all without a fleet.
  bool written = true;
};

// The state of the server. Counts are since its start.
struct ServerStats {
  // Models that exist, in memory or not.
  uint64_t models = 0;
  uint64_t models_in_memory = 0;
  uint64_t memory_bytes = 0;
  uint64_t memory_budget_bytes = 0;
  // What is reserved of the memory budget, one entry a use.
  struct MemoryUsed {
    std::string use;
    uint64_t bytes = 0;
    uint64_t refusals = 0;
  };
  std::vector<MemoryUsed> memory_uses;
  // Calls ended because their client did not receive an answer.
  uint64_t slow_consumers = 0;
  uint64_t journal_commits = 0;
  uint64_t journal_commit_failures = 0;
  double journal_commit_seconds = 0;
  // The time that the oldest uncommitted message has waited.
  double journal_wait_seconds = 0;
  // Writes that the journal lacked when it was opened.
  uint64_t journal_lost_writes = 0;
  bool journal_read_only = false;
  // The journal's file system. Absent if the journal is in memory or the system call fails.
  std::optional<uint64_t> disk_free_bytes;
  std::optional<uint64_t> disk_size_bytes;
  std::optional<uint64_t> disk_reserve_bytes;
  uint64_t snapshot_threshold_bytes = 0;
  uint64_t loads = 0;
  uint64_t evictions = 0;
  uint64_t snapshots = 0;
  uint64_t snapshot_failures = 0;
  struct Fleet {
    uint64_t servers = 0;
    uint64_t partitions = 0;
    uint64_t partitions_written = 0;
    // Those whose end the journal did not tell when this server last asked for it.
    uint64_t partitions_unreachable = 0;
    uint64_t take_overs = 0;
    // Of the partition with the longest.
    double contact_seconds = 0;
    double delay_seconds = 0;
    // Of all partitions: entries that are there, and were not read yet.
    uint64_t pending_entries = 0;
    // Rows of streams whose models other servers write: evaluated here, and forwarded.
    uint64_t evaluated_rows = 0;
    uint64_t forwarded_rows = 0;
  };
  // Absent without a fleet.
  std::optional<Fleet> fleet;
  // Models deleted because they were not used.
  uint64_t models_expired = 0;
  WaitingPredictions::Stats predictions;
  Connections::Stats transport;
};

// The state of this process, from /proc. A figure is absent if its file cannot be read.
struct ProcessStats {
  // User and system time together.
  std::optional<double> cpu_seconds;
  std::optional<uint64_t> resident_bytes;
  std::optional<uint64_t> virtual_bytes;
  std::optional<uint64_t> open_fds;
  // The soft limit; absent if there is none.
  std::optional<uint64_t> max_fds;
  // Since the Unix epoch.
  std::optional<double> start_time_seconds;
};

// Reads a few small files, in tens of microseconds plus one for every hundred open files. Any
// thread. `proc` is the mount point of procfs.
ProcessStats ReadProcessStats(const std::string& proc = "/proc");

}  // namespace perceptrond
