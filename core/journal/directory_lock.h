// The lock by which one process at a time uses a directory.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace perceptrond {

// An flock(2) on the file "server.lock" of the directory. The kernel releases it when the process
// ends, however that happens; the file stays. RocksDB has a lock of its own, but reports that it is
// taken with the same status as any other failure, so that only the text would tell.
class DirectoryLock {
 public:
  // Waits for at most `timeout` until the directory, which must exist, is free; calls `on_wait`
  // once if it has to wait. UNAVAILABLE if another process still holds the lock after that, or if
  // the file cannot be opened.
  static absl::StatusOr<DirectoryLock> Acquire(const std::string& directory, absl::Duration timeout,
                                               const std::function<void()>& on_wait);

  DirectoryLock(DirectoryLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  DirectoryLock& operator=(DirectoryLock&&) = delete;
  ~DirectoryLock();

 private:
  explicit DirectoryLock(int file) : file_(file) {}

  // -1 once moved from.
  int file_;
};

}  // namespace perceptrond
