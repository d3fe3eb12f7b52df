#include "core/journal/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace perceptrond {

absl::StatusOr<DirectoryLock> DirectoryLock::Acquire(const std::string& directory,
                                                     absl::Duration timeout,
                                                     const std::function<void()>& on_wait) {
  // flock(2) waits without a limit or not at all: it is tried again.
  constexpr absl::Duration kRetryInterval = absl::Milliseconds(50);
  const std::string path = directory + "/server.lock";
  DirectoryLock lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (lock.file_ < 0) {
    return absl::UnavailableError(absl::StrCat("cannot open ", path, ": ", std::strerror(errno)));
  }
  const absl::Time deadline = absl::Now() + timeout;
  bool waited = false;
  while (flock(lock.file_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) {
      return absl::UnavailableError(absl::StrCat("cannot lock ", path, ": ", std::strerror(errno)));
    }
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

}  // namespace perceptrond
