#include "server/maintenance/copies.h"

#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/journal/rocksdb_journal.h"
#include "server/maintenance/journals.h"

namespace perceptrond {

using ::perceptron::storage::v1::Migration;

absl::StatusOr<Backup> BackUpFleet(const std::string& fleet, const std::string& backups,
                                   uint32_t keep, const Options& options) {
  const absl::StatusOr<std::unique_ptr<Journal>> from = OpenToRead(fleet, options);
  if (!from.ok()) return from.status();
  const Backups directory(backups);
  if (absl::Status status = directory.Prepare((*from)->Id()); !status.ok()) return status;
  const std::string copy_directory = directory.CopyDirectory();
  absl::StatusOr<MadeCopy> copy = MakeCopy(**from, copy_directory, options, {(*from)->Id(), ""});
  if (!copy.ok()) return copy.status();
  absl::StatusOr<Backup> backup = copy->journal->BackUp(directory, keep);
  copy->journal.reset();
  std::error_code error;
  if (backup.ok()) std::filesystem::remove_all(copy_directory, error);
  if (!error) return backup;
  return absl::UnavailableError(
      absl::StrCat("cannot delete ", copy_directory, ": ", error.message()));
}

absl::Status RestoreToFleet(const std::string& backups, uint32_t number, const std::string& fleet,
                            const Options& options) {
  return Backups(backups).Read(number, [&](const std::string& files, rocksdb::Env* env) {
    RocksDbJournal::Options rocksdb;
    rocksdb.directory = files;
    rocksdb.env = env;
    rocksdb.read_only = true;
    const absl::StatusOr<std::unique_ptr<RocksDbJournal>> from = RocksDbJournal::Open(rocksdb);
    if (!from.ok()) return from.status();
    const absl::StatusOr<MadeCopy> copy = MakeCopy(**from, fleet, options, {(*from)->Id(), ""});
    return copy.ok() ? copy->journal->FinishImport() : copy.status();
  });
}

absl::StatusOr<Migration> Migrate(const std::string& from, const std::string& to,
                                  const Options& options) {
  if (IsFleet(from) == IsFleet(to)) {
    return absl::InvalidArgumentError(
        "one of the two must be a fleet, as nats://HOST:PORT, and one a data directory");
  }
  const absl::StatusOr<std::unique_ptr<Journal>> source = OpenToRead(from, options);
  if (!source.ok()) return source.status();
  if (absl::Status status = (*source)->ExcludeOthers(); !status.ok()) return status;
  // A power failure may have taken what was acknowledged.
  const bool may_lack = (*source)->Stats().may_lack_updates;
  const ImportOptions import{(*source)->Id(), may_lack ? "" : (*source)->HistoryId()};
  const absl::StatusOr<MadeCopy> copy = MakeCopy(**source, to, options, import);
  if (!copy.ok()) return copy.status();
  // A server that came meanwhile may have learned.
  if (absl::Status status = (*source)->ExcludeOthers(); !status.ok()) return status;
  if (absl::Status status = copy->journal->FinishImport(); !status.ok()) return status;
  Migration migration;
  migration.set_from(from);
  migration.set_to(to);
  migration.set_models(static_cast<int64_t>(copy->statistics.models));
  migration.set_copied_before(static_cast<int64_t>(copy->statistics.copied_before));
  migration.set_bytes(static_cast<int64_t>(copy->statistics.bytes));
  migration.set_history_id(copy->journal->HistoryId());
  return migration;
}

}  // namespace perceptrond
