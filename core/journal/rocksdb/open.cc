// How the RocksDB table opens its directory: the lock, the database, what is missing in it, and what an
// operator is told of damage.
#include <fcntl.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/file/read_file.h"
#include "core/journal/rocksdb/data_directory.h"
#include "core/journal/rocksdb/disk_reserve.h"
#include "core/journal/rocksdb/rocksdb_table.h"

namespace perceptrond {
namespace {

using rocksdb::WALRecoveryMode;

// RocksDB's notes, the file LOG of its directory. Notes that cannot be written, as on a full disk, are dropped. RocksDB's own
// log would end the process with the second such note, by an assertion that Debian's build has.
// Threads: any, as stdio.
class Notes final : public rocksdb::Logger {
 public:
  // A null file: nothing is written.
  explicit Notes(std::FILE* file) : Logger(rocksdb::InfoLogLevel::WARN_LEVEL), file_(file) {}
  ~Notes() override {
    if (file_ != nullptr) std::fclose(file_);
  }

  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    if (file_ == nullptr) return;
    char text[2048];
    std::vsnprintf(text, sizeof text, format, arguments);
    const std::string line = absl::StrCat(absl::FormatTime(absl::Now()), " ", text, "\n");
    std::fwrite(line.data(), 1, line.size(), file_);
    std::fflush(file_);
  }

 private:
  std::FILE* const file_;
};

// Begins new notes; those before become LOG.old.
std::shared_ptr<rocksdb::Logger> MakeNotes(const std::string& directory) {
  const std::string path = directory + "/LOG";
  std::error_code error;
  if (std::filesystem::file_size(path, error) > 0 && !error)
    std::filesystem::rename(path, path + ".old", error);
  return std::make_shared<Notes>(std::fopen(path.c_str(), "ae"));
}

// A table that can only be read looks this often whether it can be written again.
constexpr absl::Duration kReopenInterval = absl::Seconds(1);

// Has all logs in the directory on disk. Writes nothing.
absl::Status SyncLogs(const std::string& directory) {
  std::error_code error;
  std::filesystem::directory_iterator files(directory, error);
  for (; !error && files != std::filesystem::directory_iterator(); files.increment(error)) {
    if (files->path().extension() != ".log") continue;
    const int file = open(files->path().c_str(), O_RDONLY | O_CLOEXEC);
    const bool synced = file >= 0 && fsync(file) == 0;
    if (file >= 0) close(file);
    if (!synced) return absl::UnavailableError("journal: a log cannot be synced");
  }
  return error ? absl::UnavailableError("journal: the logs cannot be listed") : absl::OkStatus();
}

// The bytes of all logs in the directory.
uint64_t LogBytes(rocksdb::Env* env, const std::string& directory) {
  std::vector<std::string> files;
  if (!env->GetChildren(directory, &files).ok()) return 0;
  uint64_t bytes = 0;
  for (const std::string& file : files) {
    uint64_t size = 0;
    if (absl::EndsWith(file, ".log") && env->GetFileSize(directory + "/" + file, &size).ok())
      bytes += size;
  }
  return bytes;
}

rocksdb::Options DatabaseOptions(const RocksDbTable::Options& options, rocksdb::Env* env,
                                 bool create, WALRecoveryMode mode) {
  rocksdb::Options db;
  db.env = env;
  db.info_log = options.read_only ? std::make_shared<Notes>(nullptr) : MakeNotes(options.directory);
  // RocksDB takes a directory without its file CURRENT for a new one, and deletes its tables.
  db.create_if_missing = create;
  db.error_if_exists = create;
  // The marker has this id too.
  db.write_dbid_to_manifest = true;
  db.write_buffer_size = options.write_buffer_bytes;
  // Each table of an updated model holds a snapshot and the records after it, and the next table
  // makes all of them obsolete: two are worth a compaction.
  db.level0_file_num_compaction_trigger = 2;
  db.max_total_wal_size = 4 * options.write_buffer_bytes;
  // Preallocated space counts as used, and a log that grows needs no more syncing.
  db.allow_fallocate = false;
  // Everything that was reported as written is in the log or in a table.
  db.avoid_flush_during_shutdown = true;
  db.max_background_jobs = 2;
  // Threads without work were part of the time that an empty server takes to start.
  db.max_file_opening_threads = 1;
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  db.wal_recovery_mode = mode;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(options.block_cache_bytes);
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  db.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return db;
}

// Returns the name of the damaged log that RocksDB's notes name, which its status does not; "" if they name none, or
// are longer than those of one start.
std::string DamagedLog(const std::string& directory) {
  constexpr size_t kMaxBytes = 1 << 20;
  // A log is named by a number.
  constexpr size_t kMaxDigits = 20;
  const absl::StatusOr<std::string> notes =
      ReadFileUpTo(directory + "/LOG", kMaxBytes, FileKind::kRegular);
  const size_t end = notes.ok() ? notes->rfind(".log: dropping ") : std::string::npos;
  if (end == std::string::npos) return "";
  const size_t begin = end == 0 ? 0 : notes->find_last_not_of("0123456789", end - 1) + 1;
  const bool is_name = begin < end && end - begin <= kMaxDigits;
  return is_name ? notes->substr(begin, end + 4 - begin) : "";
}

// Adds to DATA_LOSS where the damage is and what to do about it. Returns other statuses unchanged.
absl::Status WithDamageAdvice(absl::Status status, const std::string& directory) {
  if (!absl::IsDataLoss(status)) return status;
  const std::string log = DamagedLog(directory);
  return absl::DataLossError(absl::StrCat(
      "the journal in ", directory, " is damaged", log.empty() ? "" : ", in the log ", log, ": ",
      status.message(), "; restore the directory from a backup, or see Damage in docs/journal.md"));
}

absl::Status MixedDirectories(const std::string& directory, const std::string& marker,
                              const std::string& id) {
  return absl::FailedPreconditionError(absl::StrCat(
      directory, " has the marker of the journal ", marker, " and the data of the journal ", id,
      ": files of two directories are mixed; restore one from a backup"));
}

}  // namespace

// Tells the watermark where a log ends, which is where a memtable is sealed, and of the index of tables.
class RocksDbTable::FileChanges final : public rocksdb::EventListener {
 public:
  // Before the first write.
  void Follow(std::shared_ptr<WatermarkFile> watermark) {
    MutexLock lock(&mutex_);
    watermark_ = std::move(watermark);
  }
  void OnMemTableSealed(const rocksdb::MemTableInfo& /*info*/) override {
    MutexLock lock(&mutex_);
    if (watermark_ != nullptr) watermark_->NoteLogSwitch();
  }
  void OnFlushCompleted(rocksdb::DB* db, const rocksdb::FlushJobInfo& /*info*/) override {
    NoteIndex(*db);
  }
  void OnCompactionCompleted(rocksdb::DB* db, const rocksdb::CompactionJobInfo& /*info*/) override {
    NoteIndex(*db);
  }

 private:
  void NoteIndex(rocksdb::DB& db) {
    const IndexEnd end = IndexEnd::Of(db);
    MutexLock lock(&mutex_);
    if (watermark_ != nullptr) watermark_->NoteIndex(end);
  }

  Mutex mutex_;
  std::shared_ptr<WatermarkFile> watermark_ ABSL_GUARDED_BY(mutex_);
};

RocksDbTable::RocksDbTable(DirectoryLock lock, Options options)
    : lock_(std::move(lock)), options_(std::move(options)), logs_(env()) {}

RocksDbTable::~RocksDbTable() {
  bool on_disk = false;
  {
    MutexLock lock(&db_mutex_);
    on_disk = watermark_ != nullptr && !failed_ && !options_.never_sync && logs_.Sync().ok();
    db_.reset();
  }
  if (on_disk) watermark_->Close(LogBytes(env(), options_.directory));
}

rocksdb::Env* RocksDbTable::env() const {
  return options_.env != nullptr ? options_.env : rocksdb::Env::Default();
}

absl::StatusOr<std::unique_ptr<RocksDbTable>> RocksDbTable::Open(const Options& options) {
  if (!options.read_only) {
    if (absl::Status status = CreateDataDirectory(options.directory); !status.ok()) return status;
  }
  // The lock is a file: a directory of something else gets none.
  absl::StatusOr<DirectoryContent> content = ReadDirectory(options.directory);
  if (!content.ok()) return content.status();
  absl::StatusOr<DirectoryLock> lock =
      DirectoryLock::Acquire(options.directory, options.lock_timeout, options.on_locked,
                             options.read_only ? LockFile::kMayBeAbsent : LockFile::kCreate);
  if (!lock.ok()) return lock.status();
  // Another server may have used it meanwhile.
  content = ReadDirectory(options.directory);
  if (!content.ok()) return content.status();
  if (!options.read_only) RestrictToOwner(options.directory);
  std::unique_ptr<RocksDbTable> table(new RocksDbTable(*std::move(lock), options));
  if (absl::Status status = table->OpenDirectory(*content); !status.ok())
    return WithDamageAdvice(status, options.directory);
  return table;
}

absl::Status RocksDbTable::OpenDirectory(const DirectoryContent& content) {
  if (options_.read_only && !content.has_database) {
    return absl::NotFoundError(
        absl::StrCat(options_.directory, " has no journal: name the directory of a journal"));
  }
  absl::StatusOr<std::optional<Watermark>> watermark =
      WatermarkFile::Read(env(), options_.directory);
  if (!watermark.ok()) return watermark.status();
  if (watermark->has_value()) {
    if (absl::Status status = CheckComplete(**watermark); !status.ok()) return status;
  } else if (content.id.has_value() && !options_.accept_data_loss) {
    return absl::DataLossError(
        "the file WATERMARK is missing or damaged, so that nothing says whether the log ends "
        "early; to "
        "go on with what the log has, start once with --accept-data-loss=yes");
  }
  if (options_.read_only) return OpenForReading(content, "it was opened for reading alone");
  const absl::Status opened =
      OpenForWriting(content, content.has_database ? Access::kWrite : Access::kCreate);
  if (!absl::IsUnavailable(opened) || !content.has_database) return opened;
  std::string why = WhyReadOnly();
  return why.empty() ? opened : OpenForReading(content, std::move(why));
}

absl::Status RocksDbTable::CheckComplete(const Watermark& watermark) {
  watermark_before_ = watermark;
  recovery_ = Recovery::kUpToDamage;
  const IndexEnd index = IndexEnd::In(env(), options_.directory);
  if (index < watermark.index && index.number > 0) {
    if (!options_.accept_data_loss) {
      return absl::DataLossError(
          absl::StrCat("the index of its tables, MANIFEST, ends early: it had reached number ",
                       watermark.index.number, " and ", watermark.index.bytes, " bytes, and has ",
                       index.number, " and ", index.bytes));
    }
    is_index_lost_ = true;
  }
  if (watermark.closed && LogBytes(env(), options_.directory) == watermark.log_bytes &&
      !options_.accept_data_loss) {
    // No log may end early, and each is checked as it is read: nothing is gained by reading twice.
    recovery_ = Recovery::kComplete;
    return absl::OkStatus();
  }
  // Opened for reading first: a log that lacks something stays as it is.
  absl::StatusOr<std::shared_ptr<rocksdb::DB>> db = OpenDatabase(Access::kRead, nullptr);
  if (!db.ok()) return db.status();
  return CheckSequence((*db)->GetLatestSequenceNumber());
}

absl::Status RocksDbTable::CheckSequence(uint64_t sequence) {
  if (!watermark_before_.has_value()) return absl::OkStatus();
  const uint64_t required = watermark_before_->required(boot_id());
  lost_writes_ = required > sequence ? required - sequence : 0;
  if (lost_writes_ == 0 || options_.accept_data_loss) {
    const uint64_t written = watermark_before_->written;
    may_lack_updates_ = watermark_before_->may_lack_updates(boot_id());
    if (may_lack_updates_ && written > sequence) lost_writes_ = written - sequence;
    return absl::OkStatus();
  }
  return absl::DataLossError(
      absl::StrCat("the log ends early: ", lost_writes_.load(), " of ", required,
                   " writes are missing that it had; to go on without them, start once with "
                   "--accept-data-loss=yes"));
}

absl::StatusOr<std::shared_ptr<rocksdb::DB>> RocksDbTable::OpenDatabase(
    Access access, std::shared_ptr<FileChanges> changes) const {
  const WALRecoveryMode mode =
      recovery_ == Recovery::kComplete     ? WALRecoveryMode::kAbsoluteConsistency
      : recovery_ == Recovery::kUpToDamage ? WALRecoveryMode::kPointInTimeRecovery
                                           : WALRecoveryMode::kTolerateCorruptedTailRecords;
  rocksdb::Options db_options =
      DatabaseOptions(options_, logs_.env(), access == Access::kCreate, mode);
  db_options.avoid_flush_during_recovery = access == Access::kWriteOnFullDisk;
  if (changes != nullptr) db_options.listeners.push_back(std::move(changes));
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status =
      access == Access::kRead ? rocksdb::DB::OpenForReadOnly(db_options, options_.directory, &db)
                              : rocksdb::DB::Open(db_options, options_.directory, &db);
  if (!status.ok()) return ToAbsl(status);
  return std::shared_ptr<rocksdb::DB>(db);
}

absl::Status RocksDbTable::OpenForWriting(const DirectoryContent& content, Access access) {
  // What is recovered stays in the logs.
  if (access == Access::kWriteOnFullDisk) {
    if (absl::Status status = SyncLogs(options_.directory); !status.ok()) return status;
  }
  const auto changes = std::make_shared<FileChanges>();
  absl::StatusOr<std::shared_ptr<rocksdb::DB>> opened = OpenDatabase(access, changes);
  if (!opened.ok()) return opened.status();
  const uint64_t recovered = (*opened)->GetLatestSequenceNumber();
  if (absl::Status status = CheckSequence(recovered); !status.ok()) return status;
  absl::StatusOr<std::string> id = CheckId(**opened, content);
  if (!id.ok()) return id.status();
  const std::shared_ptr<rocksdb::DB> before = Exchange(*std::move(opened));
  if (absl::Status status = WriteFirst(content, *id, recovered); !status.ok()) {
    // Closes it: it may be opened again.
    Exchange(before);
    return status;
  }
  changes->Follow(watermark_);
  MutexLock lock(&db_mutex_);
  read_only_.clear();
  is_read_only_.store(false, std::memory_order_release);
  if (access != Access::kWriteOnFullDisk && WhyReadOnly().empty())
    MakeDiskReserve(options_.directory);
  return absl::OkStatus();
}

std::shared_ptr<rocksdb::DB> RocksDbTable::Exchange(std::shared_ptr<rocksdb::DB> db) {
  MutexLock lock(&db_mutex_);
  return std::exchange(db_, std::move(db));
}

absl::Status RocksDbTable::CheckOwn() {
  const absl::StatusOr<std::optional<std::string>> first = Get(options_.first_key);
  if (!first.ok()) return first.status();
  bool is_empty = true;
  const auto on_row = [&](absl::string_view, absl::string_view) { return is_empty = false; };
  absl::Status status = Scan({"", std::string(1, '\xff')}, on_row);
  if (!status.ok() || is_empty || first->has_value()) return status;
  return absl::FailedPreconditionError(absl::StrCat(
      options_.directory, " has a database of another program: name an empty directory"));
}

absl::Status RocksDbTable::WriteFirst(const DirectoryContent& content, const std::string& id,
                                      uint64_t recovered) {
  logged_ = recovered;
  if (!content.id.has_value()) {
    if (absl::Status status = CheckOwn(); !status.ok()) return status;
  }
  Watermark watermark;
  watermark.id = id;
  watermark.written = logged_;
  // What was recovered is in tables, or in logs that were synced.
  watermark.synced = recovered;
  watermark.boot_id = boot_id();
  watermark.index = IndexEnd::Of(*db());
  absl::StatusOr<std::unique_ptr<WatermarkFile>> file =
      WatermarkFile::Create(env(), options_.directory, watermark);
  if (!file.ok()) return file.status();
  // Last: a crash in between leaves a journal that gets its marker at the next start.
  if (!content.id.has_value()) {
    if (absl::Status status = WriteMarker(env(), options_.directory, id); !status.ok())
      return status;
  }
  watermark_ = *std::move(file);
  return absl::OkStatus();
}

absl::StatusOr<std::string> RocksDbTable::CheckId(rocksdb::DB& db,
                                                  const DirectoryContent& content) const {
  std::string id;
  if (const rocksdb::Status status = db.GetDbIdentity(id); !status.ok()) return ToAbsl(status);
  if (content.id.value_or(id) != id) return MixedDirectories(options_.directory, *content.id, id);
  return id;
}

absl::Status RocksDbTable::OpenForReading(const DirectoryContent& content, std::string why) {
  absl::StatusOr<std::shared_ptr<rocksdb::DB>> db = OpenDatabase(Access::kRead, nullptr);
  if (!db.ok()) return db.status();
  if (absl::Status status = CheckSequence((*db)->GetLatestSequenceNumber()); !status.ok())
    return status;
  if (absl::StatusOr<std::string> id = CheckId(**db, content); !id.ok()) return id.status();
  logged_ = (*db)->GetLatestSequenceNumber();
  Exchange(*std::move(db));
  {
    MutexLock lock(&db_mutex_);
    read_only_ = std::move(why);
  }
  is_read_only_.store(true, std::memory_order_release);
  return absl::OkStatus();
}

std::string RocksDbTable::WhyReadOnly() const {
  const std::string& directory = options_.directory;
  // Of a file system that is read-only this is so for every user.
  if (access(directory.c_str(), W_OK) != 0)
    return absl::StrCat(directory, " cannot be written (", strerror(errno), "): make it writable");
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(directory, error);
  if (error || space.available >= options_.reserve_bytes) return "";
  return absl::StrCat("the disk of ", directory, " has ", space.available >> 20, " MiB free: free ",
                      options_.reserve_bytes >> 20, " MiB");
}

absl::Status RocksDbTable::LeaveReadOnly(bool is_deletion) {
  MutexLock reopen(&reopen_mutex_);
  if (!is_read_only_.load(std::memory_order_acquire)) return absl::OkStatus();
  std::string why;
  {
    MutexLock lock(&db_mutex_);
    why = read_only_;
  }
  const absl::Status refused = absl::UnavailableError(
      absl::StrCat("journal: nothing can be written, models can only be read: ", why,
                   ", and writing goes on with the next change"));
  const absl::Time now = absl::Now();
  const bool may_use_reserve = is_deletion && HasDiskReserve(options_.directory);
  if (options_.read_only || (now < next_attempt_ && !may_use_reserve)) return refused;
  if (!is_deletion && !WhyReadOnly().empty()) return refused;
  next_attempt_ = now + kReopenInterval;
  absl::StatusOr<DirectoryContent> content = ReadDirectory(options_.directory);
  if (!content.ok()) return content.status();
  if (OpenForWriting(*content, Access::kWrite).ok()) return absl::OkStatus();
  if (!may_use_reserve || !ReleaseDiskReserve(options_.directory)) return refused;
  return OpenForWriting(*content, Access::kWriteOnFullDisk).ok() ? absl::OkStatus() : refused;
}

JournalStats RocksDbTable::Stats() {
  MutexLock lock(&db_mutex_);
  return {lost_writes_, may_lack_updates_ || is_index_lost_, read_only_};
}

}  // namespace perceptrond
