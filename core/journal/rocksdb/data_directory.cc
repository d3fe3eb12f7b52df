#include "core/journal/rocksdb/data_directory.h"

#include <fcntl.h>
#include <rocksdb/env.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "core/file/read_file.h"

namespace perceptrond {
namespace {

namespace fs = std::filesystem;

constexpr char kLock[] = "server.lock";
constexpr char kMarker[] = "JOURNAL";
// Several times what it has.
constexpr size_t kMaxMarkerBytes = 1024;
constexpr char kMarkerTitle[] = "perceptrond journal, format ";
// Of the marker and of what lies beside the database; the database has a format of its own.
constexpr uint32_t kMarkerFormat = 1;

absl::Status CannotUse(const std::string& what, const std::string& path, int error) {
  return absl::UnavailableError(absl::StrCat("cannot ", what, " ", path, ": ", strerror(error)));
}

// What RocksDB makes before the first file that says that there is a database, and what file
// systems put into an empty volume.
bool IsLeftOfAFirstStart(const std::string& name) {
  return name == kLock || name == "lost+found" || name == "LOCK" || name == "IDENTITY" ||
         absl::StartsWith(name, "LOG") || absl::StartsWith(name, "MANIFEST-") ||
         absl::EndsWith(name, ".dbtmp") || absl::EndsWith(name, ".new");
}

}  // namespace

absl::StatusOr<DirectoryLock> DirectoryLock::Acquire(const std::string& directory,
                                                     absl::Duration timeout,
                                                     const std::function<void()>& on_wait,
                                                     LockFile file) {
  // flock(2) waits without a limit or not at all: it is tried again.
  constexpr absl::Duration kRetryInterval = absl::Milliseconds(50);
  const std::string path = absl::StrCat(directory, "/", kLock);
  DirectoryLock lock(-1);
  if (file == LockFile::kCreate)
    lock.file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  // What can only be read can be locked, too.
  if (file == LockFile::kMayBeAbsent || (lock.file_ < 0 && errno == EROFS))
    lock.file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (lock.file_ < 0 && errno == ENOENT)
    lock.file_ = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock.file_ < 0) return CannotUse("open", path, errno);
  const absl::Time deadline = absl::Now() + timeout;
  bool waited = false;
  while (flock(lock.file_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return CannotUse("lock", path, errno);
    if (absl::Now() >= deadline) {
      return absl::UnavailableError(absl::StrCat(
          directory, " is in use by another server: stop it, or name another directory"));
    }
    if (!std::exchange(waited, true) && on_wait) on_wait();
    absl::SleepFor(kRetryInterval);
  }
  return lock;
}

DirectoryLock::~DirectoryLock() {
  if (file_ >= 0) close(file_);
}

absl::Status CreateDataDirectory(const std::string& directory) {
  std::error_code error;
  const bool created = fs::create_directories(directory, error);
  if (!error && created) fs::permissions(directory, fs::perms::owner_all, error);
  if (error) return CannotUse("create", directory, error.value());
  return absl::OkStatus();
}

void RestrictToOwner(const std::string& directory) {
  struct stat found = {};
  // A volume that Kubernetes gives to a group belongs to root.
  if (stat(directory.c_str(), &found) != 0 || found.st_uid != geteuid()) return;
  if ((found.st_mode & (S_IRWXG | S_IRWXO)) != 0) chmod(directory.c_str(), S_IRWXU);
}

absl::StatusOr<std::optional<std::string>> ReadMarker(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/", kMarker);
  const absl::StatusOr<std::string> text = ReadFileUpTo(path, kMaxMarkerBytes, FileKind::kRegular);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  // One that is too long is no marker either.
  if (!text.ok() && !absl::IsInvalidArgument(text.status()))
    return absl::UnavailableError(text.status().message());
  const std::string content = text.ok() ? *text : "";
  const std::pair<absl::string_view, absl::string_view> lines = absl::StrSplit(content, '\n');
  absl::string_view version = lines.first;
  absl::string_view digits = lines.second;
  uint32_t format = 0;
  if (!absl::ConsumePrefix(&version, kMarkerTitle) || !absl::SimpleAtoi(version, &format) ||
      format == 0 || !absl::ConsumePrefix(&digits, "id ") || digits.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path,
                     " is not what perceptrond writes there: restore the directory from a "
                     "backup, or name another directory"));
  }
  if (format > kMarkerFormat) {
    return absl::FailedPreconditionError(absl::StrCat(path, " has format ", format,
                                                      "; this server reads up to ", kMarkerFormat,
                                                      ": use a newer server"));
  }
  return std::string(digits);
}

absl::Status WriteMarker(rocksdb::Env* env, const std::string& directory, const std::string& id) {
  return WriteWholeFile(env, directory, kMarker,
                        absl::StrCat(kMarkerTitle, kMarkerFormat, "\nid ", id, "\n"));
}

absl::Status WriteWholeFile(rocksdb::Env* env, const std::string& directory, absl::string_view name,
                            const std::string& text) {
  const std::string path = absl::StrCat(directory, "/", name);
  const std::string unfinished = path + ".new";
  std::unique_ptr<rocksdb::Directory> entries;
  rocksdb::Status status = rocksdb::WriteStringToFile(env, text, unfinished, /*should_sync=*/true);
  if (status.ok()) status = env->RenameFile(unfinished, path);
  if (status.ok()) status = env->NewDirectory(directory, &entries);
  if (status.ok()) status = entries->Fsync();
  if (status.ok()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", path, ": ", status.ToString()));
}

absl::StatusOr<DirectoryContent> ReadDirectory(const std::string& directory,
                                               absl::string_view allowed) {
  absl::StatusOr<std::optional<std::string>> id = ReadMarker(directory);
  if (!id.ok()) return id.status();
  std::error_code error;
  const bool has_database = fs::exists(directory + "/CURRENT", error);
  if (error) return CannotUse("read", directory, error.value());
  if (has_database) return DirectoryContent{*std::move(id), true};
  if (id->has_value()) {
    return absl::FailedPreconditionError(absl::StrCat(
        directory, " had the journal ", **id, ", whose file CURRENT is gone, and perhaps others: ",
        "restore the directory from a backup, or name another directory for a new journal"));
  }
  fs::directory_iterator entries(directory, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (IsLeftOfAFirstStart(name) || name == allowed) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(directory, " is neither empty nor a journal, it has ", name,
                     ": name an empty directory, or restore this one from a backup"));
  }
  if (error) return CannotUse("read", directory, error.value());
  return DirectoryContent();
}

}  // namespace perceptrond
