// The directory that a journal is kept in. One process at a time uses it, and a marker says whose
// it is: a directory that is neither empty nor a journal's is never written to.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace rocksdb {
class Env;
}

namespace perceptrond {

enum class LockFile : uint8_t { kCreate, kMayBeAbsent };

// The lock by which one process at a time uses a directory: an flock(2) on the file "server.lock"
// of the directory. The kernel releases it when the process ends, however that happens; the file
// stays. RocksDB has a lock of its own, but reports that it is taken with the same status as any
// other failure, so that only the text would tell.
class DirectoryLock {
 public:
  // Waits for at most `timeout` until the directory, which must exist, is free; calls `on_wait`
  // once if it has to wait. UNAVAILABLE if another process still holds the lock after that, or if
  // the file cannot be opened. If the file may be absent, or cannot be made since the file system
  // is read-only, the directory itself is locked in its place.
  static absl::StatusOr<DirectoryLock> Acquire(const std::string& directory, absl::Duration timeout,
                                               const std::function<void()>& on_wait,
                                               LockFile file = LockFile::kCreate);

  DirectoryLock(DirectoryLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  DirectoryLock& operator=(DirectoryLock&&) = delete;
  ~DirectoryLock();

 private:
  explicit DirectoryLock(int file) : file_(file) {}

  // -1 once moved from.
  int file_;
};

// Creates the directory and its parents unless they exist, for this user alone. UNAVAILABLE.
absl::Status CreateDataDirectory(const std::string& directory);
// Sets mode 0700 on the directory if this user owns it and others have rights to it.
void RestrictToOwner(const std::string& directory);

// The id in the directory's marker, the file "JOURNAL"; absent if there is no marker.
// FAILED_PRECONDITION: a newer version made the marker, or it is none. UNAVAILABLE: it cannot be read.
absl::StatusOr<std::optional<std::string>> ReadMarker(const std::string& directory);
// Writes the marker, durably and as a whole. UNAVAILABLE.
absl::Status WriteMarker(rocksdb::Env* env, const std::string& directory, const std::string& id);
// Writes a file of the directory anew, durably and as a whole: after a crash either the old or the
// new one is there. UNAVAILABLE.
absl::Status WriteWholeFile(rocksdb::Env* env, const std::string& directory, absl::string_view name,
                            const std::string& text);

struct DirectoryContent {
  // The marker's id, if there is a marker.
  std::optional<std::string> id;
  // Whether there is a database. If not, one may be made.
  bool has_database = false;
};

// What the directory has; it is not changed. FAILED_PRECONDITION: it has no database, and is not
// empty either: the marker or any other file says that it has lost one, or is of another program.
// What a crash leaves of the first start is no such file, nor is the one named `allowed`. Also as ReadMarker. UNAVAILABLE:
// it cannot be read.
absl::StatusOr<DirectoryContent> ReadDirectory(const std::string& directory,
                                               absl::string_view allowed = "");

}  // namespace perceptrond
