#include "core/journal/rocksdb/rocksdb_journal.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/journal/table_keys.h"

namespace perceptrond {

RocksDbJournal::RocksDbJournal(std::unique_ptr<RocksDbTable> table, const Options& options)
    : TableJournal(std::move(table), {.snapshot_part_bytes = options.snapshot_part_bytes,
                                      .import = options.import,
                                      .read_only = options.read_only,
                                      .keeps_predictions = true}),
      rows_(static_cast<RocksDbTable&>(this->table())),
      never_syncs_(options.never_sync) {}

absl::StatusOr<std::unique_ptr<RocksDbJournal>> RocksDbJournal::Open(const Options& options) {
  RocksDbTable::Options rows = options;
  rows.first_key = table_keys::Meta("format");
  absl::StatusOr<std::unique_ptr<RocksDbTable>> table = RocksDbTable::Open(rows);
  if (!table.ok()) return table.status();
  std::unique_ptr<RocksDbJournal> journal(new RocksDbJournal(*std::move(table), options));
  const absl::Status status = journal->Begin();
  if (status.ok()) return journal;
  return absl::Status(status.code(), absl::StrCat(options.directory, ": ", status.message()));
}

absl::StatusOr<CommitOutcome> RocksDbJournal::Commit(std::span<const JournalEntry> entries,
                                                     const CommitOptions& options) {
  absl::StatusOr<CommitOutcome> outcome = TableJournal::Commit(entries, options);
  const bool has_updates = std::any_of(entries.begin(), entries.end(),
                                       [](const auto& entry) { return !entry.records.empty(); });
  if (has_updates && outcome.ok() && !outcome->stale && (!options.sync || never_syncs_))
    rows_.NoteUnsyncedUpdates();
  return outcome;
}

absl::Status RocksDbJournal::Verify() {
  absl::Status status = rows_.Verify();
  return status.ok() ? TableJournal::Verify() : status;
}

}  // namespace perceptrond
