// A table in PostgreSQL, which any number of servers share (docs/adr/0062-rows-of-a-table.md).
//
//   tables      rows, entries and heads, by the kind of the key, each (key bytea, value bytea) in a schema of their own
//   commit      one READ COMMITTED transaction, sent in one piece, so that nothing is locked while it waits for its
//               client. A condition is a row that is locked or updated, in the order of keys; where there is none the
//               statement divides by zero
//   unknown     a connection that breaks within a commit, and a warning, as of a wait for a standby that was cancelled
//   news        NOTIFY in transactions of their own, which are not synced: within a commit it would serialize those of
//               the whole database. What it loses, a poll finds
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/journal/postgres/connection.h"
#include "core/journal/table.h"
#include "core/sync/mutex.h"

namespace perceptrond {

class PostgresTable final : public Table {
 public:
  // What a commit with `sync` must be, which is checked when the table is opened.
  enum class Durability {
    // On the disk of one server.
    kSync,
    // On that of a standby, too.
    kReplicated,
    // What the database makes of it: its settings cannot be read.
    kExternal,
  };
  struct Options {
    // As libpq reads it: postgres://user@host1,host2/database, or keywords and values.
    std::string connection;
    Durability durability = Durability::kSync;
    // Creates nothing. Whoever opens it so is to change nothing but what fences others.
    bool read_only = false;
    // Letters, digits and underscores.
    std::string schema = "perceptrond";
    // For commits and reads, each; one more listens.
    size_t connections = 8;
    // Between two looks at what nobody announced.
    absl::Duration poll_interval = absl::Milliseconds(250);
    // The database cannot be reached, for this reason, or now for another one; and it can again. On a thread of the table.
    // May be null.
    std::function<void(const absl::Status& why)> on_lost;
    std::function<void()> on_found;
  };

  // Creates the schema and its tables if there are none, or returns NOT_FOUND if it is read only. FAILED_PRECONDITION: the
  // database's settings lose what is acknowledged, and the message names the setting; PERMISSION_DENIED; UNAUTHENTICATED;
  // UNAVAILABLE.
  static absl::StatusOr<std::unique_ptr<PostgresTable>> Open(const Options& options);
  ~PostgresTable() override;

  absl::StatusOr<std::optional<std::string>> Get(absl::string_view key) override;
  absl::Status Scan(const KeyRange& range, OnRow on_row) override;
  absl::StatusOr<std::unique_ptr<TableReader>> Freeze(std::span<const KeyRange> ranges) override;
  absl::StatusOr<bool> Commit(const TableChange& change, bool sync) override;
  // Waits until what was committed without is on disk, by a commit that is.
  absl::Status Sync() override;
  uint64_t AwaitCommit(uint64_t seen, absl::Duration timeout) override;
  void Close() override;
  // RESOURCE_EXHAUSTED if it is longer than 5,900 bytes.
  absl::Status Announce(absl::string_view message) override;
  void Listen(std::function<void(absl::string_view message)> listener) override;

 private:
  using Connection = postgres::Connection;
  class Frozen;
  // Connections that are used by one call at a time.
  class Pool {
   public:
    Pool(std::function<absl::StatusOr<std::unique_ptr<Connection>>()> connect, size_t most)
        : connect_(std::move(connect)), most_(most) {}
    // Waits for one that is not used. UNAVAILABLE: none can be made.
    absl::StatusOr<std::unique_ptr<Connection>> Take() ABSL_LOCKS_EXCLUDED(mutex_);
    // As Take, without making one.
    absl::StatusOr<std::unique_ptr<Connection>> TakeIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
    // A broken one is closed.
    void Return(std::unique_ptr<Connection> connection) ABSL_LOCKS_EXCLUDED(mutex_);

   private:
    const std::function<absl::StatusOr<std::unique_ptr<Connection>>()> connect_;
    const size_t most_;
    Mutex mutex_;
    std::vector<std::unique_ptr<Connection>> idle_ ABSL_GUARDED_BY(mutex_);
    size_t used_ ABSL_GUARDED_BY(mutex_) = 0;
    // After a failure the next attempt waits, so that servers do not all try at once.
    absl::Time next_attempt_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
    absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  };

  explicit PostgresTable(const Options& options);
  absl::StatusOr<std::unique_ptr<Connection>> Connect();
  absl::Status CreateTables();
  absl::Status CheckSettings();
  std::string Schema() const;
  std::string TableOf(absl::string_view key) const;
  // The statements of a change.
  std::vector<Connection::Statement> StatementsOf(const TableChange& change, bool sync) const;
  absl::StatusOr<std::optional<std::string>> GetBy(Connection& connection, absl::string_view key);
  absl::Status ScanBy(Connection& connection, const KeyRange& range, OnRow on_row);
  // What the thread sends and hears.
  void Link();
  absl::Status Exchange(Connection& connection);
  void WakeLink();
  void NoteCommit();

  const Options options_;
  // Readable when the table is closed; and when the thread has something to send.
  const int closing_;
  const int wake_link_;
  Pool pool_;
  // Those of Freeze and Scan, which hold one while others are called: so these get one of pool_.
  Pool frozen_pool_;
  Mutex mutex_;
  uint64_t commits_ ABSL_GUARDED_BY(mutex_) = 0;
  // When one was last counted that nobody announced.
  absl::Time looked_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  bool has_committed_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<std::string> outgoing_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Held while it is called.
  Mutex listener_mutex_;
  std::function<void(absl::string_view)> listener_ ABSL_GUARDED_BY(listener_mutex_);
  std::thread link_;
};

}  // namespace perceptrond
