#include "server/metrics/collect.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/strip.h"
#include "core/fleet/fleet.h"
#include "core/journal/rocksdb/rocksdb_journal.h"
#include "core/store/store.h"
#include "server/config/logging.h"
#include "server/rpc/call_memory.h"
#include "server/rpc/message.h"

namespace perceptrond {
namespace {

// The most models of a fleet of which those in memory are looked for.
constexpr size_t kMostRead = 10'000;

}  // namespace

std::vector<ModelMetrics> CollectModels(Store& store, size_t limit) {
  std::vector<ModelMetrics> metrics;
  // A scrape does not wait for the journal of a fleet, nor read it again and again.
  const auto wanted = [&store](const ::perceptron::v1::Model& model) {
    return store.fleet() == nullptr || ModelHandle::FindInMemory(store, model.name()) != nullptr;
  };
  const size_t most_read = store.fleet() == nullptr ? limit : kMostRead;
  absl::StatusOr<Store::Found> models = store.Search("", limit, most_read, wanted);
  if (!models.ok()) {
    Log(LogLevel::kWarning, "cannot list the models for metrics",
        {{"error", models.status().ToString()}});
    return metrics;
  }
  for (ModelSummary& model : models->models) {
    ModelMetrics& one = metrics.emplace_back();
    one.id = std::string(absl::StripPrefix(model.settings.name(), kModelCollection));
    one.revision = model.revision;
    one.report = std::move(model.report);
    // There may be many models without use: each has series only of its counts.
    if (!model.in_memory) {
      one.report.clear_state();
      one.report.clear_window_error();
      one.report.clear_window_examples();
      one.report.clear_window_risk();
    }
    if (model.journal.has_value()) {
      one.journal_bytes = model.journal->bytes;
      one.snapshot_time = model.journal->snapshot_time;
    }
    one.memory_bytes = model.memory_bytes;
    one.stored_examples = model.stored_examples;
    one.members.assign(model.settings.members().begin(), model.settings.members().end());
    one.in_memory = model.in_memory;
    if (store.fleet() != nullptr) one.written = store.fleet()->WritesNow(model.id);
  }
  return metrics;
}

namespace {

// The space on the journal's disk. RocksDbJournal refuses writes below the reserve.
void CollectDisk(const Options& options, ServerStats& server) {
  if (options.journal != JournalKind::kRocksDb) return;
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(options.data_dir, error);
  if (error) return;
  server.disk_free_bytes = space.available;
  server.disk_size_bytes = space.capacity;
  server.disk_reserve_bytes = RocksDbJournal::Options().reserve_bytes;
}

ServerStats::Fleet CollectFleet(Fleet& fleet) {
  ServerStats::Fleet all;
  all.servers = fleet.servers();
  for (const PartitionRole::Stats& one : fleet.stats()) {
    ++all.partitions;
    all.partitions_written += one.writes ? 1 : 0;
    all.partitions_unreachable += one.answers ? 0 : 1;
    all.take_overs += one.take_overs;
    all.contact_seconds = std::max(all.contact_seconds, absl::ToDoubleSeconds(one.since_contact));
    all.delay_seconds = std::max(all.delay_seconds, absl::ToDoubleSeconds(one.lag));
    all.pending_entries += one.pending;
  }
  return all;
}

}  // namespace

ServerStats CollectServer(Store& store, const InFlightMemory& memory,
                          const Connections& connections, const Options& options) {
  const Store::Stats stats = store.stats();
  ServerStats server;
  server.models = store.catalogue().Count().value_or(0);
  server.models_in_memory = stats.models_in_memory;
  server.memory_bytes = stats.memory_bytes;
  server.memory_budget_bytes = memory.budget().limit();
  for (size_t i = 0; i < kMemoryUses; ++i) {
    const auto use = static_cast<MemoryUse>(i);
    server.memory_uses.push_back({std::string(MemoryUseName(use)), memory.budget().reserved(use),
                                  memory.budget().refusals(use)});
  }
  server.slow_consumers = memory.slow_consumers();
  server.journal_commits = stats.commits;
  server.journal_commit_failures = stats.commit_failures;
  server.journal_commit_seconds = absl::ToDoubleSeconds(stats.commit_busy);
  server.journal_wait_seconds = absl::ToDoubleSeconds(stats.oldest_commit_wait);
  const JournalStats journal = store.journal_stats();
  server.journal_lost_writes = journal.lost_writes;
  server.journal_read_only = !journal.read_only.empty();
  server.loads = stats.loads;
  server.evictions = stats.evictions;
  server.snapshots = stats.snapshots;
  server.snapshot_failures = stats.snapshot_failures;
  server.models_expired = stats.expired;
  server.snapshot_threshold_bytes = options.snapshot_bytes;
  CollectDisk(options, server);
  if (store.fleet() != nullptr) server.fleet = CollectFleet(*store.fleet());
  server.predictions = store.predictions().stats();
  server.transport = connections.stats();
  return server;
}

}  // namespace perceptrond
