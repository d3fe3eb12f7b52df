#include "server/open_store.h"

#include <algorithm>
#include <csignal>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/features/words.h"
#include "core/fleet/fleet.h"
#include "core/journal/memory_journal.h"
#include "core/journal/postgres/postgres_table.h"
#include "core/journal/rocksdb/rocksdb_journal.h"
#include "core/journal/table_journal.h"
#include "server/config/endpoint.h"
#include "server/config/logging.h"

namespace perceptrond {
namespace {

// How long to wait for the previous server to drain and release the data directory.
constexpr absl::Duration kDataDirectoryTimeout = absl::Seconds(5);

// How long counts of correct rows wait to be written: what a crash may take of them.
constexpr absl::Duration kCountersDelay = absl::Seconds(1);

// How long to wait for a database that cannot be reached.
constexpr absl::Duration kDatabaseTimeout = absl::Seconds(30);

// Entries of a partition that followers can read one by one; one that is further behind loads its models again.
constexpr uint64_t kHeldBytes = 16 << 20;

// Of a process that blocks these signals, as the server does while it starts.
bool IsAskedToStop() {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Journal>> OpenFleetJournal(const Options& options,
                                                          const FleetUse& use) {
  PostgresTable::Options database;
  database.connection = options.postgres;
  database.schema = options.fleet;
  database.durability =
      options.durability == DurabilityChoice::kReplicated ? PostgresTable::Durability::kReplicated
      : options.durability == DurabilityChoice::kExternal ? PostgresTable::Durability::kExternal
                                                          : PostgresTable::Durability::kSync;
  database.read_only = use.read_only;
  database.on_lost = [](const absl::Status& why) {
    Log(LogLevel::kError,
        "the database cannot be reached; nothing can be learned, models in memory go on predicting",
        {{"error", why.message()}});
  };
  database.on_found = [] { Log(LogLevel::kInfo, "the database can be reached again"); };
  TableJournal::Options fleet;
  fleet.partitions = static_cast<uint32_t>(options.fleet_partitions);
  fleet.held_bytes = kHeldBytes;
  fleet.read_only = use.read_only;
  fleet.exclusion_time = options.fleet_timeout;
  fleet.import = use.import;
  const auto open = [&]() -> absl::StatusOr<std::unique_ptr<Journal>> {
    absl::StatusOr<std::unique_ptr<PostgresTable>> table = PostgresTable::Open(database);
    if (!table.ok()) return table.status();
    return TableJournal::Open(*std::move(table), fleet);
  };
  const absl::Time deadline = absl::Now() + kDatabaseTimeout;
  for (bool waited = false;; waited = true) {
    absl::StatusOr<std::unique_ptr<Journal>> journal = open();
    if (!absl::IsUnavailable(journal.status()) || absl::Now() > deadline || IsAskedToStop())
      return journal;
    if (!waited) {
      Log(LogLevel::kWarning, "the journal cannot be opened yet; trying again",
          {{"error", journal.status().message()},
           {"timeout", absl::FormatDuration(kDatabaseTimeout)}});
    }
    absl::SleepFor(absl::Milliseconds(200));
  }
}

namespace {

absl::StatusOr<std::unique_ptr<Journal>> OpenJournal(const Options& options) {
  if (options.journal == JournalKind::kPostgres) return OpenFleetJournal(options, {});
  if (options.journal == JournalKind::kMemory) return std::make_unique<MemoryJournal>();
  RocksDbJournal::Options rocksdb;
  rocksdb.directory = options.data_dir;
  rocksdb.lock_timeout = kDataDirectoryTimeout;
  rocksdb.on_locked = [&] {
    Log(LogLevel::kInfo, "another server uses the data directory; waiting for it to stop",
        {{"data_dir", options.data_dir}, {"timeout", absl::FormatDuration(kDataDirectoryTimeout)}});
  };
  rocksdb.accept_data_loss = options.accept_data_loss;
  absl::StatusOr<std::unique_ptr<RocksDbJournal>> journal = RocksDbJournal::Open(rocksdb);
  if (!journal.ok()) return journal.status();
  const JournalStats stats = (*journal)->Stats();
  if (stats.lost_writes > 0) {
    Log(LogLevel::kError,
        "the journal goes on without updates that it had; producers send their examples again from "
        "the positions that it has",
        {{"data_dir", options.data_dir}, {"lost_writes", stats.lost_writes}});
  }
  if (stats.may_lack_updates) {
    Log(LogLevel::kError,
        "the machine failed while updates were acknowledged before they were on disk "
        "(--durability); "
        "producers that are ahead of the journal get UPDATES_LOST and send their examples again",
        {{"data_dir", options.data_dir}});
  }
  if (!stats.read_only.empty()) {
    Log(LogLevel::kError, "the journal cannot be written; models can be read and nothing changed",
        {{"data_dir", options.data_dir}, {"error", stats.read_only}});
  }
  return *std::move(journal);
}

void LogReload(uint32_t partition, const absl::Status& why) {
  Log(LogLevel::kError, "models are loaded again, with what the journal has",
      {{"partition", partition}, {"error", why.message()}});
}

// Where clients reach this server of a fleet; empty if they cannot know.
std::string ClientAddress(const Options& options) {
  if (!options.client_address.empty()) return options.client_address;
  for (const std::string& address : options.addresses) {
    if (!HostOf(address).has_value() || absl::EndsWith(address, ":0")) continue;
    const absl::string_view fleet =
        options.fleet_advertise.empty() ? options.fleet_address : options.fleet_advertise;
    return absl::StrCat(fleet.substr(0, fleet.rfind(':')), address.substr(address.rfind(':')));
  }
  return "";
}

// What is asked of the journal. What it means in PostgreSQL the database is opened with.
Durability DurabilityOf(DurabilityChoice choice) {
  switch (choice) {
    case DurabilityChoice::kInterval:
      return Durability::kInterval;
    case DurabilityChoice::kNone:
      return Durability::kNone;
    default:
      return Durability::kSync;
  }
}

Store::Options StoreOptions(const Options& options) {
  Store::Options store;
  store.committer.durability = DurabilityOf(options.durability);
  store.committer.interval = options.durability_interval;
  store.committer.counters_delay = kCountersDelay;
  store.limits.max_example_features = options.max_example_features;
  store.limits.max_message_cost = options.max_message_cost;
  store.memory_budget = options.memory_budget;
  store.in_flight_share = options.memory_budget / 4;
  if (options.in_flight_budget > 0) {
    store.max_in_flight = options.in_flight_budget;
    store.in_flight_share = std::min(store.in_flight_share, store.max_in_flight);
  }
  store.max_model_bytes = options.memory_budget - store.in_flight_share;
  store.max_models = options.max_models;
  store.max_model_features = options.max_model_features;
  store.limits.max_producers = options.max_producers;
  store.limits.max_model_bytes = store.max_model_bytes;
  store.snapshot_bytes = options.snapshot_bytes;
  store.max_history_bytes = options.max_history_bytes;
  store.backup_directory = options.backup_dir;
  if (options.journal == JournalKind::kPostgres) {
    FleetOptions fleet;
    fleet.address =
        options.fleet_advertise.empty() ? options.fleet_address : options.fleet_advertise;
    fleet.client_address = ClientAddress(options);
    fleet.heartbeat = options.fleet_timeout / 4;
    fleet.writer_timeout = options.fleet_timeout;
    fleet.rank_delay = options.fleet_timeout / 8;
    fleet.settle_time = options.fleet_timeout * 1.5;
    fleet.max_lag = options.fleet_max_lag;
    store.fleet = std::make_shared<const FleetOptions>(fleet);
    store.on_reload = LogReload;
    store.on_namesake = [address = fleet.address](bool yields, const std::string& client_address) {
      Log(LogLevel::kError,
          yields
              ? "another server of the fleet, which started earlier, has this one's address; this "
                "one does not learn: give it a --fleet-address or --fleet-advertise of its own"
              : "another server of the fleet, which started later, has this one's address, and "
                "does not learn: give it a --fleet-address or --fleet-advertise of its own",
          {{"address", address}, {"other_client_address", client_address}});
    };
  }
  store.on_write_failure = [](const std::string& model, const absl::Status& why) {
    Log(LogLevel::kError,
        "cannot write updates to the journal; the model is rolled back to its last durable state",
        {{"model", model}, {"error", why.message()}});
  };
  store.on_damage = [](const std::string& model, const absl::Status& why) {
    Log(LogLevel::kError, "a model is damaged and cannot be loaded; other models are not affected",
        {{"model", model}, {"error", why.message()}});
  };
  store.on_other_icu = [](const std::string& model, const std::string& icu_version) {
    Log(LogLevel::kWarning,
        "a model's texts may be split into other words than when it was created: this server has "
        "another version of ICU",
        {{"model", model}, {"icu_version", icu_version}, {"server_icu_version", IcuVersion()}});
  };
  store.on_snapshot_failure = [](const std::string& model, const absl::Status& why) {
    Log(LogLevel::kError, "cannot write a snapshot; the journal grows until one is written",
        {{"model", model}, {"error", why.message()}});
  };
  return store;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> OpenStore(
    const Options& options, std::function<void(const std::string& model)> on_expired) {
  absl::StatusOr<std::unique_ptr<Journal>> journal = OpenJournal(options);
  if (!journal.ok()) return journal.status();
  Store::Options store = StoreOptions(options);
  store.on_expired = std::move(on_expired);
  return std::make_unique<Store>(*std::move(journal), store);
}

}  // namespace perceptrond
