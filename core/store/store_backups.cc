// Backups of a store.
#include "absl/cleanup/cleanup.h"
#include "core/error/error.h"
#include "core/error/stopped.h"
#include "core/journal/rocksdb/backups.h"
#include "core/store/store.h"
#include "core/sync/cancellation.h"

namespace perceptrond {
namespace {

constexpr absl::Duration kBackupStopInterval = absl::Milliseconds(20);

absl::Status BackupsOff(bool in_fleet) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "BACKUPS_OFF",
                   in_fleet ? "a server of a fleet makes no backups: back its database up, as "
                              "with pg_dump"
                            : "the server makes no backups: start it with --backup-dir, or copy "
                              "its directory while it is stopped");
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
  if (options_.backup_directory.empty() || fleet_ != nullptr) return BackupsOff(fleet_ != nullptr);
  {
    const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !backs_up_; };
    MutexLock lock(&mutex_);
    // A token cannot wake a thread.
    while (!mutex_.AwaitWithTimeout(absl::Condition(&idle), kBackupStopInterval)) {
      if (!KeepGoing()) return StoppedError();
    }
    backs_up_ = true;
  }
  const absl::Cleanup end = [this] {
    MutexLock lock(&mutex_);
    backs_up_ = false;
  };
  // Counts of correct rows that were acknowledged, too. The journal says if it cannot be written.
  (void)committer_->CommitAll(cache_.All());
  absl::StatusOr<Backup> backup = journal_->BackUp(Backups(options_.backup_directory), keep);
  if (backup.ok()) return backup;
  return KeepGoing() ? BackupError(backup.status()) : StoppedError();
}

absl::StatusOr<std::vector<Backup>> Store::ListBackups() {
  if (options_.backup_directory.empty() || fleet_ != nullptr) return BackupsOff(fleet_ != nullptr);
  absl::StatusOr<std::vector<Backup>> backups = Backups(options_.backup_directory).List();
  if (!backups.ok()) return BackupError(backups.status());
  return backups;
}

}  // namespace perceptrond
