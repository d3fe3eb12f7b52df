// Backups of a store.
#include "core/error/error.h"
#include "core/journal/backups.h"
#include "core/store/store.h"

namespace perceptrond {
namespace {

absl::Status BackupsOff() {
  return MakeError(absl::StatusCode::kFailedPrecondition, "BACKUPS_OFF",
                   "the server makes no backups: start it with --backup-dir, or copy its directory "
                   "while it is stopped");
}

absl::Status BackupError(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return status;
    case absl::StatusCode::kFailedPrecondition:
      return MakeError(status.code(), "BACKUP_OF_ANOTHER", status.message());
    case absl::StatusCode::kDataLoss:
      return MakeError(status.code(), "BACKUP_CORRUPT", status.message());
    default:
      return MakeError(absl::StatusCode::kUnavailable, "BACKUP_UNAVAILABLE", status.message());
  }
}

}  // namespace

absl::StatusOr<Backup> Store::CreateBackup(uint32_t keep) {
  if (options_.backup_directory.empty()) return BackupsOff();
  MutexLock lock(&backup_mutex_);
  absl::StatusOr<Backup> backup = journal_->BackUp(Backups(options_.backup_directory), keep);
  if (!backup.ok()) return BackupError(backup.status());
  return backup;
}

absl::StatusOr<std::vector<Backup>> Store::ListBackups() {
  if (options_.backup_directory.empty()) return BackupsOff();
  absl::StatusOr<std::vector<Backup>> backups = Backups(options_.backup_directory).List();
  if (!backups.ok()) return BackupError(backups.status());
  return backups;
}

}  // namespace perceptrond
