// The default journal: rows in a directory of its own, which one process opens.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/journal/rocksdb/backups.h"
#include "core/journal/rocksdb/rocksdb_table.h"
#include "core/journal/table_journal.h"

namespace perceptrond {

class RocksDbJournal final : public TableJournal {
 public:
  struct Options : RocksDbTable::Options {
    // TableJournal::Options::snapshot_part_bytes.
    size_t snapshot_part_bytes = TableJournal::Options().snapshot_part_bytes;
    // Open a journal that becomes a copy: a new one, or a copy that was begun.
    std::optional<ImportOptions> import = std::nullopt;
  };

  // Errors as of RocksDbTable and TableJournal. What the disk does not let be written when a journal is opened does not
  // keep it from being read.
  static absl::StatusOr<std::unique_ptr<RocksDbJournal>> Open(const Options& options);

  absl::StatusOr<CommitOutcome> Commit(std::span<const JournalEntry> entries,
                                       const CommitOptions& options) override;
  // Reads all files, and checks them against their checksums.
  absl::Status Verify() override;
  JournalStats Stats() override { return rows_.Stats(); }
  absl::StatusOr<Backup> BackUp(const Backups& backups, uint32_t keep) override {
    return backups.Create(*rows_.db(), Id(), rows_.sequence(), keep);
  }
  // The sequence number of the last write in the log.
  uint64_t sequence() const { return rows_.sequence(); }

 private:
  RocksDbJournal(std::unique_ptr<RocksDbTable> table, const Options& options);

  RocksDbTable& rows_;
  const bool never_syncs_;
};

}  // namespace perceptrond
