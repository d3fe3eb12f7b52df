#include "core/journal/rocksdb/backups.h"

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/utilities/backup_engine.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/journal/rocksdb/rocksdb_journal.h"
#include "core/sync/cancellation.h"

namespace perceptrond {
namespace {

namespace fs = std::filesystem;

// Where a restored journal is put together, within its directory.
constexpr char kUnfinished[] = "restoring";
constexpr char kCopy[] = "copy";
// How long another process that changes the directory is waited for.
constexpr absl::Duration kLockTimeout = absl::Seconds(5);

absl::Status ToAbsl(const rocksdb::Status& status, const std::string& directory) {
  if (status.ok()) return absl::OkStatus();
  const std::string text = absl::StrCat("backups in ", directory, ": ", status.ToString());
  // Metadata that names what RocksDB does not know is damaged.
  if (status.IsCorruption() || status.IsNotSupported()) return absl::DataLossError(text);
  if (status.IsNotFound()) return absl::NotFoundError(text);
  return absl::UnavailableError(text);
}

absl::Status CannotUse(const std::string& directory, const std::error_code& error) {
  return absl::UnavailableError(absl::StrCat("cannot use ", directory, ": ", error.message()));
}

rocksdb::BackupEngineOptions EngineOptions(const std::string& directory) {
  return rocksdb::BackupEngineOptions(directory);
}

absl::StatusOr<std::unique_ptr<rocksdb::BackupEngine>> OpenEngine(const std::string& directory) {
  rocksdb::BackupEngine* engine = nullptr;
  const rocksdb::Status status =
      rocksdb::BackupEngine::Open(EngineOptions(directory), rocksdb::Env::Default(), &engine);
  if (!status.ok()) return ToAbsl(status, directory);
  return std::unique_ptr<rocksdb::BackupEngine>(engine);
}

// Writes nothing: the directory may be read-only.
absl::StatusOr<std::unique_ptr<rocksdb::BackupEngineReadOnly>> OpenReader(
    const std::string& directory) {
  if (!Backups::IsBackupDirectory(directory)) {
    return absl::NotFoundError(
        absl::StrCat(directory, " has no backups: name the directory that they were made in"));
  }
  rocksdb::BackupEngineReadOnly* engine = nullptr;
  const rocksdb::Status status = rocksdb::BackupEngineReadOnly::Open(
      EngineOptions(directory), rocksdb::Env::Default(), &engine);
  if (!status.ok()) return ToAbsl(status, directory);
  return std::unique_ptr<rocksdb::BackupEngineReadOnly>(engine);
}

// "ID SEQUENCE", which a backup has as its metadata.
std::string Metadata(const std::string& journal_id, uint64_t sequence) {
  return absl::StrCat(journal_id, " ", sequence);
}

// Returns whether a file that backups do not share belongs to another backup.
bool IsOfAnother(const rocksdb::BackupFileInfo& file, uint32_t number) {
  absl::string_view name = file.relative_filename;
  return absl::ConsumePrefix(&name, "private/") &&
         !absl::StartsWith(name, absl::StrCat(number, "/"));
}

// RocksDB keeps no checksum of the metadata: what Create does not write is damage.
Backup FromInfo(const rocksdb::BackupInfo& info) {
  // The last second that a google.protobuf.Timestamp can have.
  constexpr int64_t kMostSeconds = 253'402'300'799;
  const std::pair<std::string, std::string> words = absl::StrSplit(info.app_metadata, ' ');
  uint64_t sequence = 0;
  Backup backup;
  backup.number = info.backup_id;
  backup.damaged = !absl::SimpleAtoi(words.second, &sequence) ||
                   Metadata(words.first, sequence) != info.app_metadata || words.first.empty() ||
                   !std::ranges::all_of(words.first, absl::ascii_isgraph) || info.timestamp < 0 ||
                   info.timestamp > kMostSeconds ||
                   std::ranges::any_of(info.file_details, [&](const auto& file) {
                     return IsOfAnother(file, info.backup_id);
                   });
  if (backup.damaged) return backup;
  backup.time = absl::FromUnixSeconds(info.timestamp);
  backup.bytes = info.size;
  backup.journal_id = words.first;
  backup.sequence = sequence;
  return backup;
}

// NOT_FOUND; DATA_LOSS if its metadata is damaged.
absl::StatusOr<Backup> Find(const rocksdb::BackupEngineReadOnlyBase& engine, uint32_t number,
                            const std::string& directory) {
  rocksdb::BackupInfo info;
  const rocksdb::Status status = engine.GetBackupInfo(number, &info, /*include_file_details=*/true);
  if (!status.ok()) return ToAbsl(status, directory);
  Backup backup = FromInfo(info);
  if (!backup.damaged) return backup;
  return absl::DataLossError(
      absl::StrCat("backups in ", directory, ": meta/", number, " is damaged"));
}

std::vector<Backup> WholeOnes(const rocksdb::BackupEngineReadOnlyBase& engine) {
  std::vector<rocksdb::BackupInfo> infos;
  engine.GetBackupInfo(&infos, /*include_file_details=*/true);
  std::vector<Backup> backups;
  backups.reserve(infos.size());
  for (const rocksdb::BackupInfo& info : infos) backups.push_back(FromInfo(info));
  return backups;
}

// The highest number of a backup that has a file, whole or not; 0 if there is none.
uint32_t NewestWithFiles(const std::string& directory) {
  uint32_t newest = 0;
  std::error_code error;
  for (fs::directory_iterator entries(directory + "/private", error);
       !error && entries != fs::directory_iterator(); entries.increment(error)) {
    uint32_t number = 0;
    if (absl::SimpleAtoi(entries->path().filename().string(), &number))
      newest = std::max(newest, number);
  }
  return newest;
}

// OK for a directory that has backups, or nothing but what a new volume or a lock leaves.
absl::Status CheckOwnDirectory(const std::string& directory) {
  if (Backups::IsBackupDirectory(directory)) return absl::OkStatus();
  std::error_code error;
  fs::directory_iterator entries(directory, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (name == "lost+found" || name == "server.lock" || name == kCopy) continue;
    return absl::FailedPreconditionError(absl::StrCat(directory,
                                                      " has other files than backups, as ", name,
                                                      ": name an empty directory for backups"));
  }
  return error ? CannotUse(directory, error) : absl::OkStatus();
}

absl::Status MakeOwnDirectory(const std::string& directory) {
  if (absl::Status status = CreateDataDirectory(directory); !status.ok()) return status;
  if (absl::Status status = CheckOwnDirectory(directory); !status.ok()) return status;
  RestrictToOwner(directory);
  return absl::OkStatus();
}

absl::Status CheckJournal(const std::string& directory, const std::vector<Backup>& before,
                          const std::string& id) {
  const auto last = std::find_if(before.rbegin(), before.rend(),
                                 [](const Backup& backup) { return !backup.damaged; });
  if (last == before.rend() || last->journal_id == id) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(directory, " has backups of another journal, ", last->journal_id,
                   ": name another directory for backups of this one"));
}

// DATA_LOSS unless the directory has the journal that the backup was made of, up to its last write. RocksDB does not miss a
// log that the backup's list of files lacks.
absl::Status CheckCopy(const std::string& directory, const Backup& backup) {
  std::error_code error;
  if (fs::exists(directory + "/CURRENT", error)) {
    RocksDbJournal::Options options;
    options.directory = directory;
    options.read_only = true;
    const absl::StatusOr<std::unique_ptr<RocksDbJournal>> journal = RocksDbJournal::Open(options);
    if (!journal.ok() && !absl::IsNotFound(journal.status())) return journal.status();
    if (journal.ok() && (*journal)->Id() == backup.journal_id &&
        (*journal)->sequence() >= backup.sequence)
      return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      "backup ", backup.number, " lacks writes that its journal had: restore another one"));
}

// Makes a copy of the backup, and checks it.
absl::Status CopyTo(const std::string& directory, rocksdb::BackupEngineReadOnly& engine,
                    const Backup& backup, const std::string& backups) {
  const rocksdb::Status status =
      engine.RestoreDBFromBackup(rocksdb::RestoreOptions(), backup.number, directory, directory);
  if (!status.ok()) return ToAbsl(status, backups);
  return CheckCopy(directory, backup);
}

// Moves the files of `from` to its parent: last the one that says that there is a database.
absl::Status MoveUp(const fs::path& from) {
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::directory_iterator entries(from, error); !error && entries != fs::directory_iterator();
       entries.increment(error))
    files.push_back(entries->path());
  std::stable_partition(files.begin(), files.end(),
                        [](const fs::path& path) { return path.filename() != "CURRENT"; });
  for (const fs::path& file : files) {
    if (!error) fs::rename(file, from.parent_path() / file.filename(), error);
  }
  if (!error) fs::remove(from, error);
  if (error) return CannotUse(from.string(), error);
  std::unique_ptr<rocksdb::Directory> parent;
  rocksdb::Status status =
      rocksdb::Env::Default()->NewDirectory(from.parent_path().string(), &parent);
  if (status.ok()) status = parent->Fsync();
  return ToAbsl(status, from.string());
}

}  // namespace

// RocksDB reads a backup in place by absolute paths alone.
Backups::Backups(const std::string& directory)
    : directory_(fs::absolute(directory).lexically_normal().string()) {}

std::string Backups::CopyDirectory() const { return absl::StrCat(directory_, "/", kCopy); }

bool Backups::IsBackupDirectory(const std::string& directory) {
  std::error_code error;
  return fs::is_directory(directory + "/meta", error) &&
         fs::is_directory(directory + "/private", error) && !fs::exists(directory + "/CURRENT");
}

absl::StatusOr<Backup> Backups::Create(rocksdb::DB& db, const std::string& journal_id,
                                       uint64_t sequence, uint32_t keep) const {
  if (absl::Status status = MakeOwnDirectory(directory_); !status.ok()) return status;
  absl::StatusOr<DirectoryLock> lock = DirectoryLock::Acquire(directory_, kLockTimeout, nullptr);
  if (!lock.ok()) return lock.status();
  absl::StatusOr<std::unique_ptr<rocksdb::BackupEngine>> engine = OpenEngine(directory_);
  if (!engine.ok()) return engine.status();
  if (absl::Status status = CheckJournal(directory_, WholeOnes(**engine), journal_id); !status.ok())
    return status;
  rocksdb::BackupID number = 0;
  // Without a flush, which a full disk would not allow: the log is part of the backup. Copied by
  // threads of RocksDB's.
  rocksdb::CreateBackupOptions options;
  options.progress_callback = [&engine, token = CurrentToken()] {
    if (token != nullptr && token->reason() != StopReason::kNone) (*engine)->StopBackup();
  };
  rocksdb::Status status =
      (*engine)->CreateNewBackupWithMetadata(options, &db, Metadata(journal_id, sequence), &number);
  if (status.IsIncomplete()) return absl::CancelledError("the backup was stopped");
  if (!status.ok()) return ToAbsl(status, directory_);
  rocksdb::BackupInfo info;
  status = (*engine)->GetBackupInfo(number, &info);
  if (status.ok() && keep > 0) status = (*engine)->PurgeOldBackups(keep);
  if (!status.ok()) return ToAbsl(status, directory_);
  return FromInfo(info);
}

absl::Status Backups::Prepare(const std::string& journal_id) const {
  if (absl::Status status = MakeOwnDirectory(directory_); !status.ok()) return status;
  absl::StatusOr<std::vector<Backup>> before = List();
  if (!before.ok()) return before.status();
  return CheckJournal(directory_, *before, journal_id);
}

absl::StatusOr<std::vector<Backup>> Backups::List() const {
  absl::StatusOr<std::unique_ptr<rocksdb::BackupEngineReadOnly>> engine = OpenReader(directory_);
  if (absl::IsNotFound(engine.status())) return std::vector<Backup>();
  if (!engine.ok()) return engine.status();
  std::vector<Backup> backups = WholeOnes(**engine);
  std::vector<rocksdb::BackupID> damaged;
  (*engine)->GetCorruptedBackups(&damaged);
  for (const rocksdb::BackupID number : damaged) {
    Backup& backup = backups.emplace_back();
    backup.number = number;
    backup.damaged = true;
  }
  std::sort(backups.begin(), backups.end(),
            [](const Backup& a, const Backup& b) { return a.number < b.number; });
  // A newer one is not listed if the file that lists it is gone, or was never written; unless one is being made.
  const uint32_t newest = NewestWithFiles(directory_);
  if (newest > (backups.empty() ? 0 : backups.back().number) &&
      DirectoryLock::Acquire(directory_, absl::ZeroDuration(), nullptr, LockFile::kMayBeAbsent)
          .ok()) {
    Backup& backup = backups.emplace_back();
    backup.number = newest;
    backup.damaged = true;
  }
  return backups;
}

absl::Status Backups::Verify(uint32_t number) const {
  absl::StatusOr<std::unique_ptr<rocksdb::BackupEngineReadOnly>> engine = OpenReader(directory_);
  if (!engine.ok()) return engine.status();
  if (absl::Status status = Find(**engine, number, directory_).status(); !status.ok())
    return status;
  return ToAbsl((*engine)->VerifyBackup(number, /*verify_with_checksum=*/true), directory_);
}

absl::Status Backups::Restore(uint32_t number, const std::string& data_directory) const {
  absl::StatusOr<std::unique_ptr<rocksdb::BackupEngineReadOnly>> engine = OpenReader(directory_);
  if (!engine.ok()) return engine.status();
  const absl::StatusOr<Backup> backup = Find(**engine, number, directory_);
  if (!backup.ok()) return backup.status();
  if (absl::Status status = CreateDataDirectory(data_directory); !status.ok()) return status;
  absl::StatusOr<DirectoryContent> content = ReadDirectory(data_directory, kUnfinished);
  if (!content.ok()) return content.status();
  if (content->has_database) {
    return absl::FailedPreconditionError(
        absl::StrCat(data_directory, " has a journal: restore into an empty directory"));
  }
  absl::StatusOr<DirectoryLock> lock =
      DirectoryLock::Acquire(data_directory, absl::ZeroDuration(), nullptr);
  if (!lock.ok()) return lock.status();
  const std::string unfinished = absl::StrCat(data_directory, "/", kUnfinished);
  std::error_code error;
  // A restore that was killed left it.
  fs::remove_all(unfinished, error);
  if (error) return CannotUse(unfinished, error);
  if (absl::Status copied = CopyTo(unfinished, **engine, *backup, directory_); !copied.ok()) {
    // After a failure the engine's threads go on with other files, until it ends.
    engine->reset();
    fs::remove_all(unfinished, error);
    return copied;
  }
  return MoveUp(unfinished);
}

absl::Status Backups::Read(uint32_t number,
                           const std::function<absl::Status(const std::string& directory,
                                                            rocksdb::Env* env)>& read) const {
  absl::StatusOr<std::unique_ptr<rocksdb::BackupEngineReadOnly>> engine = OpenReader(directory_);
  if (!engine.ok()) return engine.status();
  rocksdb::BackupInfo info;
  const rocksdb::Status status =
      (*engine)->GetBackupInfo(number, &info, /*include_file_details=*/true);
  if (!status.ok()) return ToAbsl(status, directory_);
  return read(info.name_for_open, info.env_for_open.get());
}

}  // namespace perceptrond
