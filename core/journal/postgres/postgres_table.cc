#include "core/journal/postgres/postgres_table.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/journal/postgres/uri.h"
#include "core/sync/thread_name.h"

namespace perceptrond {
namespace {

using postgres::Parameters;
using postgres::Result;

constexpr int kMostTries = 20;
// A NOTIFY has less than 8,000 bytes, and takes text.
constexpr size_t kMostAnnounced = 5900;
constexpr size_t kMostWaiting = 1000;
constexpr absl::Duration kReconnect = absl::Milliseconds(200);
// How long a connection that is used is waited for where no other can be made.
constexpr absl::Duration kIdleTime = absl::Seconds(1);

// A read returns no more rows, and none after so many bytes.
constexpr int kRowsAtOnce = 256;
constexpr size_t kBytesAtOnce = 4 << 20;

absl::string_view Column(const Result& result, int row, int column) {
  return {PQgetvalue(result.get(), row, column),
          static_cast<size_t>(PQgetlength(result.get(), row, column))};
}

absl::Duration WithJitter(absl::Duration duration) {
  thread_local std::minstd_rand random{std::random_device()()};
  return duration * std::uniform_real_distribution<double>(1, 2)(random);
}

void Wake(int event) { [[maybe_unused]] const int result = eventfd_write(event, 1); }

}  // namespace

absl::StatusOr<std::unique_ptr<postgres::Connection>> PostgresTable::Pool::Take() {
  const auto has_one = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !idle_.empty() || used_ < most_;
  };
  {
    MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&has_one));
    if (!idle_.empty() || absl::Now() < next_attempt_) return TakeIdle();
    ++used_;
  }
  absl::StatusOr<std::unique_ptr<Connection>> made = connect_();
  if (made.ok()) return made;
  MutexLock lock(&mutex_);
  --used_;
  failure_ = made.status();
  next_attempt_ = absl::Now() + WithJitter(kReconnect);
  return TakeIdle();
}

absl::StatusOr<std::unique_ptr<postgres::Connection>> PostgresTable::Pool::TakeIdle() {
  // The database may take no more connections than there are.
  const auto is_over = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !idle_.empty() || used_ == 0;
  };
  mutex_.AwaitWithTimeout(absl::Condition(&is_over), kIdleTime);
  if (idle_.empty()) return failure_;
  ++used_;
  std::unique_ptr<Connection> connection = std::move(idle_.back());
  idle_.pop_back();
  return connection;
}

void PostgresTable::Pool::Return(std::unique_ptr<Connection> connection) {
  MutexLock lock(&mutex_);
  --used_;
  if (!connection->broken()) {
    idle_.push_back(std::move(connection));
  } else {
    // The others may be broken too, and are not to fail one call each.
    idle_.clear();
  }
}

namespace {

// Returns a connection to its pool.
template <typename Pool>
class Lease {
 public:
  Lease(Pool& pool, std::unique_ptr<postgres::Connection> connection)
      : pool_(pool), connection_(std::move(connection)) {}
  ~Lease() {
    if (connection_ != nullptr) pool_.Return(std::move(connection_));
  }
  postgres::Connection& operator*() { return *connection_; }
  postgres::Connection* operator->() { return connection_.get(); }

 private:
  Pool& pool_;
  std::unique_ptr<postgres::Connection> connection_;
};

}  // namespace

PostgresTable::PostgresTable(const Options& options)
    : options_(options),
      closing_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      wake_link_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      pool_([this] { return Connect(); }, options.connections),
      frozen_pool_([this] { return Connect(); }, options.connections) {}

PostgresTable::~PostgresTable() {
  Close();
  if (link_.joinable()) link_.join();
  close(closing_);
  close(wake_link_);
}

absl::StatusOr<std::unique_ptr<PostgresTable>> PostgresTable::Open(const Options& options) {
  if (!IsSchemaName(options.schema)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the schema \"", options.schema,
                     "\" is no name: lower-case letters, digits and underscores, at most 50"));
  }
  std::unique_ptr<PostgresTable> table(new PostgresTable(options));
  // No setting can lose what is only read.
  absl::Status status = options.read_only ? absl::OkStatus() : table->CheckSettings();
  if (status.ok()) status = table->CreateTables();
  if (!status.ok()) return status;
  table->link_ = std::thread([self = table.get()] { self->Link(); });
  return table;
}

absl::StatusOr<std::unique_ptr<postgres::Connection>> PostgresTable::Connect() {
  absl::StatusOr<std::unique_ptr<Connection>> connection =
      Connection::Open(options_.connection, closing_);
  if (!connection.ok()) return connection;
  // Whatever the role's or the database's defaults are.
  for (const char* setting :
       {"SET synchronous_commit = on", "SET default_transaction_isolation = 'read committed'",
        "SET idle_in_transaction_session_timeout = '60s'", "SET tcp_keepalives_idle = 5",
        "SET tcp_keepalives_interval = 2", "SET tcp_keepalives_count = 3",
        "SET tcp_user_timeout = 10000", "SET client_min_messages = warning"}) {
    const absl::StatusOr<Result> set = (*connection)->Run(setting);
    if (!set.ok() && options_.durability != Durability::kExternal) return set.status();
  }
  return connection;
}

absl::Status PostgresTable::CheckSettings() {
  absl::StatusOr<std::unique_ptr<Connection>> made = pool_.Take();
  if (!made.ok()) return made.status();
  Lease connection(pool_, *std::move(made));
  if (options_.durability == Durability::kExternal) return absl::OkStatus();
  const auto show = [&](const char* name) -> absl::StatusOr<std::string> {
    const absl::StatusOr<Result> result = connection->Run(absl::StrCat("SHOW ", name).c_str());
    if (!result.ok()) return result.status();
    return std::string(Column(*result, 0, 0));
  };
  for (const char* name : {"fsync", "full_page_writes"}) {
    const absl::StatusOr<std::string> value = show(name);
    if (!value.ok()) return value.status();
    if (*value != "on") {
      return absl::FailedPreconditionError(
          absl::StrCat("PostgreSQL has ", name, " = ", *value,
                       ", so that a power failure may take what was acknowledged: set it to on"));
    }
  }
  if (options_.durability == Durability::kSync) return absl::OkStatus();
  const absl::StatusOr<std::string> standbys = show("synchronous_standby_names");
  if (!standbys.ok()) return standbys.status();
  if (standbys->empty()) {
    return absl::FailedPreconditionError(
        "PostgreSQL has no synchronous_standby_names, so that only one disk has what is "
        "acknowledged: set it, for example "
        "to 'ANY 1 (standby1, standby2)', or start with --durability sync");
  }
  return absl::OkStatus();
}

absl::Status PostgresTable::CreateTables() {
  absl::Status status;
  // Of servers that create them at once all but one may fail.
  for (int i = 0; i < kMostTries; ++i) {
    absl::StatusOr<std::unique_ptr<Connection>> made = pool_.Take();
    if (!made.ok()) return made.status();
    Lease connection(pool_, *std::move(made));
    Parameters schema;
    schema.AddText(options_.schema);
    const absl::StatusOr<Result> there = connection->Run(
        "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = 'heads'", schema);
    if (!there.ok()) return there.status();
    if (PQntuples(there->get()) > 0) return absl::OkStatus();
    if (options_.read_only)
      return absl::NotFoundError(
          absl::StrCat("there is no journal in the schema ", options_.schema));
    // The first commit would wait for one without an end, and nobody could say for what.
    if (options_.durability != Durability::kExternal) {
      const absl::StatusOr<Result> waits = connection->Run(
          "SELECT 1 WHERE current_setting('synchronous_standby_names') <> '' AND NOT EXISTS "
          "(SELECT 1 FROM pg_catalog.pg_stat_replication)");
      if (!waits.ok()) return waits.status();
      if (PQntuples(waits->get()) > 0)
        return absl::UnavailableError(
            "PostgreSQL has synchronous_standby_names and no standby connected, and a new journal "
            "waits for one: start it");
    }
    std::vector<Connection::Statement> statements = {
        {"BEGIN", {}},
        {"SET LOCAL lock_timeout = '10s'", {}},
        {absl::StrCat("CREATE SCHEMA IF NOT EXISTS ", Schema()), {}}};
    for (const char* name : {"rows", "entries", "heads"}) {
      statements.push_back({absl::StrCat("CREATE TABLE IF NOT EXISTS ", Schema(), ".", name,
                                         " (key bytea PRIMARY KEY, value bytea NOT NULL)"),
                            {}});
    }
    statements.push_back({"COMMIT", {}});
    status = connection->RunTransaction(statements);
    // What is large is not compressed again; heads are written anew all the time, in the space that is kept for that.
    // Distributed databases have neither.
    if (status.ok() && options_.durability != Durability::kExternal) {
      for (const char* name : {"rows", "entries"})
        connection
            ->Run(absl::StrCat("ALTER TABLE ", Schema(), ".", name,
                               " ALTER COLUMN value SET STORAGE EXTERNAL")
                      .c_str())
            .IgnoreError();
      connection
          ->Run(absl::StrCat("ALTER TABLE ", Schema(),
                             ".heads SET (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, "
                             "autovacuum_vacuum_threshold = 1000)")
                    .c_str())
          .IgnoreError();
    }
    if (status.ok() || absl::IsUnavailable(status) || absl::IsPermissionDenied(status))
      return status;
    absl::SleepFor(WithJitter(absl::Milliseconds(20)));
  }
  return status;
}

// In quotes, since words of SQL are names too.
std::string PostgresTable::Schema() const { return absl::StrCat("\"", options_.schema, "\""); }

std::string PostgresTable::TableOf(absl::string_view key) const {
  const char kind = key.empty() ? ' ' : key[0];
  return absl::StrCat(Schema(), kind == 'p' ? ".heads" : kind == 'e' ? ".entries" : ".rows");
}

std::vector<postgres::Connection::Statement> PostgresTable::StatementsOf(const TableChange& change,
                                                                         bool sync) const {
  std::vector<Connection::Statement> statements = {{"BEGIN", {}}};
  if (!sync) statements.push_back({"SET LOCAL synchronous_commit = off", {}});
  std::map<absl::string_view, const TableRow*> puts;
  for (const TableRow& row : change.puts) puts.insert_or_assign(row.key, &row);
  // Heads come last: others wait for them.
  std::vector<Connection::Statement> heads;
  std::vector<const TableChange::Condition*> conditions;
  for (const TableChange::Condition& condition : change.conditions)
    conditions.push_back(&condition);
  std::sort(conditions.begin(), conditions.end(),
            [](const auto* a, const auto* b) { return a->key < b->key; });
  for (const TableChange::Condition* condition : conditions) {
    const std::string table = TableOf(condition->key);
    Parameters parameters;
    parameters.AddBytes(condition->key);
    const auto put = puts.find(condition->key);
    const bool is_head = condition->key[0] == 'p' && put != puts.end();
    std::vector<Connection::Statement>& at = is_head ? heads : statements;
    if (condition->value.has_value() && put != puts.end()) {
      parameters.AddBytes(*condition->value).AddBytes(put->second->value);
      at.push_back({absl::StrCat("WITH changed AS (UPDATE ", table,
                                 " SET value = $3 WHERE key = $1 AND value = $2 "
                                 "RETURNING 1) SELECT 1 / count(*) FROM changed"),
                    std::move(parameters)});
      puts.erase(put);
    } else if (condition->value.has_value()) {
      parameters.AddBytes(*condition->value);
      at.push_back({absl::StrCat("SELECT 1 / count(*) FROM (SELECT 1 FROM ", table,
                                 " WHERE key = $1 AND value = $2 FOR SHARE) AS locked"),
                    std::move(parameters)});
    } else if (put != puts.end()) {
      parameters.AddBytes(put->second->value);
      at.push_back({absl::StrCat("INSERT INTO ", table, " (key, value) VALUES ($1, $2)"),
                    std::move(parameters)});
      puts.erase(put);
    } else {
      at.push_back({absl::StrCat("SELECT 1 / (1 - count(*)) FROM ", table, " WHERE key = $1"),
                    std::move(parameters)});
    }
  }
  for (const KeyRange& range : change.deletions) {
    Parameters parameters;
    parameters.AddBytes(range.begin).AddBytes(range.end);
    statements.push_back(
        {absl::StrCat("DELETE FROM ", TableOf(range.begin), " WHERE key >= $1 AND key < $2"),
         std::move(parameters)});
  }
  std::map<std::string, std::pair<std::vector<absl::string_view>, std::vector<absl::string_view>>>
      by_table;
  for (const auto& [key, row] : puts) {
    auto& [keys, values] = by_table[TableOf(key)];
    keys.push_back(key);
    values.push_back(row->value);
  }
  for (const auto& [table, rows] : by_table) {
    Parameters parameters;
    parameters.AddArray(rows.first).AddArray(rows.second);
    statements.push_back(
        {absl::StrCat("INSERT INTO ", table,
                      " (key, value) SELECT * FROM unnest($1::bytea[], $2::bytea[]) "
                      "ON CONFLICT (key) DO UPDATE SET value = excluded.value"),
         std::move(parameters)});
  }
  std::move(heads.begin(), heads.end(), std::back_inserter(statements));
  statements.push_back({"COMMIT", {}});
  return statements;
}

absl::StatusOr<bool> PostgresTable::Commit(const TableChange& change, bool sync) {
  const std::vector<Connection::Statement> statements = StatementsOf(change, sync);
  absl::Status status;
  for (int i = 0; i < kMostTries; ++i) {
    absl::StatusOr<std::unique_ptr<Connection>> made = pool_.Take();
    if (!made.ok()) return made.status();
    {
      Lease connection(pool_, *std::move(made));
      status = connection->RunTransaction(statements);
    }
    if (status.ok()) {
      NoteCommit();
      return true;
    }
    // A condition does not hold, or a key is there that must not be.
    if (absl::IsOutOfRange(status) || absl::IsAlreadyExists(status)) return false;
    if (!absl::IsAborted(status)) return status;
    absl::SleepFor(WithJitter(absl::Milliseconds(1 + i)));
  }
  return absl::UnavailableError(status.message());
}

absl::Status PostgresTable::Sync() {
  TableChange change;
  change.puts.push_back({"m/synced", ""});
  return Commit(change, /*sync=*/true).status();
}

absl::StatusOr<std::optional<std::string>> PostgresTable::GetBy(Connection& connection,
                                                                absl::string_view key) {
  Parameters parameters;
  parameters.AddBytes(key);
  // A row is small: whoever waits for one longer is told that the database is away.
  const absl::StatusOr<Result> result =
      connection.Run(absl::StrCat("SELECT value FROM ", TableOf(key), " WHERE key = $1").c_str(),
                     parameters, absl::Seconds(5));
  if (!result.ok()) return result.status();
  if (PQntuples(result->get()) == 0) return std::nullopt;
  return std::string(Column(*result, 0, 0));
}

absl::Status PostgresTable::ScanBy(Connection& connection, const KeyRange& range, OnRow on_row) {
  const std::string sql = absl::StrCat(
      "SELECT key, value FROM (SELECT key, value, sum(octet_length(value)) OVER (ORDER BY key) - "
      "octet_length(value) AS before FROM ",
      TableOf(range.begin), " WHERE key >= $1 AND key < $2 ORDER BY key LIMIT ", kRowsAtOnce,
      ") AS sized WHERE before < ", kBytesAtOnce, " ORDER BY key");
  std::string next = range.begin;
  while (true) {
    Parameters parameters;
    parameters.AddBytes(next).AddBytes(range.end);
    const absl::StatusOr<Result> result = connection.Run(sql.c_str(), parameters);
    if (!result.ok()) return result.status();
    const int rows = PQntuples(result->get());
    size_t bytes = 0;
    for (int i = 0; i < rows; ++i) {
      bytes += Column(*result, i, 1).size();
      if (!on_row(Column(*result, i, 0), Column(*result, i, 1))) return absl::OkStatus();
    }
    if (rows < kRowsAtOnce && bytes < kBytesAtOnce) return absl::OkStatus();
    next = std::string(Column(*result, rows - 1, 0)) + '\0';
  }
}

absl::StatusOr<std::optional<std::string>> PostgresTable::Get(absl::string_view key) {
  absl::StatusOr<std::unique_ptr<Connection>> made = pool_.Take();
  if (!made.ok()) return made.status();
  Lease connection(pool_, *std::move(made));
  return GetBy(*connection, key);
}

absl::Status PostgresTable::Scan(const KeyRange& range, OnRow on_row) {
  absl::StatusOr<std::unique_ptr<Connection>> made = frozen_pool_.Take();
  if (!made.ok()) return made.status();
  Lease connection(frozen_pool_, *std::move(made));
  return ScanBy(*connection, range, on_row);
}

class PostgresTable::Frozen final : public TableReader {
 public:
  Frozen(PostgresTable& table, std::unique_ptr<Connection> connection)
      : table_(table), connection_(table.frozen_pool_, std::move(connection)) {}
  ~Frozen() override { connection_->Run("ROLLBACK").IgnoreError(); }

  absl::StatusOr<std::optional<std::string>> Get(absl::string_view key) override {
    return table_.GetBy(*connection_, key);
  }
  absl::Status Scan(const KeyRange& range, OnRow on_row) override {
    return table_.ScanBy(*connection_, range, on_row);
  }

 private:
  PostgresTable& table_;
  Lease<Pool> connection_;
};

absl::StatusOr<std::unique_ptr<TableReader>> PostgresTable::Freeze(
    std::span<const KeyRange> /*ranges*/) {
  absl::StatusOr<std::unique_ptr<Connection>> made = frozen_pool_.Take();
  if (!made.ok()) return made.status();
  const absl::StatusOr<Result> begun =
      (*made)->Run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  if (!begun.ok()) {
    frozen_pool_.Return(*std::move(made));
    return begun.status();
  }
  return std::make_unique<Frozen>(*this, *std::move(made));
}

void PostgresTable::NoteCommit() {
  {
    MutexLock lock(&mutex_);
    ++commits_;
    has_committed_ = true;
  }
  WakeLink();
}

void PostgresTable::WakeLink() { Wake(wake_link_); }

uint64_t PostgresTable::AwaitCommit(uint64_t seen, absl::Duration timeout) {
  const auto has_more = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return commits_ > seen || stopping_;
  };
  MutexLock lock(&mutex_);
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    const absl::Time now = absl::Now();
    // The notice of a commit may be lost, or the thread that hears it be waiting for the database.
    if (now - looked_ >= options_.poll_interval) {
      ++commits_;
      looked_ = now;
    }
    if (has_more() || now >= deadline) return commits_;
    mutex_.AwaitWithTimeout(absl::Condition(&has_more),
                            std::min(deadline, looked_ + options_.poll_interval) - now);
  }
}

void PostgresTable::Close() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  Wake(closing_);
  WakeLink();
}

absl::Status PostgresTable::Announce(absl::string_view message) {
  if (message.size() > kMostAnnounced) {
    return absl::ResourceExhaustedError(absl::StrCat("an announcement of ", message.size(),
                                                     " bytes is longer than ", kMostAnnounced));
  }
  {
    MutexLock lock(&mutex_);
    if (outgoing_.size() >= kMostWaiting) outgoing_.pop_front();
    outgoing_.push_back(absl::Base64Escape(message));
  }
  WakeLink();
  return absl::OkStatus();
}

void PostgresTable::Listen(std::function<void(absl::string_view)> listener) {
  MutexLock lock(&listener_mutex_);
  listener_ = std::move(listener);
}

void PostgresTable::Link() {
  NameThisThread("postgres-link");
  std::unique_ptr<Connection> connection;
  absl::Status lost;
  const auto lose = [&](const absl::Status& why) {
    connection.reset();
    {
      MutexLock lock(&mutex_);
      if (stopping_) return;
    }
    if (std::exchange(lost, why) != why && options_.on_lost != nullptr) options_.on_lost(why);
  };
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (stopping_) return;
    }
    if (connection == nullptr) {
      absl::StatusOr<std::unique_ptr<Connection>> made = Connect();
      if (!made.ok()) {
        lose(made.status());
      } else {
        connection = *std::move(made);
        if (!std::exchange(lost, absl::OkStatus()).ok() && options_.on_found != nullptr)
          options_.on_found();
        for (const char* channel : {"_commits", "_news"})
          connection->Run(absl::StrCat("LISTEN ", options_.schema, channel).c_str()).IgnoreError();
        connection->Run("SET synchronous_commit = off").IgnoreError();
      }
    }
    if (connection != nullptr) {
      absl::Status status = Exchange(*connection);
      if (status.ok() && connection->broken()) status = absl::UnavailableError("it broke");
      if (!status.ok()) lose(status);
    }
    const absl::Duration wait =
        connection == nullptr ? WithJitter(kReconnect) : options_.poll_interval;
    pollfd waits[] = {{wake_link_, POLLIN, 0},
                      {connection == nullptr ? -1 : connection->socket(), POLLIN, 0}};
    poll(waits, 2, std::max<int>(1, static_cast<int>(absl::ToInt64Milliseconds(wait))));
    eventfd_t ignored = 0;
    [[maybe_unused]] const int read = eventfd_read(wake_link_, &ignored);
  }
}

absl::Status PostgresTable::Exchange(Connection& connection) {
  std::deque<std::string> outgoing;
  bool has_committed = false;
  {
    MutexLock lock(&mutex_);
    outgoing.swap(outgoing_);
    has_committed = std::exchange(has_committed_, false);
  }
  const auto notify = [&](absl::string_view channel, absl::string_view text) {
    Parameters parameters;
    parameters.AddText(absl::StrCat(options_.schema, channel)).AddText(text);
    return connection.Run("SELECT pg_notify($1, $2)", parameters).status();
  };
  absl::Status status;
  if (has_committed) status = notify("_commits", "");
  for (const std::string& message : outgoing)
    if (status.ok()) status = notify("_news", message);
  if (PQconsumeInput(connection.get()) == 0) return absl::UnavailableError("the connection broke");
  const int own = PQbackendPID(connection.get());
  while (PGnotify* const note = PQnotifies(connection.get())) {
    std::string message;
    const bool is_news = absl::EndsWith(note->relname, "_news");
    if (note->be_pid != own && !is_news) {
      MutexLock lock(&mutex_);
      ++commits_;
    } else if (note->be_pid != own && absl::Base64Unescape(note->extra, &message)) {
      MutexLock lock(&listener_mutex_);
      if (listener_ != nullptr) listener_(message);
    }
    PQfreemem(note);
  }
  return status;
}

}  // namespace perceptrond
