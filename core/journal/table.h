// Where a journal keeps its rows: ordered keys with values, changed by conditional commits. A home of the journal is one
// of these and nothing more: what the rows mean is in TableJournal.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace perceptrond {

struct TableRow {
  std::string key;
  std::string value;
};

// The keys from `begin` on and before `end`, which is not below it.
struct KeyRange {
  std::string begin;
  std::string end;
};

// Made as a whole, or not at all.
struct TableChange {
  // What must be so before the change.
  struct Condition {
    std::string key;
    // Of the row with that key; absent: there is none.
    std::optional<std::string> value;
  };
  std::vector<Condition> conditions;
  // Rows that are deleted, before others are written.
  std::vector<KeyRange> deletions;
  // Rows that are written, each key once.
  std::vector<TableRow> puts;
};

// Errors of every method: UNAVAILABLE: the rows cannot be read or written; DATA_LOSS: what was read fails its checks.
class TableReader {
 public:
  virtual ~TableReader() = default;
  // Absent: there is no such row.
  virtual absl::StatusOr<std::optional<std::string>> Get(absl::string_view key) = 0;
  // Calls `on_row` for the rows of a range in the order of their keys, by bytes, until it returns false.
  using OnRow = absl::FunctionRef<bool(absl::string_view key, absl::string_view value)>;
  virtual absl::Status Scan(const KeyRange& range, OnRow on_row) = 0;
};

// Any number of processes may open one table, if it is of a kind that can be shared.
//
// Thread contract: safe for any number of threads.
class Table : public TableReader {
 public:
  // The rows of these ranges as they are at one moment. Used by one thread at a time; the table must outlive it. It may
  // hold a transaction open: not to be kept.
  virtual absl::StatusOr<std::unique_ptr<TableReader>> Freeze(std::span<const KeyRange> ranges) = 0;
  // False: a condition does not hold, and nothing is changed. `sync`: on disk on return; without it the change survives
  // the end of the process, but may not survive that of the machine. After an error nothing is changed, but
  // UNKNOWN: the change was made, or will be made, or not.
  virtual absl::StatusOr<bool> Commit(const TableChange& change, bool sync) = 0;
  // Has on disk what was committed without sync.
  virtual absl::Status Sync() = 0;
  // The methods below are for tables that can be shared; one with a single opener keeps these defaults.

  // Counts commits, as far as they are known here. Returns once there are more than `seen`, or after this time.
  virtual uint64_t AwaitCommit(uint64_t /*seen*/, absl::Duration /*timeout*/) { return 0; }
  // Nothing waits from now on, be it for a commit of others or for one of its own. Whoever waited gets an error, or
  // nothing. Before the end of what uses the table.
  virtual void Close() {}
  // Passes a small message to the others that listen at this moment. It may be lost.
  virtual absl::Status Announce(absl::string_view /*message*/) { return absl::OkStatus(); }
  // From now on `listener` gets the announcements of others, on any thread, one at a time. null: no listener from now
  // on, and no call of one is running on return. It must not call the table.
  virtual void Listen(std::function<void(absl::string_view message)> /*listener*/) {}
};

}  // namespace perceptrond
